"""The measurements of a run, indexed once by metric and subject, with their retests in order."""

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from ..evidence import Fill, Measurement, NotMeasured, Run, TrialPlan
from .params_kinds import ParamsKey, ParamsKinds, params_key
from .series import Attempt, Found, Series, Value

__all__ = ["Attempt", "Found", "ParamsKey", "Value", "Values", "params_key"]

_T = TypeVar("_T")
_Kept = TypeVar("_Kept", Measurement, NotMeasured, Fill)
FEW_SAMPLES = 3
ENOUGH_SAMPLES = 10
NOISY = 0.10  # interquartile range over the median


class Values:
    """All values of a run. `of` answers in the order in which they were first written. `plans` are by trial id."""

    def __init__(self, run: Run, only: str | None = None) -> None:
        """`only`: the one metric that is asked for."""
        self._only = only
        self.plans = {plan.trial: plan for plan in run.plans if plan.trial}
        self._root = _roots(run.plans)
        self._kinds = ParamsKinds()
        self._series: dict[tuple[str, str], dict[tuple[int, str], Series]] = {}
        self._judged: dict[tuple[str, str], list[Value]] = {}
        self._subjects: dict[str, list[str]] = {}
        self.unforeseen: list[Measurement] = []  # what its trial's plan does not name
        for plan in run.plans:
            self._plan(plan)
        for record in self._asked(run.measurements):
            series = self._find(record, record.trial)
            series.found.append(record)
            if record.trial not in series.planned_by and record.trial in self.plans:
                self.unforeseen.append(record)
        for absent in self._asked(run.not_measured):
            self._find(absent, absent.trial).found.append(absent)

    def _plan(self, plan: TrialPlan) -> None:
        named = self.plans.get(plan.trial or "") is plan
        attempt, trial = (plan.attempt,), (plan.trial,)  # of nearly all series: one tuple for all of a plan's
        for fill in self._asked(plan.fills):
            series = self._find(fill, plan.trial)
            series.planned = _with(series.planned, attempt)
            if named:
                series.planned_by = _with(series.planned_by, trial)

    def _asked(self, records: Sequence[_Kept]) -> Sequence[_Kept]:
        return records if self._only is None else [record for record in records if record.metric == self._only]

    def _find(self, record: Found | Fill, trial: str | None) -> Series:
        """The series a record belongs to: a retest belongs to the trial that it repeats."""
        place = (record.metric, record.subject)
        by_params = self._series.get(place)
        if by_params is None:
            by_params = self._series[place] = {}
        kind = self._kinds.of(record.params)
        key = (kind.like, self._root.get(trial or "", trial or ""))
        found = by_params.get(key)
        if found is None:
            found = by_params[key] = Series(kind)
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


def _with(known: Collection[_T], one: tuple[_T]) -> Collection[_T]:
    """What is known with one more; a set from the second on, for a hostile run may have a million."""
    if not known or known == one:
        return one
    if not isinstance(known, set):
        known = set(known)
    known.update(one)
    return known


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
