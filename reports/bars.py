"""Bar charts: the parts of each save, and how many devices share a state."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
from markupsafe import Markup

from .charts import WIDTH
from .numbers import figure
from .svg import BAD, BLUE, FINE, GREEN, INK, PINK, SKY, draw, inline

PART_COLOURS = (SKY, BLUE, GREEN, PINK)
PART_CLASSES = ("sky", "blue", "green", "pink")


def stacked(
    bars: Sequence[Sequence[float]],
    parts: Sequence[str],
    *,
    unit: str,
    axis: str,
    label: str,
    marked: frozenset[int] = frozenset(),
) -> Markup:
    """Bars of parts, one a save in order: lying where they are few, else standing. The totals of those whose places are
    `marked` (from 0) stand in colour."""
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
    layers += [_totals(bars, unit, told, across, lying=lying) for told in _told(len(bars), marked, lying=lying)]
    height = max(40, 28 * len(bars)) if lying else 220
    return draw(alt.layer(*layers).properties(width=WIDTH, height=height), label=label)


def _told(count: int, marked: frozenset[int], *, lying: bool) -> list[tuple[list[int], str]]:
    """Whose totals are written and in which colour: all of lying bars, only the marked ones of standing bars."""
    plain = [place for place in range(count) if lying and place not in marked]
    return [(places, tone) for places, tone in ((plain, INK), (sorted(marked), BAD)) if places]


def _totals(
    bars: Sequence[Sequence[float]], unit: str, told: tuple[list[int], str], across: Any, *, lying: bool
) -> Any:
    places, tone = told
    rows = [{"place": str(p + 1), "total": sum(bars[p]), "shown": figure(sum(bars[p]), unit)} for p in places]
    base = alt.Chart(inline(rows))
    text = base.mark_text(align="left", dx=6, color=tone) if lying else base.mark_text(dy=-8, color=tone)
    return text.encode(**{"y" if lying else "x": across, "x" if lying else "y": "total:Q", "text": "shown:N"})


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
