"""What of a run is compared: a figure a metric, with how sure the run itself is of it.

A figure is the median over the subjects of the nodes that would be kept; differences are those of logarithms. Its error
is that of a median over nodes drawn at random: another rental brings other nodes.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, log
from typing import Literal, NamedTuple

from msgspec import Struct

from ..evidence import Params, Promised, parse_subject
from .derived import Figures
from .scope import nodes_of
from .statistics import error_of_median
from .values import ParamsKey, Value, params_key
from .words import counted

Each = Literal["accelerator", "node", "pair", "cluster", "filesystem"]
# The standard error of a median of normal numbers is sqrt(pi/2) times that of their mean.
_OF_A_MEDIAN = 1.2533
_DTYPES = ("bf16", "fp16", "fp32")  # which products are compared, where several were measured


class Compared(Struct, frozen=True, kw_only=True):
    """A metric that runs are compared by. `same_kind`: only between accelerators of one kind; `a_device`: the figure is
    divided by the accelerators of the node or cluster; `probe`: whose method must be the same."""

    key: str
    title: str
    metric: str
    each: Each
    probe: str
    category: Literal["compute", "memory", "fabric", "storage", "training"]
    where: Params = {}
    same_kind: bool = True
    a_device: bool = False


TRAINING = Compared(
    key="training", title="Training speed", metric="burn_in.model_tflops", each="accelerator", probe="burn_in",
    category="training", same_kind=False,
)  # fmt: skip
COMPARED: tuple[Compared, ...] = (
    TRAINING,
    Compared(
        key="products", title="Matrix products under load", metric="matmul.tflops", each="accelerator", probe="matmul",
        category="compute", where={"phase": "sustained"},
    ),
    Compared(
        key="memory", title="Device memory", metric="memory.copy", each="accelerator", probe="memory",
        category="memory",
    ),
    Compared(
        key="host_link", title="Host to device", metric="memory.host_to_device", each="accelerator", probe="memory",
        category="memory",
    ),
    Compared(
        key="node_reduce", title="All-reduce within a node", metric="all_reduce.busbw", each="node", probe="all_reduce",
        category="fabric",
    ),
    Compared(
        key="pair_reduce", title="All-reduce of two nodes", metric="all_reduce.busbw", each="pair", probe="pairs",
        category="fabric",
    ),
    Compared(
        key="cluster_reduce", title="All-reduce over all nodes", metric="all_reduce.busbw", each="cluster",
        probe="pairs", category="fabric",
    ),
    Compared(
        key="save", title="Checkpoint writes an accelerator", metric="checkpoint.write_rate", each="filesystem",
        probe="checkpoint", category="storage", same_kind=False, a_device=True,
    ),
    Compared(
        key="load", title="Checkpoint read back", metric="checkpoint.read_back", each="filesystem", probe="checkpoint",
        category="storage", same_kind=False,
    ),
)  # fmt: skip


class Figure(Struct, frozen=True, kw_only=True):
    """A figure in the metric's unit (an accelerator's, where it is divided). `error` is its relative standard error
    within the run, `degrees` the degrees of freedom of that error, `subjects` over how many it was taken."""

    value: float
    error: float
    degrees: float
    subjects: int


class Lacking(NamedTuple):
    """Why a run has no such figure."""

    why: str


Settings = Mapping[ParamsKey, Figure]  # by the params that a figure was measured with


def figures_of(what: Compared, figures: Figures, out: Sequence[str]) -> Settings | Lacking:
    """The figures of a run, one for each set of params that every kept subject was measured with."""
    nodes = [node for node in figures.header.promised if node.node not in out]
    subjects = list(_SUBJECTS[what.each](figures, nodes, what))
    if not subjects:
        return Lacking("no such subject")
    found: dict[ParamsKey, dict[str, list[Value]]] = {}
    for subject in subjects:
        for value in figures.of(what.metric, subject):
            if all(value.params.get(key) == asked for key, asked in what.where.items()):
                found.setdefault(params_key(value.params), {}).setdefault(subject, []).append(value)
    if not found:
        return Lacking("not measured")
    made = {key: _figure(what, of, subjects, nodes) for key, of in found.items()}
    whole = {key: one for key, one in made.items() if isinstance(one, Figure)}
    return whole or next(one for one in made.values() if isinstance(one, Lacking))


def _figure(
    what: Compared, found: Mapping[str, list[Value]], subjects: Sequence[str], nodes: Sequence[Promised]
) -> Figure | Lacking:
    """The figure of one set of params. Every subject must have a value above 0, of pairs every node must have one."""
    values = {subject: max(found[subject], key=lambda one: one.attempts) for subject in subjects if subject in found}
    numbers = {s: v.value for s, v in values.items() if v.value is not None and 0 < v.value < inf}
    if what.each == "pair":
        met = {node for subject in numbers for node in nodes_of(subject)}
        missing, of = sum(node.node not in met for node in nodes), "node"
    else:
        missing, of = len(subjects) - len(numbers), what.each
    if missing or not numbers:
        return Lacking(f"{counted(missing, of)} of {len(nodes) if of == 'node' else len(subjects)} without a value")
    noise = next(iter(values.values())) if len(numbers) == 1 else None
    shared = what.a_device and {subject: _devices(subject, values[subject], nodes) for subject in numbers}
    by_node: dict[str, list[float]] = {}
    for subject, number in numbers.items():
        for node in nodes_of(subject) or ("cluster",):
            by_node.setdefault(node, []).append(number / (shared[subject] if shared else 1))
    return spread_figure(by_node, noise)


def spread_figure(by_node: Mapping[str, Sequence[float]], alone: Value | None = None) -> Figure:
    """The median over all values, with its error by the spread over nodes, over the subjects where there are under
    three nodes, of a single value by the spread of its samples, where those are known."""
    every = [number for values in by_node.values() for number in values]
    logs = [log(statistics.median(values)) for values in by_node.values()]
    if len(logs) < 3:
        logs = [log(number) for number in every]
    if len(logs) > 1:
        error, degrees = _OF_A_MEDIAN * statistics.stdev(logs) / len(logs) ** 0.5, float(len(logs) - 1)
    elif alone is not None and alone.noise is not None and alone.samples > 1:
        error, degrees = error_of_median(alone.noise, alone.samples), float(alone.samples - 1)
    else:
        error, degrees = 0.0, inf
    return Figure(value=statistics.median(every), error=error, degrees=degrees, subjects=len(every))


def _devices(subject: str, value: Value, nodes: Sequence[Promised]) -> int:
    """How many accelerators share a filesystem's rate: those that wrote, else the node's, else all."""
    ranks = value.params.get("ranks")
    if isinstance(ranks, int) and not isinstance(ranks, bool) and ranks > 0:
        return ranks
    on = nodes_of(subject)
    return max(1, sum(len(node.ranks) for node in nodes if not on or node.node in on))


def chosen(settings: Sequence[Settings]) -> ParamsKey | None:
    """The params that most runs share; of several the usual dtype, then the largest size. None where none has any."""
    counts: dict[ParamsKey, int] = {}
    for one in settings:
        for key in one:
            counts[key] = counts.get(key, 0) + 1
    return max(counts, key=lambda key: (counts[key], *_preferred(dict(key)), repr(key)), default=None)


def _preferred(params: Params) -> tuple[int, float]:
    dtype = params.get("dtype")
    size = 1.0
    for name in ("bytes", "bytes_per_rank", "m", "n", "k", "nodes"):
        number = params.get(name)
        if isinstance(number, int | float) and number > 0:
            size *= number
    return (-_DTYPES.index(dtype) if dtype in _DTYPES else -len(_DTYPES)), size


# --- subjects --------------------------------------------------------------------------------------------------------


def _accelerators(_: Figures, nodes: Sequence[Promised], __: Compared) -> Iterator[str]:
    return (f"{node.node}/{rank}" for node in nodes for rank in node.ranks)


def _nodes(_: Figures, nodes: Sequence[Promised], __: Compared) -> Iterator[str]:
    return (node.node for node in nodes)


def _pairs(figures: Figures, nodes: Sequence[Promised], what: Compared) -> Iterator[str]:
    """The pairs that were measured, both of their nodes among those kept."""
    names = {node.node for node in nodes}
    return (
        subject
        for subject in figures.measured.subjects(what.metric)
        if _kind(subject) == "pair" and names.issuperset(nodes_of(subject))
    )


def _cluster(_: Figures, nodes: Sequence[Promised], __: Compared) -> Iterator[str]:
    return iter(["cluster"] if len(nodes) > 1 else [])


def _filesystems(figures: Figures, nodes: Sequence[Promised], _: Compared) -> Iterator[str]:
    names = {node.node for node in nodes}
    return (subject for subject in figures.header.filesystems if names.issuperset(nodes_of(subject)))


def _kind(subject: str) -> str:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return ""


_SUBJECTS: dict[Each, Callable[[Figures, Sequence[Promised], Compared], Iterator[str]]] = {
    "accelerator": _accelerators,
    "node": _nodes,
    "pair": _pairs,
    "cluster": _cluster,
    "filesystem": _filesystems,
}
