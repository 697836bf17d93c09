"""Fabric: all-reduce bandwidth by message size."""

from ..curves import Point, curves
from ..layout import Chart
from ..measured import Group, Value
from ..numbers import figure, size
from ..plain_text import natural
from ..spread import NOTABLE, lagging, spread_title

_SIZE_KEYS = ("bytes", "size_bytes", "message_bytes", "size")
_MOST_CURVES = 64


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


def size_chart(by_size: list[Group], flagged: frozenset[str]) -> Chart:
    """A curve a subject over message sizes; who lags or is flagged stands in colour."""
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
