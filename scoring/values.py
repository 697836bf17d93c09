"""The measurements of a run, indexed once by metric and subject, with their retests in order."""

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from ..evidence import Fill, Measurement, NotMeasured, Run, TrialPlan, is_metric, value_of
from ..evidence.metrics import impossible_in, metric
from ..evidence.records import Params
from .words import figure

Found = Measurement | NotMeasured
ParamsKey = tuple[tuple[str, bool | int | float | str], ...]

FEW_SAMPLES = 3
ENOUGH_SAMPLES = 10
NOISY = 0.10  # interquartile range over the median


class Attempt(Struct, frozen=True, kw_only=True):
    """What one attempt at a value brought. `noise`: interquartile range over the median, where there are samples."""

    number: int
    value: float
    samples: int
    noise: float | None


class Value(Struct, frozen=True, kw_only=True):
    """One metric of one subject with one set of params, as it is judged: the last attempt.

    `value` is None where it was not measured, and then `reason` and `detail` say why. `earlier` are the values of the
    attempts before, the first one first.
    """

    params: Params
    value: float | None
    reason: str = ""
    detail: str = ""
    earlier: tuple[float, ...] = ()
    by_attempt: tuple[Attempt, ...] = ()  # all that were measured
    attempts: int = 1
    trials: tuple[str, ...] = ()
    samples: int = 0
    noise: float | None = None  # interquartile range over the median, where there are samples


class _Series:
    """The attempts at one value. `planned` are the attempts that trials were to bring, `planned_by` those trials."""

    __slots__ = ("attempts", "params", "planned", "planned_by")

    def __init__(self, params: Params) -> None:
        self.params = params
        self.planned: tuple[int, ...] = ()
        self.planned_by: tuple[str | None, ...] = ()
        self.attempts: dict[int, list[Found]] = {}

    def value(self) -> Value:
        last = max((*self.planned, *self.attempts), default=0)
        records = self.attempts.get(last, [])
        absent = next((record for record in records if isinstance(record, NotMeasured)), None)
        if absent is not None or not records:
            return self._missing(absent, last)
        wrong = self._impossible()
        if wrong is not None:
            return Value(
                params=self.params, value=None, reason="parse_error", detail=wrong, attempts=last,
                earlier=self._earlier(last),
            )  # fmt: skip
        measurements = [record for record in records if isinstance(record, Measurement)]
        if len(measurements) > 1:
            detail = "the same value was written more than once"
            return Value(params=self.params, value=None, reason="parse_error", detail=detail, attempts=last)
        return self._measured(measurements[0], last)

    def _impossible(self) -> str | None:
        """What an attempt brought that its metric cannot have: no attempt beside it makes up for that."""
        for record in chain(*self.attempts.values()):
            if isinstance(record, Measurement) and is_metric(record.metric):
                wrong = impossible_in(record)
                if wrong is not None:
                    described = metric(record.metric)
                    return f"{figure(wrong, described.unit)} is not possible: {described.possible}"
        return None

    def _missing(self, absent: NotMeasured | None, last: int) -> Value:
        reason = absent.reason if absent else "not_returned"
        detail = absent.detail if absent else "planned, and neither a value nor a reason was written"
        trials = (absent.trial,) if absent and absent.trial else ()
        return Value(
            params=self.params, value=None, reason=reason, detail=detail, attempts=last, trials=trials,
            earlier=self._earlier(last), by_attempt=self._by_attempt(),
        )  # fmt: skip

    def _measured(self, measurement: Measurement, last: int) -> Value:
        here = _attempt(measurement, last)
        return Value(
            params=self.params,
            value=here.value if here else None,
            reason="" if here else "parse_error",
            detail="" if here else "the metric's statistic cannot be had from what was kept",
            earlier=self._earlier(last),
            by_attempt=(here,) if last == 1 and here else self._by_attempt(),
            attempts=last,
            trials=self._trials(),
            samples=here.samples if here else 0,
            noise=here.noise if here else None,
        )

    def _trials(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([r.trial for r in chain(*self.attempts.values()) if r.trial]))

    def _by_attempt(self) -> tuple[Attempt, ...]:
        found = (
            _attempt(record, number)
            for number in sorted(self.attempts)
            for record in self.attempts[number]
            if isinstance(record, Measurement)
        )
        return tuple(filter(None, found))

    def _earlier(self, last: int) -> tuple[float, ...]:
        if len(self.attempts) == 1 and last in self.attempts:  # as of nearly all values
            return ()
        before = (record for attempt in sorted(self.attempts) if attempt < last for record in self.attempts[attempt])
        possible = (
            r for r in before if isinstance(r, Measurement) and is_metric(r.metric) and impossible_in(r) is None
        )
        numbers = (value_of(record) for record in possible)
        return tuple(number for number in numbers if number is not None)

    @property
    def answered(self) -> bool:
        """Whether each attempt that was planned brought a value or a reason."""
        return all(attempt in self.attempts for attempt in self.planned)


