"""The page's charts: one message each. Grey is for what is fine; colour means "look here"."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
from markupsafe import Markup
from msgspec import Struct

from .numbers import figure
from .plain_text import natural
from .svg import BAD, BAND, BLUE, FINE, GREEN, INK, MUTED, PINK, SKY, draw, inline

WIDTH = 800
MOST_ROWS = 24  # beyond that one row a subject is too tall
PART_COLOURS = (SKY, BLUE, GREEN, PINK)
PART_CLASSES = ("sky", "blue", "green", "pink")


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
    return alt.layer(*layers).properties(width=WIDTH, height=max(44, 30 * len(data)))


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


def peers(values: Sequence[Dot], *, unit: str, threshold: Line | None, label: str) -> Markup:
    """One value against its peers on a single line; beyond 64 peers their 5-95% range and median."""
    data = [_dot_row(dot, unit) for dot in values]
    lines = [threshold] if threshold else []
    x = alt.X("value:Q", title=unit, scale=_scale(values, lines), axis=alt.Axis(tickCount=5, grid=False))
    others = [row for row in data if not row["marked"]]
    layers: list[Any] = [_rule("x", line, values, lines) for line in lines]
    if len(others) > 64:
        layers += _range_of(sorted(row["value"] for row in others), unit)
    else:
        layers.append(alt.Chart(inline(others)).mark_circle(color=FINE, size=50).encode(x=x, description="tip:N"))
    own = alt.Chart(inline([row for row in data if row["marked"]]))
    layers.append(own.mark_circle(color=BAD, size=110, opacity=1).encode(x=x, description="tip:N"))
    layers.append(own.mark_text(color=BAD, dy=-13, fontWeight="bold").encode(x=x, text="name:N"))
    return draw(alt.layer(*layers).properties(width=560, height=44), label=label)


def _range_of(ordered: Sequence[float], unit: str) -> list[Any]:
    """Many peers as one bar from their 5th to their 95th percentile, with the median."""
    low, middle, high = (ordered[int(at * (len(ordered) - 1))] for at in (0.05, 0.5, 0.95))
    told = f"{len(ordered):,} peers, median {figure(middle, unit)}"
    base = alt.Chart(inline([{"low": low, "high": high, "value": middle, "told": told}]))
    band = base.mark_rule(color=FINE, strokeWidth=8, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q")
    dot = base.mark_circle(color=MUTED, size=60, opacity=1).encode(x="value:Q", description="told:N")
    return [band, dot, base.mark_text(color=MUTED, dy=-13).encode(x="value:Q", text="told:N")]


class Point(Struct, frozen=True, kw_only=True):
    """A point of a curve: its place on the axis in words, its value, and the range of its samples."""

    place: str
    value: float
    low: float
    high: float


def curves(named: Sequence[tuple[str, Sequence[Point], bool]], *, unit: str, x: str, y: str, label: str) -> Markup:
    """A curve a subject over places in order. One subject shows its min-max band; marked ones stand in colour."""
    places = list(dict.fromkeys(point.place for _, points, _ in named for point in points))
    layers = []
    for name, points, marked in named:
        rows = [_point_row(name, point, unit) for point in points]
        layers += _one_curve(rows, places, marked=marked, alone=len(named) == 1, x=x, y=y)
    return draw(alt.layer(*layers).properties(width=WIDTH, height=240), label=label)


def _one_curve(rows: list[dict[str, Any]], places: list[str], *, marked: bool, alone: bool, x: str, y: str) -> Any:
    base = alt.Chart(inline(rows))
    across = alt.X("place:N", title=x, sort=places, axis=alt.Axis(labelAngle=0, grid=False, labelOverlap="greedy"))
    up = alt.Y("value:Q", title=y, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    tone = BAD if marked else (INK if alone else FINE)
    layers: list[Any] = []
    if alone or marked:
        layers.append(
            base.mark_area(color=BAD if marked else BAND, opacity=0.5).encode(x=across, y="low:Q", y2="high:Q")
        )
    width = 2 if alone or marked else 1
    layers.append(base.mark_line(color=tone, strokeWidth=width).encode(x=across, y=up))
    if alone or marked:
        layers.append(base.mark_circle(color=tone, size=50, opacity=1).encode(x=across, y=up, description="tip:N"))
        last = alt.Chart(inline(rows[-1:]))
        layers.append(last.mark_text(color=tone, align="right", dy=-12).encode(x=across, y=up, text="end:N"))
    return layers


def stacked(bars: Sequence[Sequence[float]], parts: Sequence[str], *, unit: str, axis: str, label: str) -> Markup:
    """Bars of parts, one a save in order: lying where they are few, else standing."""
    lying = len(bars) <= 12
    rows = [row for place, bar in enumerate(bars, 1) for row in _bar_rows(place, bar, parts, unit)]
    order = [str(place) for place in range(1, len(bars) + 1)]
    along = (alt.X if lying else alt.Y)("start:Q", title=axis, axis=alt.Axis(tickCount=6))
    ends = {"x2" if lying else "y2": "end:Q"}
    side = "y" if lying else "x"
    upright = alt.Axis(labelAngle=0, domain=False, ticks=False, grid=False, labelPadding=6, labelOverlap="greedy")
    across = (alt.Y if lying else alt.X)("place:N", title="save", sort=order, axis=upright)
    layers: list[Any] = []
    for part, colour in zip(parts, PART_COLOURS, strict=False):
        base = alt.Chart(inline([row for row in rows if row["part"] == part]))
        encoding = {side: across, "x" if lying else "y": along, **ends, "description": alt.Description("tip:N")}
        layers.append(base.mark_bar(color=colour).encode(**encoding))
    if lying:
        totals = [
            {"place": str(p), "start": sum(bar), "shown": figure(sum(bar), unit)} for p, bar in enumerate(bars, 1)
        ]
        text = alt.Chart(inline(totals)).mark_text(align="left", dx=6, color=INK)
        layers.append(text.encode(y=across, x="start:Q", text="shown:N"))
    height = max(40, 28 * len(bars)) if lying else 220
    return draw(alt.layer(*layers).properties(width=WIDTH, height=height), label=label)


def series(points: Sequence[tuple[float, float, float, float]], *, x: str, y: str, label: str) -> Markup:
    """A median line with its band over a running number. A point is (place, low, median, high)."""
    rows = [{"place": place, "low": low, "value": value, "high": high} for place, low, value, high in points]
    base = alt.Chart(inline(rows))
    across = alt.X(
        "place:Q", title=x, axis=alt.Axis(grid=False, tickMinStep=1), scale=alt.Scale(nice=False, zero=False)
    )
    up = alt.Y("low:Q", title=y, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    band = base.mark_area(color=BAND, opacity=0.9).encode(x=across, y=up, y2="high:Q")
    line = base.mark_line(color=INK, strokeWidth=1.5).encode(x=across, y="value:Q")
    return draw(alt.layer(band, line).properties(width=WIDTH, height=200), label=label)


def counts(rows: Sequence[tuple[str, int, bool]], *, axis: str, label: str) -> Markup:
    """How many subjects share each state; deviating ones in colour."""
    data = [{"name": name, "value": value, "shown": f"{value:,}", "odd": odd} for name, value, odd in rows]
    y = alt.Y(
        "name:N",
        title=None,
        sort=[name for name, _, _ in rows],
        axis=alt.Axis(domain=False, ticks=False, labelPadding=8),
    )
    x = alt.X("value:Q", title=axis, axis=alt.Axis(tickMinStep=1, tickCount=5))
    layers: list[Any] = []
    for odd in (False, True):
        base = alt.Chart(inline([row for row in data if row["odd"] is odd]))
        layers.append(base.mark_bar(color=BAD if odd else FINE, size=16).encode(y=y, x=x))
        layers.append(base.mark_text(align="left", dx=6, color=BAD if odd else INK).encode(y=y, x=x, text="shown:N"))
    return draw(alt.layer(*layers).properties(width=WIDTH, height=max(40, 28 * len(data))), label=label)


def _rule(side: str, line: Line, values: Sequence[Dot], lines: Sequence[Line]) -> Any:
    """A labelled line; of two that stand close, the lower one's label goes to the other side."""
    data = alt.Chart(inline([{"value": line.value, "label": line.label}]))
    upper = line.value >= max(each.value for each in lines)
    if side == "x":
        mark = data.mark_rule(color=INK, strokeDash=[4, 3]).encode(x="value:Q")
        text = data.mark_text(color=INK, align="left" if upper else "right", dx=3 if upper else -3, fontSize=11)
        return mark + text.encode(x="value:Q", y=alt.value(-8), text="label:N")
    mark = data.mark_rule(color=INK, strokeDash=[4, 3]).encode(y="value:Q")
    text = data.mark_text(color=INK, align="left", baseline="bottom" if upper else "top", fontSize=11)
    return mark + text.encode(x=alt.value(WIDTH + 6), y="value:Q", text="label:N")


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


def _point_row(name: str, point: Point, unit: str) -> dict[str, Any]:
    shown = figure(point.value, unit)
    row = {"place": point.place, "value": point.value, "low": point.low, "high": point.high}
    return {**row, "tip": f"{name}, {point.place}: {shown}", "end": f"{name} {shown}"}


def _bar_rows(place: int, bar: Sequence[float], parts: Sequence[str], unit: str) -> list[dict[str, Any]]:
    edges = [sum(bar[:count]) for count in range(len(bar) + 1)]
    return [
        {
            "place": str(place),
            "part": part,
            "start": start,
            "end": end,
            "tip": f"save {place}, {part}: {figure(end - start, unit)}",
        }
        for part, (start, end) in zip(parts, pairwise(edges), strict=True)
    ]
