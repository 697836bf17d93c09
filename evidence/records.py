"""The records of a run: Fact, Measurement, NotMeasured, Event, and TrialPlan.

Each carries a number from one sequence that runs through the whole run, so that a lost, doubled or torn record
shows as a gap. They are msgspec Structs: 400,000 of them are read in seconds. A record is made without a number;
the writer of the run directory gives it one.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Scalar = bool | int | float | str
# Integers beyond 64 bits: JSON readers and floats differ in what they make of them.
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**63 - 1
Stored = bool | Annotated[int, Meta(ge=_LEAST_INTEGER, le=_MOST_INTEGER)] | float | str
Params = dict[str, Stored]
Number = Annotated[int, Meta(ge=1)]
SubjectText = Annotated[str, Meta(min_length=1, max_length=512)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Detail = Annotated[str, Meta(max_length=4000)]
Instant = Annotated[datetime, Meta(tz=True)]  # a time without its zone cannot be told from another

Reason = Literal[
    "skipped_by_profile",  # the profile leaves it out
    "tool_missing",  # a program or library is not installed
    "unsupported",  # this device or platform cannot do it
    "timeout",  # the trial's deadline passed
    "died",  # a rank, worker or node ended during the trial
    "raised",  # the probe's code raised
    "parse_error",  # a tool's output could not be read
    "not_finite",  # the value was NaN or infinite
    "closed_to_tenant",  # no permission from where we stand
    "no_reference",  # nothing to divide by: an unknown accelerator
    "not_returned",  # the trial ended well but this value never came
    "interrupted",  # the run was stopped first
]
Severity = Literal["info", "warning", "error", "fatal"]
TrialOutcome = Literal["finished", "raised", "timed_out", "worker_lost", "interrupted"]
EventKind = Literal[
    "run_started",
    "run_finished",
    "interrupted",
    "torn_tail",
    "probe_started",
    "probe_finished",
    "trial_ended",
    "node_joined",
    "node_lost",
    "worker_lost",
    "hang",
    "stuck_in_kernel",
    "rank_replaced",
    "xid",
    "throttle",
    "ecc",
    "link_down",
    "note",
]

MOST_SAMPLES = 1000
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What all records share: their place in the run's one sequence, and the trial they came from.

    None refers to itself, so that the cyclic garbage collector need not walk over a million of them (gc=False).
    """

    number: Number | None = None
    trial: str | None = None


def _refuse_huge(values: Iterable[Scalar]) -> None:
    """Integers beyond 64 bits, in a record that was not read but made."""
    for value in values:  # a plain loop: it runs for each record of a run
        if value.__class__ is int and not _LEAST_INTEGER <= value <= _MOST_INTEGER:
            raise ValueError("an integer beyond 64 bits")


class Fact(Record, frozen=True, kw_only=True, tag="fact"):
    """Inventory, a version, a limit, a setting: text, number or yes/no. Sizes in bytes, frequencies in Hz."""

    subject: SubjectText
    key: Name
    value: Stored

    def __post_init__(self) -> None:
        """Refuse a value that not every reader understands alike."""
        _refuse_huge((self.value,))


class Measurement(Record, frozen=True, kw_only=True, tag="measurement"):
    """Raw samples of one metric on one subject, in the metric's unit.

    Over 1,000 samples are kept as `count` and `quantiles` at the probabilities of QUANTILES. `value` stands where
    there are no samples (a count, a sum). Exactly one of the three is there. `retest_of` names the trial that this
    one repeats; judging uses the last attempt and shows the first.
    """

    metric: Name
    subject: SubjectText
    params: Params = {}
    samples: tuple[float, ...] | None = None
    quantiles: tuple[float, ...] | None = None
    count: int | None = None
    value: float | None = None
    attempt: Annotated[int, Meta(ge=1)] = 1
    retest_of: str | None = None
    start: Instant | None = None
    end: Instant | None = None

    def __post_init__(self) -> None:
        """Refuse a measurement that carries no value or several, or one that is not finite."""
        samples, quantiles, value = self.samples, self.quantiles, self.value
        if (samples is None) + (quantiles is None) + (value is None) != 2:  # one of three is there
            raise ValueError("a measurement has either samples, or quantiles, or a value")
        if samples is not None and not 1 <= len(samples) <= MOST_SAMPLES:
            raise ValueError(f"a measurement has 1 to {MOST_SAMPLES} samples")
        # A sum is finite only where all numbers are; one that overflows is looked at again.
        numbers = samples if samples is not None else self.numbers()
        if not math.isfinite(sum(numbers)) and not all(map(math.isfinite, numbers)):
            raise ValueError("not finite: write NotMeasured with reason not_finite")
        if quantiles is not None or self.count is not None:
            self._refuse_odd_quantiles()
        _refuse_huge(self.params.values())

    def _refuse_odd_quantiles(self) -> None:
        """Quantiles rise, and stand for more samples than are kept one by one; nothing else has a count."""
        if self.quantiles is None or len(self.quantiles) != len(QUANTILES) or (self.count or 0) <= MOST_SAMPLES:
            raise ValueError(f"quantiles are {len(QUANTILES)} values with their count, above {MOST_SAMPLES}")
        if any(low > high for low, high in pairwise(self.quantiles)):
            raise ValueError("quantiles are not in order")

    def numbers(self) -> tuple[float, ...]:
        """The numbers it carries, whichever form they have."""
        if self.samples is not None:
            return self.samples
        if self.quantiles is not None:
            return self.quantiles
        return () if self.value is None else (self.value,)


