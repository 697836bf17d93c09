"""Stack friction: what stood between the first command and the first useful work, from the records of a run."""

from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from ..evidence import Run

_FIRST_WORK = "all_reduce."


class Differing(Struct, frozen=True, kw_only=True):
    """A piece of software of which nodes have several versions: the nodes by version, the most common first."""

    name: str
    versions: tuple[tuple[str, tuple[str, ...]], ...]


class Friction(Struct, frozen=True, kw_only=True):
    """`first_all_reduce_s`: from the first command to the end of the first trial that summed data, None where none
    ended well. `never_joined`: promised nodes that never did. `missing_tools`: the nodes by what they lacked.
    `starts`: how often the run was begun."""

    first_all_reduce_s: float | None
    never_joined: tuple[str, ...]
    missing_tools: tuple[tuple[str, tuple[str, ...]], ...]
    differing: tuple[Differing, ...]
    starts: int


def friction_of(run: Run) -> Friction:
    """What a run tells of it."""
    joined = {event.subject for event in run.events if event.kind == "node_joined"}
    return Friction(
        first_all_reduce_s=_first_all_reduce(run),
        never_joined=tuple(node.node for node in run.header.promised if node.node not in joined),
        missing_tools=tuple(_missing_tools(run)),
        differing=tuple(_differing(run)),
        starts=len(run.header.segments),
    )


def _first_all_reduce(run: Run) -> float | None:
    sums = {plan.trial for plan in run.plans if any(fill.metric.startswith(_FIRST_WORK) for fill in plan.fills)}
    ended = (e.time for e in run.events if e.kind == "trial_ended" and e.outcome == "finished" and e.trial in sums)
    first = min(ended, default=None)
    return None if first is None or run.started is None else (first - run.started).total_seconds()


def _missing_tools(run: Run) -> Iterator[tuple[str, tuple[str, ...]]]:
    """By what the probe said of it, which names the tool."""
    lacking: dict[str, set[str]] = defaultdict(set)
    for record in run.not_measured:
        if record.reason == "tool_missing":
            lacking[record.detail or record.metric].add(record.subject.partition("/")[0])
    yield from ((tool, tuple(sorted(nodes))) for tool, nodes in sorted(lacking.items()))


def _differing(run: Run) -> Iterator[Differing]:
    """Of the last start: an earlier one may have had other nodes."""
    by_name: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node, software in (run.header.segments[-1].software if run.header.segments else {}).items():
        for name, version in software.items():
            by_name[name][version].append(node)
    for name, versions in sorted(by_name.items()):
        if len(versions) > 1:
            ordered = sorted(versions.items(), key=lambda one: (-len(one[1]), one[0]))
            yield Differing(name=name, versions=tuple((version, tuple(sorted(nodes))) for version, nodes in ordered))
