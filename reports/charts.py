"""Dot charts: subjects beside each other. Grey is for what is fine; colour means "look here"."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import altair as alt
from markupsafe import Markup
from msgspec import Struct

from .numbers import figure
from .plain_text import natural
from .svg import BAD, FINE, INK, MUTED, draw, inline

WIDTH = 860
ROWS_WIDTH = 440  # values stand beside names: what a phone shows without scrolling far
MOST_ROWS = 24  # beyond that one row a subject is too tall


class Dot(Struct, frozen=True, kw_only=True):
    """A subject's value with the range of its samples; `marked` where the reader shall look."""

    name: str
    place: str  # the row or column it stands in: the node in a strip of nodes
    value: float
    low: float
    high: float
    marked: bool = False


class Line(Struct, frozen=True, kw_only=True):
    """A reference line with its label."""

    value: float
    label: str


def dots(values: Sequence[Dot], *, unit: str, axis: str, lines: Sequence[Line], label: str) -> Markup:
    """Subjects' values: a row each where they are few, else columns by place (node)."""
    few = len(values) <= MOST_ROWS
    chart = _rows(values, unit, axis, lines) if few else _columns(values, unit, axis, lines)
    return draw(chart, label=label)


def _rows(values: Sequence[Dot], unit: str, axis: str, lines: Sequence[Line]) -> Any:
    data = [_dot_row(dot, unit) for dot in values]
    y = alt.Y(
        "name:N",
        title=None,
        sort=[row["name"] for row in data],
        axis=alt.Axis(domain=False, ticks=False, labelPadding=8),
    )
    x = alt.X("value:Q", title=axis, scale=_scale(values, lines), axis=alt.Axis(tickCount=6))
    layers: list[Any] = [_rule("x", line, values, lines) for line in lines]
    for marked in (False, True):
        part = alt.Chart(inline([row for row in data if row["marked"] is marked]))
        tone = BAD if marked else MUTED
        layers += [
            part.mark_rule(color=tone, strokeWidth=3, opacity=0.45).encode(y=y, x="low:Q", x2="high:Q"),
            part.mark_circle(color=tone, size=90, opacity=1).encode(y=y, x=x, description="tip:N"),
            part.mark_text(align="left", dx=9, color=tone, fontWeight="bold" if marked else "normal").encode(
                y=y, x="high:Q", text="shown:N"
            ),
        ]
    return alt.layer(*layers).properties(width=ROWS_WIDTH, height=max(44, 30 * len(data)))