class Values:
    """All values of a run. `of` answers in the order in which they were first written. `plans` are by trial id."""

    def __init__(self, run: Run) -> None:
        self.plans = {plan.trial: plan for plan in run.plans if plan.trial}
        self._root = _roots(run.plans)
        self._series: dict[tuple[str, str], dict[tuple[ParamsKey, str], _Series]] = {}
        self._judged: dict[tuple[str, str], list[Value]] = {}
        self._subjects: dict[str, list[str]] = {}
        self._plans = {plan.trial: plan for plan in run.plans if plan.trial}
        self.unforeseen: list[Measurement] = []  # what its trial's plan does not name
        self._plan(run.plans)
        for record in run.measurements:
            series = self._find(record, record.trial)
            series.attempts.setdefault(record.attempt, []).append(record)
            if record.trial not in series.planned_by and record.trial in self._plans:
                self.unforeseen.append(record)
        for absent in run.not_measured:
            self._find(absent, absent.trial).attempts.setdefault(absent.attempt, []).append(absent)

    def _plan(self, plans: list[TrialPlan]) -> None:
        for plan in plans:
            named = self._plans.get(plan.trial or "") is plan
            for fill in plan.fills:
                series = self._find(fill, plan.trial)
                if plan.attempt not in series.planned:
                    series.planned += (plan.attempt,)
                if named:
                    series.planned_by += (plan.trial,)

    def _find(self, record: Found | Fill, trial: str | None) -> _Series:
        """The series a record belongs to: a retest belongs to the trial that it repeats."""
        by_params = self._series.setdefault((record.metric, record.subject), {})
        key = (params_key(record.params), self._root.get(trial or "", trial or ""))
        found = by_params.get(key)
        if found is None:
            found = by_params[key] = _Series(record.params)
        return found

    def of(self, metric: str, subject: str) -> list[Value]:
        """The values of a metric on a subject, one for each set of params (and trial that is no retest)."""
        key = (metric, subject)
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = [series.value() for series in self._series.get(key, {}).values()]
        return found

    def subjects(self, metric: str) -> list[str]:
        """The subjects on which a metric was planned or recorded."""
        if not self._subjects:
            for name, subject in self._series:
                self._subjects.setdefault(name, []).append(subject)
        return self._subjects.get(metric, [])

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Metric and subject of everything that was planned or recorded."""
        yield from self._series

    def unanswered(self) -> Iterator[tuple[str, str]]:
        """Metric and subject of each value that was planned and has neither a value nor a reason."""
        for key, by_params in self._series.items():
            if not all(series.answered for series in by_params.values()):
                yield key


def params_key(params: Params) -> ParamsKey:
    """Params as a key that does not depend on their order."""
    return tuple(sorted(params.items())) if len(params) > 1 else tuple(params.items())


def _roots(plans: list[TrialPlan]) -> dict[str, str]:
    """For each trial, the first trial of its chain of retests."""
    parent = {plan.trial: plan.retest_of for plan in plans if plan.trial and plan.retest_of}
    roots: dict[str, str] = {}
    for trial in parent:
        seen, root = {trial}, trial
        while (above := parent.get(root)) is not None and above not in seen:
            seen.add(above)
            root = above
        roots[trial] = root
    return roots


def _attempt(measurement: Measurement, number: int) -> Attempt | None:
    """None where the metric's statistic cannot be had."""
    value = value_of(measurement)
    if value is None:
        return None
    samples = measurement.count or len(measurement.numbers())
    return Attempt(number=number, value=value, samples=samples, noise=_noise(measurement))


def _noise(measurement: Measurement) -> float | None:
    """Interquartile range over the median, where four samples or more are there."""
    numbers = measurement.samples
    if measurement.quantiles is not None:
        low, middle, high = measurement.quantiles[3], measurement.quantiles[4], measurement.quantiles[5]
    elif numbers is not None and len(numbers) >= 4:
        ordered = sorted(numbers)
        quarter = len(ordered) // 4
        low, middle, high = ordered[quarter], ordered[len(ordered) // 2], ordered[-1 - quarter]
    else:
        return None
    return (high - low) / abs(middle) if middle else None
