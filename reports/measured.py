"""What a run measured, found by metric: the last attempt of each value, aggregates, the worst, and what is missing."""

import statistics
from collections import defaultdict
from datetime import datetime
from functools import cached_property, lru_cache
from operator import attrgetter

import msgspec
from msgspec import Struct

from ..evidence import Fact, Measurement, Metric, NotMeasured, Params, Run, is_metric, metric, parse_subject, value_of
from .numbers import number_of, size
from .plain_text import natural, printable

ParamsKey = bytes


class Value(Struct, frozen=True, kw_only=True):
    """One value in force: the last attempt of a metric on a subject with its params."""

    subject: str
    value: float
    measurement: Measurement

    @property
    def low(self) -> float:
        """The smallest of its samples."""
        return min(self.measurement.numbers())

    @property
    def high(self) -> float:
        """The largest of its samples."""
        return max(self.measurement.numbers())


class Group(Struct, frozen=True, kw_only=True):
    """The values of one metric with the same params, over all subjects, in natural order of the subjects."""

    metric: Metric
    params: Params
    values: tuple[Value, ...]
    median: float

    @property
    def numbers(self) -> list[float]:
        """The values alone."""
        return [each.value for each in self.values]

    @property
    def worst_first(self) -> list[Value]:
        """The values from worst to best; a metric with no better direction is sorted from the largest."""
        return sorted(self.values, key=lambda each: each.value, reverse=self.metric.better != "higher")

    @property
    def worst(self) -> Value:
        """The worst value."""
        return self.worst_first[0]

    def gap(self, value: float) -> float | None:
        """By which share of the median a value is worse than it: 0.22 is 22% worse. None where the median is 0."""
        if self.median == 0:
            return None
        share = (self.median - value) / abs(self.median)
        return share if self.metric.better == "higher" else -share


class Measured:
    """The values in force of a run, indexed once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        last = _last_attempts(run)
        self._groups = _grouped(last)
        self._missing = [record for record in last.values() if isinstance(record, NotMeasured)]
        self._facts: dict[str, dict[str, Fact]] = defaultdict(dict)
        for fact in run.facts:
            self._facts[fact.subject][fact.key] = fact

    @cached_property
    def _trial_times(self) -> dict[str, datetime]:
        times: dict[str, datetime] = {}
        starts = ((each.trial, each.start) for each in self.run.measurements)
        ends = ((each.trial, each.time) for each in self.run.events)
        for trial, time in (*starts, *ends):
            if trial and time and (trial not in times or time < times[trial]):
                times[trial] = time
        return times

    def trial_time(self, trial: str) -> datetime | None:
        """The first time that a trial's records tell: when it began to measure, else when it ended."""
        return self._trial_times.get(trial)

    def groups(self, name: str) -> list[Group]:
        """The groups of a metric, the fullest and weightiest first."""
        return sorted(self._groups.get(name, []), key=_weight, reverse=True)

    def main(self, name: str) -> Group | None:
        """The one group that speaks for a metric: sustained before burst, bf16 before others, the largest size."""
        return next(iter(self.groups(name)), None)

    def metrics(self, prefix: str) -> list[str]:
        """The names of the measured metrics that begin with a prefix, in the order of the catalogue."""
        return [name for name in self._groups if name.startswith(prefix)]

    def missing(self, *prefixes: str) -> list[NotMeasured]:
        """What was wanted and not measured, for metrics that begin with one of the prefixes."""
        return [record for record in self._missing if record.metric.startswith(prefixes)]

    def facts_of(self, subject: str) -> dict[str, Fact]:
        """The facts of a subject by key, the last seen of each."""
        return self._facts.get(subject, {})

    def absent(self, group: Group) -> int:
        """How many subjects lack a value that the others of a group have."""
        key = _params_key(group.params)
        return sum(each.metric == group.metric.name and _params_key(each.params) == key for each in self._missing)

    @cached_property
    def subjects(self) -> frozenset[str]:
        """Every subject that a fact or a measurement speaks of."""
        return frozenset(self._facts) | {each.subject for each in self.run.measurements}

    @property
    def subjects_with_facts(self) -> list[str]:
        """Every subject that a fact speaks of, in natural order."""
        return sorted(self._facts, key=natural)


