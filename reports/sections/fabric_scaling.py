"""Fabric as a whole: bandwidth over all nodes, half of them, a quarter; latency and stalls of small messages."""

from msgspec import Struct

from ..curves import Point, against
from ..layout import Cell, Chart, Column, Part, Table, number, text
from ..measured import Group, Measured, Value
from ..numbers import figure, number_of, percent, size
from ..pairs_seen import UNIT, PairsSeen

_NODES = "nodes"


class Step(Struct, frozen=True, kw_only=True):
    """What so many nodes reach together, with the largest messages."""

    nodes: int
    group: Group
    value: Value


def scaling(measured: Measured, seen: PairsSeen | None) -> Part | None:
    """The part on ever more nodes at once; None without such a figure."""
    steps = _steps(measured)
    if not steps:
        return None
    usual = seen.levels.ceiling if seen else None
    return Part(
        title="More nodes at once",
        answer=_answer(steps, usual),
        chart=_chart(steps, usual) if len(steps) > 1 else None,
        tables=(_table(measured, steps, usual),),
    )


def _steps(measured: Measured) -> list[Step]:
    """By number of nodes, the fewest first."""
    found: dict[int, Step] = {}
    for group in measured.groups("all_reduce.busbw"):
        count = group.params.get(_NODES)
        value = next((each for each in group.values if each.subject == "cluster"), None)
        if value is None or not isinstance(count, int) or isinstance(count, bool):
            continue
        if count not in found or _bytes(group) > _bytes(found[count].group):
            found[count] = Step(nodes=count, group=group, value=value)
    return [found[count] for count in sorted(found)]


def _bytes(group: Group) -> float:
    count = group.params.get("bytes", 0)
    return float(count) if isinstance(count, int | float) else 0.0


def _answer(steps: list[Step], usual: float | None) -> str:
    last = steps[-1]
    told = f"{number_of(last.nodes, 'node')} together reach {figure(last.value.value, UNIT)} of bus bandwidth"
    told += f" at {size(_bytes(last.group))}"
    if usual:
        told += f", {percent(last.value.value / usual)} of a good pair's. Ideally it would stay the same"
    return told + "."


def _chart(steps: list[Step], usual: float | None) -> Chart:
    points = [
        Point(place=str(step.nodes), value=step.value.value, low=step.value.low, high=step.value.high) for step in steps
    ]
    ideal = (usual, f"a good pair {figure(usual, UNIT)}") if usual else None
    title = _title(steps)
    svg = against(points, ideal, unit=UNIT, x="nodes", y=f"bus bandwidth, {UNIT}", label=f"{title}; table below.")
    return Chart(title=title, svg=svg, note="Line: median of the iterations. Band: slowest to fastest.")


def _title(steps: list[Step]) -> str:
    first, last = steps[0], steps[-1]
    kept = last.value.value / first.value.value if first.value.value > 0 else None
    if kept is None:
        return f"Bus bandwidth over {first.nodes} to {last.nodes} nodes"
    verb = "stays at" if kept >= 0.98 else "falls to"
    return f"From {first.nodes} to {last.nodes} nodes bus bandwidth {verb} {percent(kept)}"


def _table(measured: Measured, steps: list[Step], usual: float | None) -> Table:
    heads = ("nodes", "ranks", "bus bandwidth", "of a good pair", "small message", "stalls", "wrong elements")
    return Table(
        caption=f"All-reduce over ever more nodes, {size(_bytes(steps[-1].group))}",
        columns=tuple(Column(title=head, numeric=True) for head in heads),
        rows=tuple(_row(measured, step, usual) for step in reversed(steps)),
        note="A stall is a small message that waited 0.1 s or more: a lost packet was sent again.",
    )


def _row(measured: Measured, step: Step, usual: float | None) -> tuple[Cell, ...]:
    ranks = step.group.params.get("ranks")
    share = step.value.value / usual if usual else None
    latency = _beside(measured, "all_reduce.latency", step.nodes)
    stalls = _beside(measured, "all_reduce.stalls", step.nodes)
    wrong = _beside(measured, "all_reduce.wrong_elements", step.nodes)
    return (
        number(step.nodes, f"{step.nodes:,}"),
        text(f"{ranks:,}") if isinstance(ranks, int) else text("\N{EM DASH}"),
        number(step.value.value, figure(step.value.value, UNIT)),
        number(share, "\N{EM DASH}" if share is None else percent(share)),
        number(latency, figure(latency, "s")),
        number(stalls, figure(stalls), tone="fail" if stalls else ""),
        number(wrong, figure(wrong), tone="fail" if wrong else ""),
    )


def _beside(measured: Measured, name: str, nodes: int) -> float | None:
    """The worst value of another metric over so many nodes; None where it was not measured."""
    values = [
        each.value
        for group in measured.groups(name)
        if group.params.get(_NODES) == nodes
        for each in group.values
        if each.subject == "cluster"
    ]
    return max(values, default=None)
