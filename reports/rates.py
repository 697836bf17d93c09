"""A chart of rates on a logarithmic axis: what was observed among what is promised, assumed and published."""

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
from markupsafe import Markup
from msgspec import Struct

from .charts import WIDTH, Line
from .svg import BAD, FINE, INK, MUTED, draw, inline


class Rate(Struct, frozen=True, kw_only=True):
    """A row: a value, an interval, or both. `low` is None where nothing bounds it from below. `ours`: the one that the
    chart is about; `marked` where the reader shall look."""

    name: str
    shown: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    ours: bool = False
    marked: bool = False


def rates(rows: Sequence[Rate], *, line: Line | None, axis: str, label: str) -> Markup:
    """Rows in order, each with its value in words; `line` is what was promised. All numbers are above 0."""
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end] + ([line.value] if line else [])
    floor, top = min(ends) / 3, max(ends) * 6  # room for what is open below, and for the words
    y = alt.Y("name:N", title=None, sort=[row.name for row in rows], axis=_names())
    x = alt.X(
        "value:Q",
        title=axis,
        scale=alt.Scale(type="log", domain=[floor, top], nice=False),
        axis=alt.Axis(tickCount=6, grid=False),
    )
    layers: list[Any] = []
    if line:
        data = alt.Chart(inline([{"value": line.value, "label": line.label}]))
        layers.append(data.mark_rule(color=INK, strokeDash=[4, 3]).encode(x=x))
        text = data.mark_text(color=INK, align="left", dx=3, fontSize=11)
        layers.append(text.encode(x=x, y=alt.value(-8), text="label:N"))
    for row in rows:
        layers += _layers(row, x, y, floor)
    return draw(alt.layer(*layers).properties(width=WIDTH, height=26 * len(rows)), label=label)


def _names() -> Any:
    return alt.Axis(domain=False, ticks=False, labelPadding=8, labelLimit=300)


def _layers(row: Rate, x: Any, y: Any, floor: float) -> list[Any]:
    tone = BAD if row.marked else INK if row.ours else FINE
    low = row.low or floor
    value, end = row.value or row.high, row.high or row.value
    base = alt.Chart(inline([{"name": row.name, "value": value, "low": low, "end": end, "shown": row.shown}]))
    layers: list[Any] = []
    if row.high:
        layers.append(base.mark_rule(color=tone, strokeWidth=6 if row.ours else 4).encode(y=y, x="low:Q", x2="end:Q"))
    if row.high and not row.low:
        layers.append(base.mark_text(color=tone, text="◂", dx=-4, fontSize=14).encode(y=y, x="low:Q"))
    if row.value:
        layers.append(base.mark_circle(color=tone, size=80, opacity=1).encode(y=y, x=x))
    weight: Literal["bold", "normal"] = "bold" if row.ours else "normal"
    words = base.mark_text(color=tone if row.ours else MUTED, align="left", dx=9, fontWeight=weight)
    return [*layers, words.encode(y=y, x="end:Q", text="shown:N")]
