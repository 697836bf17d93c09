"""Fabric, pair by pair: the matrix of all pairs, and what each node can do with good partners."""

import base64
import struct
from collections.abc import Sequence

from ...evidence import parse_subject
from ...scoring.verdict import Verdict
from ..layout import Column, Matrix, Table, number, text
from ..measured import Group, Measured, Value, params_label
from ..numbers import figure, number_of
from ..plain_text import natural, printable
from ..tables import MOST_ROWS

BUSBW = "all_reduce.busbw"
MOST_NODES = 1024  # a matrix of 2 MiB
_FULL = 65535  # of 16 bits; 0 is "not measured"


def pair_matrix(measured: Measured, verdict: Verdict) -> Matrix | None:
    """The pairs at the largest message size, by node name; None without a pair."""
    group = _largest(measured)
    if group is None:
        return None
    values = {tuple(sorted(_nodes(each.subject))): each for each in _pairs(group) if each.value > 0}
    if not values:
        return None
    names = sorted({node for pair in values for node in pair}, key=natural)[:MOST_NODES]
    top = max(each.value for each in values.values())
    slow = [f.subject for f in verdict.findings if f.check.startswith("pairs.") and f.result in ("fail", "warn")]
    return Matrix(
        title=_title(list(values.values()), slow, len(names)),
        names=tuple(printable(name, 80) for name in names),
        values=_packed(names, values, top),
        top=top,
        unit=group.metric.unit,
        low=figure(min(each.value for each in values.values()), group.metric.unit),
        high=figure(top, group.metric.unit),
        note=f"A square is the last attempt at a pair of nodes, {params_label(group.params)}. The lighter the faster, "
        "from 0 to the best pair; white: not measured.",
    )


def capabilities(verdict: Verdict) -> Table | None:
    """What each node can do with good partners, the slowest first."""
    found = [f for f in verdict.findings if f.check == "pairs.nodes" and isinstance(f.observed, int | float)]
    if not found:
        return None
    found.sort(key=lambda one: (float(one.observed or 0), natural(one.subject)))
    rows = tuple(
        (
            text(printable(one.subject, 80), code=True),
            number(float(one.observed or 0), figure(float(one.observed or 0), one.unit)),
            text(printable(one.result.replace("_", " "), 20), tone="" if one.result == "pass" else one.result),
            text(printable(one.detail, 300)),
        )
        for one in found[:MOST_ROWS]
    )
    heads = ("node", "with good partners", "result", "how known")
    left = f"{len(found) - MOST_ROWS} more are in verdict.json." if len(found) > MOST_ROWS else ""
    columns = tuple(Column(title=head, numeric=head == "with good partners") for head in heads)
    return Table(caption="What each node can do", columns=columns, rows=rows, note=left)


def _largest(measured: Measured) -> Group | None:
    """The group of pairs with the largest messages."""
    groups = [group for group in measured.groups(BUSBW) if _pairs(group)]
    return max(groups, key=lambda group: (_size(group), len(group.values)), default=None)


def _size(group: Group) -> float:
    size = group.params.get("bytes", 0)
    return float(size) if isinstance(size, int | float) else 0.0


def _pairs(group: Group) -> list[Value]:
    return [each for each in group.values if len(_nodes(each.subject)) == 2]


def _nodes(subject: str) -> tuple[str, ...]:
    try:
        parsed = parse_subject(subject)
    except ValueError:
        return ()
    return parsed.nodes if parsed.kind == "pair" and len(set(parsed.nodes)) == 2 else ()


def _packed(names: Sequence[str], values: dict[tuple[str, ...], Value], top: float) -> str:
    """Row by row 16 bits a pair, little endian, in base64: 1 to 65535 for 0 to `top`."""
    shares = (values.get(tuple(sorted((one, other)))) for one in names for other in names)
    numbers = [0 if each is None else max(1, round(_FULL * max(0.0, each.value / top))) for each in shares]
    return base64.b64encode(struct.pack(f"<{len(numbers)}H", *numbers)).decode()


def _title(values: list[Value], slow: list[str], nodes: int) -> str:
    all_of = number_of(nodes * (nodes - 1) // 2, "pair")
    told = f"{len(values):,} of {all_of}" if len(values) < nodes * (nodes - 1) // 2 else all_of
    if slow:
        named = ", ".join(printable(one, 80) for one in slow[:3])
        return f"{told}: {named}{' and others' if len(slow) > 3 else ''} {'stands' if len(slow) == 1 else 'stand'} out"
    return f"{told}, none stands out"
