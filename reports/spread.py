"""How alike like subjects are, in words, and the dots that show it."""

from collections.abc import Iterable

from ..evidence import parse_subject
from .charts import MOST_ROWS, Dot, Line, dots
from .layout import Chart
from .measured import Group, Value, node_of, params_label, short
from .numbers import figure, number_of, roughly
from .plain_text import listed

NOTABLE = 0.05  # the smallest difference that matters (the same as in scoring's peer layer)
SAME = 0.02  # below this, two subjects are called alike
_NOUNS = {"gpu": "GPU", "slot": "slot", "numa": "NUMA node", "filesystem": "filesystem", "node": "node"}


def lagging(group: Group) -> list[Value]:
    """The subjects that stand at least 5% on the wrong side of the median of three or more, the worst first."""
    if len(group.values) < 3 or group.metric.better == "neither":
        return []
    return [each for each in group.worst_first if (group.gap(each.value) or 0.0) >= NOTABLE]


def spread_title(group: Group, *, absent: int = 0) -> str:
    """The message of a group in one line: who is off and by how much, or within what all stand.

    `absent` is how many more there should be: they are said, never passed over.
    """
    told = _message(group, every=not absent)
    return f"{told}; {absent:,} not measured" if absent else told


def _message(group: Group, *, every: bool) -> str:
    several = len(_nodes(group.values)) > 1
    if len(group.values) == 1:
        only = group.values[0]
        return f"{_name(only, several)} reaches {figure(only.value, group.metric.unit)}"
    if len(group.values) == 2:
        return _two(group, several)
    behind = lagging(group)
    if not behind:
        all_of = "All " if every else ""
        return f"{all_of}{number_of(len(group.values), noun(group))} within {roughly(_width(group))} of their median"
    worst = f"{_name(behind[0], several)} is {_by(group, behind[0])} its peers"
    return worst if len(behind) == 1 else f"{len(behind)} of {len(group.values)} are off; {worst}"


def shows_nothing(group: Group) -> bool:
    """Whether a chart of the group would be one dot."""
    return len(group.values) == 1 and len(group.values[0].measurement.numbers()) == 1


def spread_chart(
    group: Group, *, flagged: frozenset[str] = frozenset(), lines: Iterable[Line] = (), absent: int = 0
) -> Chart:
    """All subjects of a group, with their median and the lines given; what lags or is flagged stands in colour."""
    marked = {each.subject for each in lagging(group)} | flagged
    unit, title = group.metric.unit, spread_title(group, absent=absent)
    drawn = [*lines]
    if len(group.values) > 2:
        drawn.append(Line(value=group.median, label=f"median {figure(group.median, unit)}"))
    several = len(_nodes(group.values)) > 1
    marks = [dot_of(each, marked, several=several) for each in group.values]
    label = f"{title}. {group.metric.name} of {listed((each.subject for each in group.values), 8)}; table below."
    one = (
        "A dot is a subject's value, its bar the range of its samples."
        if len(marks) <= MOST_ROWS
        else "A dot is one subject."
    )
    note = f"{params_label(group.params)}. {one}" if group.params else one
    return Chart(title=title, svg=dots(marks, unit=unit, axis=unit, lines=drawn, label=label), note=note)


def dot_of(each: Value, marked: set[str] | frozenset[str], *, several: bool) -> Dot:
    """A value as a dot; its node is named where there are several."""
    return Dot(
        name=_name(each, several),
        place=node_of(each.subject) or each.subject,
        value=each.value,
        low=min(each.low, each.value),
        high=max(each.high, each.value),
        marked=each.subject in marked,
    )


def noun(group: Group) -> str:
    """What the subjects of a group are called: GPU, slot, node."""
    try:
        return _NOUNS.get(parse_subject(group.values[0].subject).kind, "subject")
    except ValueError:
        return "subject"


def _two(group: Group, several: bool) -> str:
    best, worst = sorted(group.values, key=lambda each: each.value, reverse=group.metric.better == "higher")
    share = abs(best.value - worst.value) / abs(best.value) if best.value else 0.0
    if share < SAME:
        return f"Both {noun(group)}s within {roughly(share)}"
    return f"{_name(worst, several)} is {roughly(share)} {_side(group)} {_name(best, several)}"


def _by(group: Group, each: Value) -> str:
    return f"{roughly(group.gap(each.value) or 0.0)} {_side(group)}"


def _side(group: Group) -> str:
    return "below" if group.metric.better == "higher" else "above"


def _width(group: Group) -> float:
    middle = abs(group.median)
    return max(abs(value - group.median) for value in group.numbers) / middle if middle else 0.0


def _nodes(values: Iterable[Value]) -> set[str | None]:
    return {node_of(each.subject) for each in values}


def _name(each: Value, several: bool) -> str:
    return each.subject if several else short(each.subject)
