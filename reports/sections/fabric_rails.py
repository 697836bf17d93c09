"""Fabric, rail by rail: what each rail of each node carries at its best, and what a node's NICs carry by themselves."""

import statistics
from collections import defaultdict

from msgspec import Struct

from ...evidence import parse_subject
from ...scoring.verdict import Verdict
from ..charts import Dot, Line, dots
from ..layout import Cell, Chart, Column, Part, Table, number, text
from ..measured import Measured, Value, params_label
from ..numbers import figure, number_of, percent, roughly
from ..plain_text import listed, natural, printable
from ..spread import NOTABLE, shows_nothing
from ..tables import MOST_ROWS
from .judged import failing, judged_chart

_MOST_OF_A_RAIL = 60  # dots
UNIT = "GB/s"


class Rail(Struct, frozen=True, kw_only=True):
    """A node's rail at its best: the fastest of its partners. Where a node has met one only, `owner` is the pair."""

    owner: str
    index: int
    value: float
    partners: int
    trial: str

    @property
    def name(self) -> str:
        """As people say it: n41 rail 5."""
        return f"{printable(self.owner, 120)} rail {self.index}"


def rails(measured: Measured) -> Part | None:
    """The part on rails; None where none was measured."""
    group = measured.main("rail.busbw")
    found = _rails(group.values) if group else []
    if not found or group is None:
        return None
    usual = statistics.median(one.value for one in found)
    slow = [one for one in found if one.value < (1 - 2 * NOTABLE) * usual]
    return Part(
        title="Rails",
        answer=_answer(found, slow, usual),
        chart=_chart(found, slow, usual, params_label(group.params)),
        tables=(*([_slow(slow, usual)] if slow else []), _by_rail(found)),
    )


def own_nics(measured: Measured, verdict: Verdict) -> Part | None:
    """The part on each node's NICs without its NVLinks; None where that was not measured."""
    group = measured.main("all_reduce.nic_busbw")
    if group is None:
        return None
    worst, middle = group.worst, figure(group.median, UNIT)
    flagged = sorted(failing(verdict, group.metric.name), key=natural)
    told = f"With NVLink, P2P and shared memory off a node's NICs carry {middle} on the median of {len(group.values):,}"
    told += f"; the slowest, {printable(worst.subject, 80)}, {figure(worst.value, UNIT)}."
    if flagged:
        told += f" Look at the NICs, cables and PCIe links of {listed(map(printable, flagged), 5)}."
    return Part(
        title="Each node's NICs alone",
        answer=told,
        chart=None if shows_nothing(group) else judged_chart(measured, verdict, group),
    )


def _rails(values: tuple[Value, ...]) -> list[Rail]:
    """Each node's rails, by the fastest partner: a rail of a pair is as fast as the slower of its ends."""
    met: dict[tuple[str, int], list[tuple[Value, str]]] = defaultdict(list)
    for each in values:
        place = _place(each.subject)
        for node in place[0] if place else ():
            assert place is not None
            met[(node, place[1])].append((each, each.subject.partition("/")[0]))
    single = {key for key, found in met.items() if len(found) == 1}
    rows: dict[tuple[str, int], Rail] = {}
    for (node, index), found in met.items():
        best, pair = max(found, key=lambda one: one[0].value)
        owner = pair if (node, index) in single and _both_single(pair, index, single) else node
        rows[(owner, index)] = Rail(
            owner=owner, index=index, value=best.value, partners=len(found), trial=best.measurement.trial or ""
        )
    return sorted(rows.values(), key=lambda one: (one.index, natural(one.owner)))


def _both_single(pair: str, index: int, single: set[tuple[str, int]]) -> bool:
    return all((node, index) in single for node in pair.split("~"))


def _place(subject: str) -> tuple[tuple[str, ...], int] | None:
    try:
        parsed = parse_subject(subject)
    except ValueError:
        return None
    return (parsed.nodes, int(subject.rpartition("/rail")[2])) if parsed.kind == "rail" else None


