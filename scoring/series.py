"""The attempts at one value, and the value that is judged of them."""

from collections.abc import Collection
from itertools import chain

from msgspec import Struct

from ..evidence import Measurement, NotMeasured, is_metric, metric, value_of, value_of_samples
from ..evidence.metrics import impossible_in, median_of
from ..evidence.possible import all_whole
from ..evidence.records import Params
from .params_kinds import ParamsKind
from .words import figure

Found = Measurement | NotMeasured
NO_KIND = -1
FEWEST_OF_NOISE = 4


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """What one attempt at a value brought. `noise`: interquartile range over the median, where there are samples."""

    number: int
    value: float
    samples: int
    noise: float | None


class Value(Struct, frozen=True, kw_only=True, gc=False):
    """One metric of one subject with one set of params, as it is judged: the last attempt.

    `value` is None where it was not measured, and then `reason` and `detail` say why. `earlier` are the values of the
    attempts before, the first one first. `kind` and `like` are the numbers of its params (ParamsKind); without them
    the params themselves are looked at.
    """

    params: Params
    kind: int = NO_KIND
    like: int = NO_KIND
    value: float | None
    reason: str = ""
    detail: str = ""
    earlier: tuple[float, ...] = ()
    by_attempt: tuple[Attempt, ...] = ()  # all that were measured
    attempts: int = 1
    trials: tuple[str, ...] = ()
    samples: int = 0
    noise: float | None = None  # interquartile range over the median, where there are samples


class Series:
    """The attempts at one value. `planned` are the attempts that trials were to bring, `planned_by` those trials."""

    __slots__ = ("found", "kind", "planned", "planned_by")

    def __init__(self, kind: ParamsKind) -> None:
        self.kind = kind
        self.planned: Collection[int] = ()
        self.planned_by: Collection[str | None] = ()
        self.found: list[Found] = []

    def value(self) -> Value:
        """The value as it is judged. Nearly all have one attempt, with one measurement of samples."""
        if len(self.found) == 1 and len(self.planned) <= 1:
            (record,) = self.found
            if isinstance(record, Measurement) and (not self.planned or record.attempt in self.planned):
                here = _attempt_of_samples(record)
                return self._once(record.trial, here) if here else self._of_several()
        return self._of_several()

    def _once(self, trial: str | None, here: Attempt) -> Value:
        kind = self.kind
        return Value(
            params=kind.params,
            kind=kind.number,
            like=kind.like,
            value=here.value,
            by_attempt=(here,),
            attempts=here.number,
            trials=(trial,) if trial else (),
            samples=here.samples,
            noise=here.noise,
        )

    def _of_several(self) -> Value:
        attempts: dict[int, list[Found]] = {}
        for record in self.found:
            attempts.setdefault(record.attempt, []).append(record)
        last = max((*self.planned, *attempts), default=0)
        records = attempts.get(last, [])
        absent = next((record for record in records if isinstance(record, NotMeasured)), None)
        if absent is not None or not records:
            return self._missing(absent, last, attempts)
        wrong = next(filter(None, map(_impossible, chain(*attempts.values()))), None)
        if wrong is not None:
            return self._impossible(wrong, last, _earlier(attempts, last))
        measurements = [record for record in records if isinstance(record, Measurement)]
        if len(measurements) > 1:
            return self._impossible("the same value was written more than once", last, ())
        return self._measured(measurements[0], last, attempts)

    def _impossible(self, detail: str, last: int, earlier: tuple[float, ...]) -> Value:
        """What an attempt brought that its metric cannot have, or twice: no attempt beside it makes up for that."""
        return Value(
            params=self.kind.params, kind=self.kind.number, like=self.kind.like, value=None, reason="parse_error",
            detail=detail, attempts=last, earlier=earlier,
        )  # fmt: skip

    def _missing(self, absent: NotMeasured | None, last: int, attempts: dict[int, list[Found]]) -> Value:
        reason = absent.reason if absent else "not_returned"
        detail = absent.detail if absent else "planned, and neither a value nor a reason was written"
        trials = (absent.trial,) if absent and absent.trial else ()
        return Value(
            params=self.kind.params, kind=self.kind.number, like=self.kind.like, value=None, reason=reason,
            detail=detail, attempts=last, trials=trials, earlier=_earlier(attempts, last),
            by_attempt=_by_attempt(attempts),
        )  # fmt: skip

    def _measured(self, measurement: Measurement, last: int, attempts: dict[int, list[Found]]) -> Value:
        here = _attempt(measurement, last)
        return Value(
            params=self.kind.params,
            kind=self.kind.number,
            like=self.kind.like,
            value=here.value if here else None,
            reason="" if here else "parse_error",
            detail="" if here else "the metric's statistic cannot be had from what was kept",
            earlier=_earlier(attempts, last),
            by_attempt=_by_attempt(attempts),
            attempts=last,
            trials=tuple(dict.fromkeys([r.trial for r in chain(*attempts.values()) if r.trial])),
            samples=here.samples if here else 0,
            noise=here.noise if here else None,
        )

    @property
    def answered(self) -> bool:
        """Whether each attempt that was planned brought a value or a reason."""
        if len(self.planned) == len(self.found) == 1:
            return self.found[0].attempt in self.planned
        return {record.attempt for record in self.found}.issuperset(self.planned)


