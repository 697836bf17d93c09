"""Fabric: all-reduce bandwidth by message size, and whether its sums are right."""

from ...scoring.verdict import Verdict
from ..curves import Point, curves
from ..layout import Chart, Section
from ..measured import Group, Measured, Value, params_label
from ..numbers import figure, number_of, size
from ..plain_text import listed, natural
from ..spread import NOTABLE, lagging, spread_title
from ..tables import aggregates, gaps, worst
from .fabric_pairs import capabilities, pair_matrix
from .judged import failing, nonzero, not_measured

_SIZE_KEYS = ("bytes", "size_bytes", "message_bytes", "size")
_MOST_CURVES = 64


def fabric(measured: Measured, verdict: Verdict) -> Section:
    """The section on collectives."""
    families = size_families(measured.groups("all_reduce.busbw"))
    by_size = families[0] if families else []
    main = by_size[-1] if by_size else measured.main("all_reduce.busbw")
    flagged = failing(verdict, "all_reduce.busbw")
    tables = [aggregates(measured, measured.metrics("all_reduce."))]
    if main and len(main.values) > 1:
        tables.append(worst(main, marked=flagged))
    return Section(
        anchor="fabric",
        title="Fabric",
        answer=_answer(measured, [family[-1] for family in families] or [main])
        if main
        else not_measured(measured, "all_reduce."),
        chart=_chart(by_size, flagged) if len(by_size) > 1 else None,
        matrix=pair_matrix(measured, verdict),
        tables=tuple(table for table in (*tables, capabilities(verdict)) if table),
        gaps=gaps(measured.missing("all_reduce.")),
        method=(
            "All-reduce after warm-up; a sample is one iteration. Bus bandwidth is 2(n-1)/n times the bytes over the "
            "slowest rank's time, comparable across numbers of ranks.",
            "Transfer is the fastest rank's time, skew the slowest minus the fastest.",
            "Every element of every result is compared with the exact sum.",
            "A pair is as fast as the slowest of its two nodes and its link; suspects were measured again, alone.",
        ),
        source=("nccl-tests, PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"),
        cannot_tell="Bus bandwidth is not a wire speed: inside a node the switches may reduce on the way.",
    )


def size_families(groups: list[Group]) -> list[list[Group]]:
    """Groups that differ in message size alone, small sizes first; the family of the most subjects leads."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        if message_size(group) is not None:
            rest = {key: value for key, value in group.params.items() if key not in _SIZE_KEYS}
            found.setdefault(repr(sorted(rest.items())), []).append(group)
    ordered = [sorted(family, key=lambda group: message_size(group) or 0.0) for family in found.values()]
    return sorted(ordered, key=lambda family: len(family[-1].values), reverse=True)


def message_size(group: Group) -> float | None:
    """The bytes of a group's messages, or None where its params do not say."""
    for key in _SIZE_KEYS:
        value = group.params.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _answer(measured: Measured, largest: list[Group]) -> str:
    told = "; ".join(_reach(group) for group in largest[:3])
    return f"All-reduce reaches {told}. {_right(measured)}"


def _reach(group: Group) -> str:
    unit, at = group.metric.unit, params_label(group.params)
    if len(group.values) == 1:
        only = group.values[0]
        where = "over the cluster" if only.subject == "cluster" else f"on {only.subject}"
        return f"{figure(only.value, unit)} of bus bandwidth {where} ({at})"
    low = group.worst
    slowest = f"the slowest, {low.subject}, {figure(low.value, unit)}"
    return f"{figure(group.median, unit)} on the median of {_groups(group)} ({at}), {slowest}"


def _groups(main: Group) -> str:
    return (
        number_of(len(main.values), "node")
        if "~" not in main.values[0].subject
        else number_of(len(main.values), "pair")
    )


def _right(measured: Measured) -> str:
    looked = nonzero(measured, "all_reduce.wrong_elements")
    if looked is None:
        return "Whether the sums are right was not measured."
    return f"Wrong sums on {listed(looked[1])}." if looked[1] else "Every element of every sum was right."


def _chart(by_size: list[Group], flagged: frozenset[str]) -> Chart:
    largest = by_size[-1]
    behind = {each.subject for each in lagging(largest)}
    marked = behind | (flagged & {each.subject for each in largest.values})
    subjects = _shown(largest, marked)
    named = [(subject, _points(by_size, subject), subject in marked) for subject in subjects]
    title = _title(by_size, largest, sorted(marked, key=natural))
    svg = curves(named, unit="GB/s", x="message size", y="bus bandwidth, GB/s", label=f"{title}; table below.")
    alone = len(named) == 1
    note = "Line: median of the iterations. Band: slowest to fastest." if alone else "A line is one node or pair."
    return Chart(title=title, svg=svg, note=note)


def _title(by_size: list[Group], largest: Group, marked: list[str]) -> str:
    at = size(message_size(largest) or 0.0)
    if len(largest.values) > 1:
        return f"{spread_title(largest)}, at {at}"
    peak = max(by_size, key=lambda group: group.median)
    fast, unit = figure(peak.median, "GB/s"), size(message_size(peak) or 0.0)
    if peak is largest or peak.median * (1 - NOTABLE) <= largest.median:
        return f"Bus bandwidth reaches {figure(largest.median, 'GB/s')} at {at}"
    return f"Bus bandwidth peaks at {fast} with {unit} and falls to {figure(largest.median, 'GB/s')} at {at}"


def _shown(largest: Group, marked: set[str]) -> list[str]:
    """At most 64 subjects: all marked ones, then the others in order; drawn with the marked ones on top."""
    plain = [each.subject for each in largest.values if each.subject not in marked]
    return [*plain[: max(0, _MOST_CURVES - len(marked))], *sorted(marked, key=natural)[:8]]


def _points(by_size: list[Group], subject: str) -> list[Point]:
    found: list[tuple[Group, Value]] = []
    for group in by_size:
        found += [(group, each) for each in group.values if each.subject == subject][:1]
    return [
        Point(
            place=size(message_size(group) or 0.0),
            value=each.value,
            low=min(each.low, each.value),
            high=max(each.high, each.value),
        )
        for group, each in found
    ]
