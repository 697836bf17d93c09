"""Line charts: a value over message sizes, steps or minutes, with its band."""

from collections.abc import Sequence
from typing import Any

import altair as alt
from markupsafe import Markup
from msgspec import Struct

from .charts import WIDTH
from .numbers import figure
from .svg import BAD, BAND, FINE, INK, draw, inline


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
        layers += _one_curve(rows, places, marked=marked, alone=len(named) == 1, x=x, y=y, below=False)
    return draw(alt.layer(*layers).properties(width=WIDTH, height=240), label=label)


def against(
    points: Sequence[Point], ideal: tuple[float, str] | None, *, unit: str, x: str, y: str, label: str
) -> Markup:
    """One curve with its band, and a labelled line of what it would be at best."""
    rows = [_point_row("", point, unit) for point in points]
    places = [point.place for point in points]
    layers = _one_curve(rows, places, marked=False, alone=True, x=x, y=y, below=True)
    if ideal:
        line = alt.Chart(inline([{"value": ideal[0], "label": ideal[1]}]))
        layers.append(line.mark_rule(color=INK, strokeDash=[4, 3]).encode(y="value:Q"))
        text = line.mark_text(color=INK, align="left", baseline="bottom", fontSize=11, dx=4, dy=-2)
        layers.append(text.encode(x=alt.value(0), y="value:Q", text="label:N"))
    return draw(alt.layer(*layers).properties(width=WIDTH, height=220), label=label)


class Happened(Struct, frozen=True, kw_only=True):
    """An event beside a series: where on its axis, and what it was."""

    place: float
    words: str


def series(
    points: Sequence[tuple[float, float, float, float]],
    *,
    x: str,
    y: str,
    label: str,
    happened: Sequence[Happened] = (),
) -> Markup:
    """A median line with its band over a running number. A point is (place, low, median, high). What happened stands
    as ticks above, the first of them in words."""
    rows = [{"place": place, "low": low, "value": value, "high": high} for place, low, value, high in points]
    base = alt.Chart(inline(rows))
    across = alt.X(
        "place:Q", title=x, axis=alt.Axis(grid=False, tickMinStep=1), scale=alt.Scale(nice=False, zero=False)
    )
    up = alt.Y("low:Q", title=y, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    band = base.mark_area(color=BAND, opacity=0.9).encode(x=across, y=up, y2="high:Q")
    line = base.mark_line(color=INK, strokeWidth=1.5).encode(x=across, y="value:Q")
    return draw(alt.layer(band, line, *_ticks(happened)).properties(width=WIDTH, height=200), label=label)


def _ticks(happened: Sequence[Happened]) -> list[Any]:
    if not happened:
        return []
    base = alt.Chart(inline([{"place": each.place, "tip": each.words} for each in happened]))
    ticks = base.mark_tick(color=BAD, thickness=2, size=12, orient="vertical")
    first = alt.Chart(inline([{"place": happened[0].place, "words": happened[0].words}]))
    words = first.mark_text(color=BAD, align="left", dx=5, fontSize=11)
    return [
        ticks.encode(x="place:Q", y=alt.value(-8), description="tip:N"),
        words.encode(x="place:Q", y=alt.value(-8), text="words:N"),
    ]


def _one_curve(
    rows: list[dict[str, Any]], places: list[str], *, marked: bool, alone: bool, below: bool, x: str, y: str
) -> Any:
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
        layers.append(
            last.mark_text(color=tone, align="right", dy=16 if below else -12).encode(x=across, y=up, text="end:N")
        )
    return layers


def _point_row(name: str, point: Point, unit: str) -> dict[str, Any]:
    shown = figure(point.value, unit)
    row = {"place": point.place, "value": point.value, "low": point.low, "high": point.high}
    return {**row, "tip": f"{name}, {point.place}: {shown}".lstrip(", "), "end": f"{name} {shown}".strip()}