def _by_attempt(attempts: dict[int, list[Found]]) -> tuple[Attempt, ...]:
    found = (
        _attempt(record, number)
        for number in sorted(attempts)
        for record in attempts[number]
        if isinstance(record, Measurement)
    )
    return tuple(filter(None, found))


def _earlier(attempts: dict[int, list[Found]], last: int) -> tuple[float, ...]:
    before = (record for attempt in sorted(attempts) if attempt < last for record in attempts[attempt])
    possible = (r for r in before if isinstance(r, Measurement) and is_metric(r.metric) and impossible_in(r) is None)
    numbers = (value_of(record) for record in possible)
    return tuple(number for number in numbers if number is not None)


def _impossible(record: Found) -> str | None:
    """In words that a measurement has a number that its metric cannot have; None where it has none."""
    if isinstance(record, NotMeasured) or not is_metric(record.metric):
        return None
    wrong = impossible_in(record)
    if wrong is None:
        return None
    described = metric(record.metric)
    return f"{figure(wrong, described.unit)} is not possible: {described.possible}"


def _attempt_of_samples(measurement: Measurement) -> Attempt | None:
    """The attempt of possible samples of a known metric, which are put in order once for all that is asked of them.
    None for what has to be looked at more closely."""
    samples = measurement.samples
    if samples is None or not is_metric(measurement.metric):
        return None
    ordered, described = sorted(samples), metric(measurement.metric)
    possible = described.possible
    if not (possible.within(ordered[0]) and possible.within(ordered[-1])) or (
        possible.whole and not all_whole(samples)
    ):
        return None
    value = median_of(ordered) if described.statistic == "median" else value_of_samples(described.name, samples)
    if value is None:
        return None
    return Attempt(number=measurement.attempt, value=value, samples=len(samples), noise=_noise_of(ordered))


def _attempt(measurement: Measurement, number: int) -> Attempt | None:
    """None where the metric's statistic cannot be had."""
    value = value_of(measurement)
    if value is None:
        return None
    samples = measurement.count or len(measurement.numbers())
    return Attempt(number=number, value=value, samples=samples, noise=_noise(measurement))


def _noise(measurement: Measurement) -> float | None:
    """Interquartile range over the median, where four samples or more are there."""
    if measurement.quantiles is not None:
        return _over_middle(*measurement.quantiles[3:6])
    return None if measurement.samples is None else _noise_of(sorted(measurement.samples))


def _noise_of(ordered: list[float]) -> float | None:
    if len(ordered) < FEWEST_OF_NOISE:
        return None
    quarter = len(ordered) // 4
    return _over_middle(ordered[quarter], ordered[len(ordered) // 2], ordered[-1 - quarter])


def _over_middle(low: float, middle: float, high: float) -> float | None:
    return (high - low) / abs(middle) if middle else None
