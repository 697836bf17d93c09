"""Derived metrics: computed here from measured ones, because they need a reference or more than one subject."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..evidence import Params, Promised, RunHeader, metric
from ..references import Accelerator
from .concurrency import concurrency_kept
from .facts import Facts
from .line_rate import rail_line_rate
from .scope import nodes_of
from .series import NO_KIND
from .values import Value, Values, params_key
from .words import counted, figure


class Figures:
    """Values of any metric, measured or derived."""

    def __init__(self, header: RunHeader, values: Values, facts: Facts) -> None:
        self.header = header
        self.measured = values
        self.facts = facts
        self._nodes = {node.node: node for node in header.promised}
        self._derived: dict[tuple[str, str], list[Value]] = {}
        self._peaks: dict[tuple[str, str, str, int], float | None] = {}
        self.shared: dict[object, Any] = {}  # what checks made of many values, for those that ask for the same

    def of(self, name: str, subject: str) -> list[Value]:
        """The values of a metric on a subject, one for each set of params; none where nothing is there."""
        derived = metric(name).derived
        if not derived and name not in _BELIEVABLE:
            return self.measured.of(name, subject)
        key = (name, subject)
        if key not in self._derived:
            if derived:
                self._derived[key] = _DERIVE[name](self, subject) if name in _DERIVE else []
            else:
                kind = self.kind_of(subject)
                found = self.measured.of(name, subject)
                self._derived[key] = found if kind is None else [_believed(self, name, kind, one) for one in found]
        return self._derived[key]

    def kind_of(self, subject: str) -> Accelerator | None:
        """The kind of an accelerator, or the one kind of all accelerators of a node."""
        node = self.node(subject)
        return self.facts.accelerator(subject) if node is None else self.facts.accelerator_of_node(node)

    def node(self, name: str) -> Promised | None:
        """A promised node."""
        return self._nodes.get(name)

    def peak(self, kind: Accelerator, of: str, dtype: str, ranks: int = 0) -> float | None:
        """The peak of a kind of accelerator in the unit of `of`, for products the dense one of that dtype."""
        key = (kind.key, of, dtype, ranks)
        if key not in self._peaks:
            params: Params = {"dtype": dtype, "ranks": ranks}
            self._peaks[key] = self.facts.references.figure(kind, of, params, "peak")
        return self._peaks[key]


def _over_peak(of: str, default_dtype: str) -> Callable[[Figures, str], list[Value]]:
    """A rate over the accelerator's dense peak at its dtype."""

    def derive(figures: Figures, subject: str) -> list[Value]:
        kind = figures.facts.accelerator(subject)
        return [_share_of_peak(figures, subject, kind, value, default_dtype) for value in figures.of(of, subject)]

    return derive


def _share_of_peak(
    figures: Figures, subject: str, kind: Accelerator | None, value: Value, default_dtype: str
) -> Value:  # fmt: skip
    if value.value is None:
        return value
    dtype = value.params.get("dtype", default_dtype)
    peak = figures.peak(kind, "matmul.tflops", str(dtype)) if kind else None
    if peak is None:
        name = figures.facts.get(subject, "accelerator.name")
        known = f"no peak for {name} at {dtype}" if name is not None else "the accelerator's name was not recorded"
        return _without_value(value, "no_reference", known)
    earlier = tuple(number / peak for number in value.earlier)
    return msgspec.structs.replace(value, value=value.value / peak, earlier=earlier)


# Metrics that the accelerator's own peak bounds, and by how much a figure may be above it. Clocks above the one of the
# data sheet and its rounding give 1.05. Bus bandwidth is no wire speed: switches that reduce move each byte once where
# a ring moves it twice, which by the formula is up to 2(n-1)/n of the link.
_BELIEVABLE: dict[str, tuple[str, float]] = {
    "matmul.tflops": ("matmul.tflops", 1.05),
    "burn_in.model_tflops": ("matmul.tflops", 1.05),
    "memory.copy": ("memory.copy", 1.05),
    "memory.triad": ("memory.triad", 1.05),
    "all_reduce.busbw": ("all_reduce.busbw", 2.0),
}


def _believed(figures: Figures, name: str, kind: Accelerator, value: Value) -> Value:
    """The value, unless an attempt is above what the accelerator can do at all: the clock or the work was wrong."""
    of, most = _BELIEVABLE[name]
    numbers = value.earlier if value.value is None else (value.value, *value.earlier)
    if not numbers:
        return value
    ranks = value.params.get("ranks", 0)
    peak = figures.peak(kind, of, str(value.params.get("dtype", "bf16")), ranks if isinstance(ranks, int) else 0)
    if peak is None or max(numbers) <= most * peak:
        return value
    unit = metric(name).unit
    told = f"{figure(max(numbers), unit)} is not possible: the peak of {kind.key} is {figure(peak, unit)}"
    return _without_value(value, "parse_error", told)