def _columns(values: Sequence[Dot], unit: str, axis: str, lines: Sequence[Line]) -> Any:
    data = [_dot_row(dot, unit) for dot in values]
    places = sorted({dot.place for dot in values}, key=natural)
    across = alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=12, ticks=False, domain=False)
    x = alt.X("place:N", title=None, sort=places, axis=across, scale=alt.Scale(type="point", padding=0.5))
    y = alt.Y("value:Q", title=axis, scale=_scale(values, lines), axis=alt.Axis(tickCount=6))
    fine = alt.Chart(inline([row for row in data if not row["marked"]]))
    bad = alt.Chart(inline([row for row in data if row["marked"]]))
    layers = [
        fine.mark_circle(color=FINE, size=22, opacity=0.8).encode(x=x, y=y, description="tip:N"),
        *(_rule("y", line, values, lines) for line in lines),
        bad.mark_circle(color=BAD, size=60, opacity=1).encode(x=x, y=y, description="tip:N"),
    ]
    labelled = [row for row in data if row["marked"]][:12]
    late = set(places[len(places) * 3 // 4 :])
    early = alt.Chart(inline([row for row in labelled if row["place"] not in late]))
    right = alt.Chart(inline([row for row in labelled if row["place"] in late]))
    layers.append(early.mark_text(align="left", dx=8, color=BAD, fontWeight="bold").encode(x=x, y=y, text="name:N"))
    layers.append(right.mark_text(align="right", dx=-8, color=BAD, fontWeight="bold").encode(x=x, y=y, text="name:N"))
    return alt.layer(*layers).properties(width=WIDTH, height=240)


def peers(values: Sequence[Dot], *, unit: str, threshold: Line | None, name: str, label: str) -> Markup:
    """Marked values, called `name`, against their peers on a line; beyond 64 peers their 5-95% range and median."""
    data = [_dot_row(dot, unit) for dot in values]
    lines = [threshold] if threshold else []
    x = alt.X("value:Q", title=unit, scale=_scale(values, lines), axis=alt.Axis(tickCount=5, grid=False))
    others = [row for row in data if not row["marked"]]
    layers: list[Any] = [_rule("x", line, values, lines) for line in lines]
    if len(others) > 64:
        layers += _range_of(sorted(row["value"] for row in others), unit)
    else:
        layers.append(alt.Chart(inline(others)).mark_circle(color=FINE, size=50).encode(x=x, description="tip:N"))
    marked = [row for row in data if row["marked"]]
    own = alt.Chart(inline(marked[:64]))
    layers.append(own.mark_circle(color=BAD, size=110, opacity=1).encode(x=x, description="tip:N"))
    middle = sorted(marked, key=lambda row: float(row["value"]))[len(marked) // 2 : len(marked) // 2 + 1]
    named = alt.Chart(inline([{"value": row["value"], "name": name} for row in middle]))
    layers.append(named.mark_text(color=BAD, dy=-13, fontWeight="bold").encode(x=x, text="name:N"))
    return draw(alt.layer(*layers).properties(width=560, height=44), label=label)


def _range_of(ordered: Sequence[float], unit: str) -> list[Any]:
    """Many peers as one bar from their 5th to their 95th percentile, with the median."""
    low, middle, high = (ordered[int(at * (len(ordered) - 1))] for at in (0.05, 0.5, 0.95))
    told = f"{len(ordered):,} peers, median {figure(middle, unit)}"
    base = alt.Chart(inline([{"low": low, "high": high, "value": middle, "told": told}]))
    band = base.mark_rule(color=FINE, strokeWidth=8, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q")
    dot = base.mark_circle(color=MUTED, size=60, opacity=1).encode(x="value:Q", description="told:N")
    return [band, dot, base.mark_text(color=MUTED, dy=-13).encode(x="value:Q", text="told:N")]


def _rule(side: str, line: Line, values: Sequence[Dot], lines: Sequence[Line]) -> Any:
    """A labelled line; of two that stand close, the lower one's label goes to the other side."""
    data = alt.Chart(inline([{"value": line.value, "label": line.label}]))
    upper = line.value >= max(each.value for each in lines)
    if side == "x":
        mark = data.mark_rule(color=INK, strokeDash=[4, 3]).encode(x="value:Q")
        text = data.mark_text(color=INK, align="left" if upper else "right", dx=3 if upper else -3, fontSize=11)
        return mark + text.encode(x="value:Q", y=alt.value(-8), text="label:N")
    mark = data.mark_rule(color=INK, strokeDash=[4, 3]).encode(y="value:Q")
    # At the left, beside the axis: what is seen first where the chart is wider than a phone.
    baseline: Literal["bottom", "top"] = "bottom" if upper else "top"
    text = data.mark_text(color=INK, align="left", baseline=baseline, dx=6, dy=-5 if upper else 5, fontSize=11)
    return mark + text.encode(x=alt.value(0), y="value:Q", text="label:N")


def _scale(values: Sequence[Dot], lines: Iterable[Line]) -> Any:
    """An axis that does not blow up small differences: at least 10% on both sides of the middle."""
    ordered = sorted(dot.value for dot in values)
    middle = ordered[len(ordered) // 2]
    ends = [edge for dot in values for edge in (dot.low, dot.value, dot.high)] + [line.value for line in lines]
    low, high = min(*ends, middle - abs(middle) * 0.1), max(*ends, middle + abs(middle) * 0.1)
    if low == high:
        low, high = low - 1, high + 1
    pad = (high - low) * 0.04
    return alt.Scale(domain=[max(0.0, low - pad) if low >= 0 else low - pad, high + pad], nice=False, zero=False)


def _dot_row(dot: Dot, unit: str) -> dict[str, Any]:
    shown = figure(dot.value, unit)
    row = {"name": dot.name, "place": dot.place, "value": dot.value, "low": dot.low, "high": dot.high}
    return {**row, "marked": dot.marked, "shown": shown, "tip": f"{dot.name}: {shown}"}
