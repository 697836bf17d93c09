"""Fabric, small messages: their latency on every pair, and where they stalled."""

from collections.abc import Iterator

from ..layout import Column, Part, Table, number, text
from ..measured import Group, Measured, Value
from ..numbers import figure, number_of, size
from ..plain_text import listed, printable
from ..tables import MOST_ROWS

_FEWEST = 2  # stalls of a pair that count: one may be a hiccup of the host


def small_messages(measured: Measured) -> Part | None:
    """The part on latency and stalls of pairs; None where neither was measured."""
    latency = _of_pairs(measured, "all_reduce.latency")
    stalls = _of_pairs(measured, "all_reduce.stalls")
    if latency is None and stalls is None:
        return None
    table = _stalled(stalls) if stalls else None
    return Part(
        title="Small messages",
        answer=" ".join([*_latency_words(latency), *_stall_words(stalls)]),
        tables=(table,) if table else (),
    )


def _of_pairs(measured: Measured, name: str) -> Group | None:
    """The fullest group of pairs, with these alone."""
    groups = (group for group in measured.groups(name) if any("~" in each.subject for each in group.values))
    return max(groups, key=lambda group: len(group.values), default=None)


def _latency_words(group: Group | None) -> Iterator[str]:
    if group is None:
        yield "Latency of pairs was not measured."
        return
    at, middle, worst = _at(group), figure(group.median, "s"), group.worst
    if len(group.values) == 1:
        yield f"An all-reduce {at} takes {middle} on {printable(worst.subject, 160)}."
        return
    slowest = f"{figure(worst.value, 's')} on the slowest, {printable(worst.subject, 160)}"
    yield f"An all-reduce {at} takes {middle} on the median of {number_of(len(group.values), 'pair')}, {slowest}."


def _at(group: Group) -> str:
    count = group.params.get("bytes")
    return f"of {size(count)}" if isinstance(count, int | float) else "of a small message"


def _stall_words(group: Group | None) -> Iterator[str]:
    if group is None:
        yield "Stalls were not counted."
        return
    stalled = [each for each in group.worst_first if each.value > 0]
    if not stalled:
        yield f"No small message stalled on any of {number_of(len(group.values), 'pair')}."
        return
    names = listed((printable(each.subject, 160) for each in stalled), 3)
    yield f"Small messages stalled on {number_of(len(stalled), 'pair')}: {names}."
    common = _common(stalled)
    if common:
        yield f"All are {common}'s: look for lost packets in the error counters of its NIC, cable and switch port."


def _common(stalled: list[Value]) -> str:
    """The node that two stalling pairs or more share; empty where none is in all."""
    nodes = [set(each.subject.partition("/")[0].split("~")) for each in stalled if each.value >= _FEWEST]
    shared = set.intersection(*nodes) if len(nodes) > 1 else set()
    return printable(shared.pop(), 80) if len(shared) == 1 else ""


def _stalled(group: Group) -> Table | None:
    stalled = [each for each in group.worst_first if each.value > 0]
    if not stalled:
        return None
    rows = tuple(
        (
            text(printable(each.subject, 160), code=True),
            number(each.value, f"{each.value:,.0f}", tone="fail" if each.value >= _FEWEST else ""),
            text(printable(each.measurement.trial or "\N{EM DASH}", 40), code=True),
        )
        for each in stalled[:MOST_ROWS]
    )
    more = len(stalled) - MOST_ROWS
    left = f"{more:,} more: `hwlottery export RUN --format csv`." if more > 0 else ""
    columns = (Column(title="pair"), Column(title="stalls", numeric=True), Column(title="trial"))
    note = f"A stall is a small message that waited 0.1 s or more: a lost packet was sent again. {left}".strip()
    return Table(caption="Pairs whose small messages stalled", columns=columns, rows=rows, note=note)