class NotMeasured(Record, frozen=True, kw_only=True, tag="not_measured"):
    """A metric that was wanted of a subject and is not there, and why. Never a pass."""

    metric: Name
    subject: SubjectText
    reason: Reason
    params: Params = {}
    detail: Detail = ""
    attempt: Annotated[int, Meta(ge=1)] = 1
    retest_of: str | None = None

    def __post_init__(self) -> None:
        """Refuse params that not every reader understands alike."""
        _refuse_huge(self.params.values())


class Event(Record, frozen=True, kw_only=True, tag="event"):
    """Something that happened at a time (UTC).

    `outcome` stands with trial_ended, `last_number` with run_finished; `counts` are records by file: with run_finished
    all of the run, with trial_ended the others of the trial.
    """

    time: Instant
    kind: EventKind
    subject: SubjectText = "cluster"
    severity: Severity = "info"
    detail: Detail = ""
    outcome: TrialOutcome | None = None
    last_number: int | None = None
    counts: dict[str, int] | None = None


class Fill(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One value that a trial is to bring: what stays unfilled becomes NotMeasured."""

    metric: Name
    subject: SubjectText
    params: Params = {}


class TrialPlan(Record, frozen=True, kw_only=True, tag="plan"):
    """A trial as it was about to run, written before it ran. `trial` is its id; `ranks` are their subjects."""

    probe: Name
    function: str
    method: str
    ranks: tuple[SubjectText, ...]
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    deadline_s: float
    fills: tuple[Fill, ...] = ()
    attempt: Annotated[int, Meta(ge=1)] = 1
    retest_of: str | None = None


AnyRecord = Fact | Measurement | NotMeasured | Event | TrialPlan


def measured(
    *,
    metric: str,
    subject: str,
    samples: Iterable[float],
    params: Params | None = None,
    trial: str | None = None,
    attempt: int = 1,
    retest_of: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Measurement | NotMeasured:
    """A measurement of raw samples, or of their quantiles beyond 1,000.

    NotMeasured where no sample came or one is not finite: a mean over the rest would hide the fault.
    """
    values = tuple(float(sample) for sample in samples)
    bad = sum(not math.isfinite(value) for value in values)
    if bad or not values:
        return NotMeasured(
            metric=metric,
            subject=subject,
            params=params or {},
            reason="not_finite" if bad else "not_returned",
            detail=f"{bad} of {len(values)} samples {'is' if bad == 1 else 'are'} not finite"
            if bad
            else "no sample came",
            trial=trial,
            attempt=attempt,
            retest_of=retest_of,
        )
    many = len(values) > MOST_SAMPLES
    ordered = sorted(values) if many else []
    return Measurement(
        metric=metric,
        subject=subject,
        params=params or {},
        samples=None if many else values,
        quantiles=tuple(_quantile(ordered, at) for at in QUANTILES) if many else None,
        count=len(values) if many else None,
        trial=trial,
        attempt=attempt,
        retest_of=retest_of,
        start=start,
        end=end,
    )


def _quantile(ordered: list[float], at: float) -> float:
    """Linear interpolation between order statistics (Hyndman and Fan's type 7, numpy's default)."""
    place = at * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
