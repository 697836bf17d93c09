"""Fabric, node by node: what each can do with good partners, with its interval."""

from ...fabric import Capability, Culprit
from ...scoring.verdict import Verdict
from ..charts import Dot, Line, dots
from ..layout import Chart, Column, Part, Table, number, text
from ..numbers import figure, number_of, roughly
from ..pairs_seen import UNIT, PairsSeen
from ..plain_text import listed, natural, printable
from ..tables import MOST_ROWS

MOST_SHOWN = 20  # nodes with a row in the chart


def each_node(seen: PairsSeen, verdict: Verdict) -> Part | None:
    """The part on nodes; None where there is one pair, which has nothing to be compared with."""
    able = _abilities(seen)
    if len(able) < 2 or len(seen.levels.of) < 2:
        return None
    table = _table(verdict)
    return Part(
        title="Each node at its best",
        answer=_answer(seen, able),
        chart=_chart(seen, able),
        tables=(table,) if table else (),
    )


def _abilities(seen: PairsSeen) -> list[Dot]:
    """The nodes of which something can be said, the slowest first, in GB/s."""
    top = seen.levels.ceiling
    slow = {each.node: each for each in seen.blame.nodes if each.node}
    known: dict[str, Capability | Culprit] = {**seen.blame.capabilities, **slow}
    found = [
        Dot(
            name=printable(node, 60), place=node, value=one.share * top, low=max(0.0, one.low * top),
            high=one.high * top, marked=node in slow,
        )
        for node, one in known.items()
    ]  # fmt: skip
    return sorted(found, key=lambda one: (one.value, natural(one.name)))


def _answer(seen: PairsSeen, able: list[Dot]) -> str:
    low, high = able[0], able[-1]
    told = f"With good partners the nodes reach {figure(low.value)} ({low.name}) to {figure(high.value, UNIT)}."
    doubted = sorted({node for each in seen.blame.undecided for node in each.nodes}, key=natural)
    if doubted:
        told += f" Not told apart, so not shown: {listed((printable(node, 80) for node in doubted), 6)}."
    if seen.blame.hidden:
        names = (printable(node, 80) for node in seen.blame.hidden)
        told += f" Of {listed(names, 6)} nothing can be said: slow partners only."
    return told


def _chart(seen: PairsSeen, able: list[Dot]) -> Chart:
    shown = able[:MOST_SHOWN]
    lines = [
        Line(value=seen.levels.ceiling, label=f"usual {seen.rate(1.0)}"),
        Line(value=seen.least * seen.levels.ceiling, label=f"slow below {seen.rate(seen.least)}"),
    ]
    title = _title(seen, able)
    note = "A dot is what a node can do with good partners, its bar the 95 % interval. The slowest first."
    rest = able[MOST_SHOWN:]
    if rest:
        note += f" {number_of(len(rest), 'more node')}, from {figure(rest[0].value)} to {figure(rest[-1].value, UNIT)}."
    svg = dots(shown, unit=UNIT, axis=UNIT, lines=lines, label=f"{title}; table below.")
    return Chart(title=title, svg=svg, note=note)


def _title(seen: PairsSeen, able: list[Dot]) -> str:
    slow = [one for one in able if one.marked]
    if slow:
        loss = roughly(1 - slow[0].value / seen.levels.ceiling)
        one = f"{slow[0].name} is {loss} below the usual"
        return one if len(slow) == 1 else f"{len(slow)} of {number_of(len(able), 'node')} are slow; {one}"
    widest = max(abs(one.value / seen.levels.ceiling - 1) for one in able)
    return f"{number_of(len(able), 'node')} within {roughly(widest)} of the usual"


def _table(verdict: Verdict) -> Table | None:
    """What the verdict says of each node's pairs, the slowest first; folded where all pass."""
    found = [f for f in verdict.findings if f.check == "pairs.nodes"]
    if not found:
        return None
    found.sort(key=lambda one: (_order(one.observed), natural(one.subject)))
    rows = tuple(
        (
            text(printable(one.subject, 80), code=True),
            number(_order(one.observed), figure(one.observed, one.unit)),
            text(printable(one.result.replace("_", " "), 20), tone="" if one.result == "pass" else one.result),
            text(printable(one.detail, 300)),
            text(printable(one.action, 300) if one.result != "pass" else "\N{EM DASH}"),
        )
        for one in found[:MOST_ROWS]
    )
    heads = ("node", "with good partners", "result", "how known", "what next")
    left = f"{len(found) - MOST_ROWS:,} more are in verdict.json." if len(found) > MOST_ROWS else ""
    return Table(
        caption="What each node can do",
        columns=tuple(Column(title=head, numeric=head == "with good partners") for head in heads),
        rows=rows,
        note=left,
        folded=all(one.result == "pass" for one in found),
    )


def _order(observed: object) -> float:
    return float(observed) if isinstance(observed, int | float) and not isinstance(observed, bool) else 0.0