def _answer(found: list[Rail], slow: list[Rail], usual: float) -> str:
    told = f"A rail carries {figure(usual, UNIT)} on the median of {len(found):,}."
    if not slow:
        low = min(found, key=lambda one: one.value)
        return f"{told} The slowest, {low.name}, carries {percent(low.value / usual)} of that."
    worst = sorted(slow, key=lambda one: one.value)
    named = listed((f"{one.name} ({figure(one.value, UNIT)})" for one in worst), 3)
    return f"{told} Slow with each partner: {named}. Look at cable, NIC and switch port there."


def _chart(found: list[Rail], slow: list[Rail], usual: float, params: str) -> Chart:
    shown = [one for index in sorted({each.index for each in found}) for one in _slowest(found, index)]
    marks = [
        Dot(
            name=one.name, place=f"rail {one.index}", value=one.value, low=one.value, high=one.value, marked=one in slow
        )
        for one in shown
    ]  # fmt: skip
    title = _title(found, slow, usual)
    lines = [Line(value=usual, label=f"median {figure(usual, UNIT)}")]
    left = f" The slowest {_MOST_OF_A_RAIL} of each rail are drawn." if len(shown) < len(found) else ""
    return Chart(
        title=title,
        svg=dots(marks, unit=UNIT, axis=UNIT, lines=lines, label=f"{title}; table below."),
        note=f"{params}. A dot is a node's rail with its fastest partner.{left}",
    )


def _slowest(found: list[Rail], index: int) -> list[Rail]:
    return sorted((one for one in found if one.index == index), key=lambda one: one.value)[:_MOST_OF_A_RAIL]


def _title(found: list[Rail], slow: list[Rail], usual: float) -> str:
    if not slow:
        widest = max(abs(one.value / usual - 1) for one in found)
        return f"All {number_of(len(found), 'rail')} within {roughly(widest)} of their median"
    worst = min(slow, key=lambda one: one.value)
    one = f"{worst.name} is {roughly(1 - worst.value / usual)} below the median"
    return one if len(slow) == 1 else f"{len(slow)} of {number_of(len(found), 'rail')} are slow; {one}"


def _by_rail(found: list[Rail]) -> Table:
    heads = ("rail", "nodes", "least", "median", "most", "slowest")
    rows = []
    for index in sorted({one.index for one in found}):
        mine = sorted((one for one in found if one.index == index), key=lambda one: one.value)
        values = [one.value for one in mine]
        middle = statistics.median(values)
        figures = [number(each, figure(each, UNIT)) for each in (values[0], middle, values[-1])]
        rows.append((number(index, str(index)), number(len(mine), f"{len(mine):,}"), *figures, text(mine[0].owner)))
    columns = tuple(Column(title=head, numeric=place < 5) for place, head in enumerate(heads))
    return Table(caption="By rail", columns=columns, rows=tuple(rows), folded=True)


def _slow(slow: list[Rail], usual: float) -> Table:
    worst = sorted(slow, key=lambda one: one.value)
    left = f"{len(worst) - MOST_ROWS:,} more: `hwlottery export RUN --format csv`." if len(worst) > MOST_ROWS else ""
    heads = ("rail", "at its best", "share of median", "partners", "trial")
    columns = tuple(Column(title=head, numeric=place in (1, 2, 3)) for place, head in enumerate(heads))
    rows = tuple(_slow_row(one, usual) for one in worst[:MOST_ROWS])
    return Table(caption="Slow rails", columns=columns, rows=rows, note=left)


def _slow_row(one: Rail, usual: float) -> tuple[Cell, ...]:
    return (
        text(one.name, tone="fail"),
        number(one.value, figure(one.value, UNIT)),
        number(one.value / usual, percent(one.value / usual)),
        number(one.partners, str(one.partners)),
        text(printable(one.trial or "\N{EM DASH}", 40), code=True),
    )