def params_label(params: Params) -> str:
    """Params as people say them: bf16 8192x8192x8192 sustained; fp32, 64 MiB, 2 ranks."""
    rest = dict(params)
    words = [printable(rest.pop("dtype"), 40)] if "dtype" in rest else []
    if {"m", "n", "k"} <= rest.keys():
        words.append("\N{MULTIPLICATION SIGN}".join(printable(rest.pop(side), 20) for side in "mnk"))
    if "phase" in rest:
        words.append(printable(rest.pop("phase"), 40))
    parts = [" ".join(words)] if words else []
    parts += [_one_param(key, rest[key]) for key in sorted(rest)]
    return ", ".join(parts) or "\N{EM DASH}"


def labelled(group: Group) -> str:
    """A group's metric with its params, where it has any."""
    return f"{group.metric.name}, {params_label(group.params)}" if group.params else group.metric.name


def params_order(params: Params) -> tuple[tuple[str, float, str], ...]:
    """A sort key by which sizes ascend."""
    return tuple((key, float(v) if _is_number(v) else 0.0, str(v)) for key, v in sorted(params.items()))


def _one_param(key: str, value: bool | int | float | str) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if key in ("bytes", "size_bytes", "bytes_per_rank") and not isinstance(value, str | bool):
        return size(value) + (" a rank" if key == "bytes_per_rank" else "")
    if key == "ranks" and whole:
        return number_of(int(value), "rank")
    if isinstance(value, str) and key in ("backend", "direction", "model"):
        return printable(value, 80)
    return f"{printable(key, 40)} {printable(value, 80)}"


def short(subject: str) -> str:
    """A subject without its node where it is an accelerator or NUMA node: slot1 of n1/slot1."""
    try:
        parsed = parse_subject(subject)
    except ValueError:
        return printable(subject, 80)
    return subject.split("/", 1)[1] if parsed.kind in ("gpu", "slot", "numa") else subject


@lru_cache(maxsize=2**16)
def node_of(subject: str) -> str | None:
    """The node of a subject, or None for the cluster, a pair or what is no subject."""
    try:
        return parse_subject(subject).node
    except ValueError:
        return None


def _params_key(params: Params) -> ParamsKey:
    return msgspec.json.encode(params, order="sorted") if params else b""


_Last = dict[tuple[str, str, ParamsKey], Measurement | NotMeasured]


def _last_attempts(run: Run) -> _Last:
    """One record a metric, subject and params: the highest attempt, and of equals the last written."""
    last: _Last = {}
    records: list[Measurement | NotMeasured] = [*run.measurements, *run.not_measured]
    for record in sorted(records, key=attrgetter("attempt", "number")):
        last[record.metric, record.subject, _params_key(record.params)] = record
    return last


def _grouped(last: _Last) -> dict[str, list[Group]]:
    found: dict[str, dict[ParamsKey, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for (name, subject, params), record in last.items():
        value = value_of(record) if isinstance(record, Measurement) and is_metric(name) else None
        if value is not None and isinstance(record, Measurement):
            found[name][params].append(Value(subject=subject, value=value, measurement=record))
    return {name: [_group(name, values) for values in by_params.values()] for name, by_params in found.items()}


def _group(name: str, values: list[Value]) -> Group:
    ordered = tuple(sorted(values, key=lambda each: natural(each.subject)))
    middle = statistics.median(each.value for each in ordered)
    return Group(metric=metric(name), params=ordered[0].measurement.params, values=ordered, median=middle)


_DTYPES = ("bf16", "bfloat16", "fp16", "float16", "tf32", "fp32", "float32", "fp8")


def _weight(group: Group) -> tuple[int, int, int, float]:
    params = group.params
    dtype = str(params.get("dtype", ""))
    rank = len(_DTYPES) - _DTYPES.index(dtype) if dtype in _DTYPES else 0
    sizes = [float(v) for k, v in params.items() if k in ("m", "n", "k", "bytes", "size_bytes") and _is_number(v)]
    return int(params.get("phase") == "sustained"), rank, len(group.values), sum(sizes)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