def _spread(figures: Figures, subject: str) -> list[Value]:
    """(median - slowest) / median over a node's accelerators, for each set of params that any of them has."""
    node = figures.node(subject)
    if node is None or len(node.ranks) < 2:
        return [Value(params={}, value=None, reason="unsupported", detail="needs two accelerators")]
    by_params: dict[object, list[Value]] = {}
    for rank in node.ranks:
        for value in figures.of("matmul.tflops", f"{subject}/{rank}"):
            key = params_key(value.params) if value.like == NO_KIND else value.like
            by_params.setdefault(key, []).append(value)
    return [_slowest_below_median(values, len(node.ranks)) for values in by_params.values()]


def _slowest_below_median(values: list[Value], ranks: int) -> Value:
    numbers = [value.value for value in values if value.value is not None]
    if len(numbers) < ranks:
        return _without_value(
            values[0], "not_returned", f"{len(numbers)} of {counted(ranks, 'accelerator')} have a value"
        )
    middle = statistics.median(numbers)
    if middle <= 0:
        return _without_value(values[0], "not_finite", "the median is not above 0")
    trials = tuple(dict.fromkeys(trial for value in values for trial in value.trials))
    first = values[0]
    return Value(
        params=first.params, kind=first.kind, like=first.like, value=(middle - min(numbers)) / middle, trials=trials,
        samples=len(numbers),
    )  # fmt: skip


def straggler_loss(figures: Figures, subjects: Sequence[str]) -> float | None:
    """1 - median / slowest of the compute times of these ranks; None unless each has one above 0."""
    values = [value.value for subject in subjects for value in figures.measured.of("burn_in.compute", subject)]
    numbers = [number for number in values if number is not None and number > 0]
    if not numbers or len(numbers) < max(len(values), len(subjects)):
        return None
    return 1 - statistics.median(numbers) / max(numbers)


def _straggler_loss(figures: Figures, _subject: str) -> list[Value]:
    """The loss over the ranks that took part in the burn-in."""
    subjects = figures.measured.subjects("burn_in.compute")
    values = [value for subject in subjects for value in figures.measured.of("burn_in.compute", subject)]
    if not values:
        return []
    loss = straggler_loss(figures, subjects)
    if loss is None:
        return [_without_value(values[0], "not_returned", "not every rank of the burn-in has a compute time above 0")]
    trials = tuple(dict.fromkeys(trial for value in values for trial in value.trials))
    return [Value(params={}, value=loss, trials=trials, samples=len(values))]


def _without_value(value: Value, reason: str, detail: str) -> Value:
    return msgspec.structs.replace(value, value=None, reason=reason, detail=detail, earlier=())


def _share_of_line(figures: Figures, subject: str) -> list[Value]:
    """A rail's bandwidth over the line rate of its NICs, those of the slower end."""
    nodes = [node for name in nodes_of(subject) if (node := figures.node(name))]
    lines = [rail_line_rate(figures.facts, node) for node in nodes]
    known = [line for line in lines if line]
    line = min(known) if len(known) == len(lines) == 2 else None
    return [_over_line(value, line) for value in figures.of("rail.busbw", subject)]


def _over_line(value: Value, line: float | None) -> Value:
    if value.value is None:
        return value
    if line is None:
        return _without_value(value, "no_reference", "the line rate is not known: no RDMA port was seen up")
    share = value.value / line
    most = metric("rail.line_share").possible
    if not most.holds(share):
        told = f"{figure(value.value, 'GB/s')} is more than a line of {figure(line, 'GB/s')} carries"
        return _without_value(value, "parse_error", told)
    return msgspec.structs.replace(value, value=share, earlier=tuple(one / line for one in value.earlier))


# A burn-in trains in bf16 unless its params say otherwise.
_DERIVE: dict[str, Callable[[Figures, str], list[Value]]] = {
    "matmul.mfu": _over_peak("matmul.tflops", "bf16"),
    "burn_in.mfu": _over_peak("burn_in.model_tflops", "bf16"),
    "matmul.spread": _spread,
    "rail.line_share": _share_of_line,
    "fabric.concurrency_kept": concurrency_kept,
    "burn_in.straggler_loss": _straggler_loss,
}
DERIVABLE = frozenset(_DERIVE)
