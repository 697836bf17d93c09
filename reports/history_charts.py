"""The charts of a history: each metric over weeks, failure rates, and what was paid for."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import altair as alt

from ..scoring.history import ClusterHistory, Point, Series
from ..scoring.ledger import Ledger
from .charts import WIDTH
from .history_words import ledger, rates, series_name, signed
from .layout import Chart
from .numbers import figure, number_of, span
from .plain_text import printable
from .rates import Rate
from .rates import rates as draw_rates
from .sections.burn_in_failures import UNIT, assumed, published
from .svg import BAD, FINE, INK, MUTED, WARN, draw, inline

WORSE = 0.05  # the smallest effect that matters
MOST_CHARTS, FEW_CHARTS = 12, 6
# What is drawn where little has moved: one a part of the system.
_MAIN = ("burn_in.tokens_per_second", "matmul.tflops", "memory.copy", "all_reduce.busbw", "rail.busbw",
         "checkpoint.save", "filesystem.write_rate")  # fmt: skip
_WIDE, _HIGH = 420, 120


def metric_charts(cluster: ClusterHistory, shown: Sequence[Series], marks: Mapping[str, int]) -> tuple[Chart, ...]:
    """A small chart each, on one axis of time; `marks` number the runs by which something else had changed."""
    times = {run.run_id: run.started for run in cluster.runs}
    changed = [(times[run_id], number) for run_id, number in marks.items() if run_id in times]
    ends = [point.time for one in shown for point in one.points]
    return tuple(_metric_chart(one, changed, (min(ends), max(ends))) for one in shown)


def drawn(everything: Sequence[Series]) -> list[Series]:
    """Those that moved by an effect that matters, the worse first; where they are few, the main ones with them."""
    ordered = sorted(everything, key=lambda one: (-(one.worse_by or 0.0), one.metric))
    moving = [one for one in ordered if abs(one.worse_by or 0.0) >= WORSE][:MOST_CHARTS]
    main = [one for one in ordered if one.metric in _MAIN and one not in moving]
    main.sort(key=lambda one: _MAIN.index(one.metric))
    return moving + main[: max(0, FEW_CHARTS - len(moving))]


def worsened(one: Series) -> bool:
    """Whether the last run is worse than those before by an effect that matters."""
    return (one.worse_by or 0.0) >= WORSE


def _metric_chart(one: Series, changed: Sequence[tuple[datetime, int]], ends: tuple[datetime, datetime]) -> Chart:
    tone = BAD if worsened(one) else INK
    rows = [_point_row(one, point) for point in one.points]
    scale = alt.Scale(type="utc", domain=[_iso(end) for end in ends], nice=False, padding=8)
    x = alt.X("time:T", title=None, scale=scale, axis=_dates())
    y = alt.Y("value:Q", title=printable(one.unit, 30) or None, scale=_scale(one), axis=alt.Axis(tickCount=4))
    base, last = alt.Chart(inline(rows)), alt.Chart(inline(rows[-1:]))
    layers = [
        *_changes([(time, number) for time, number in changed if ends[0] < time <= ends[1]], x),
        base.mark_line(color=FINE, strokeWidth=1.5).encode(x=x, y=y),
        base.mark_circle(color=FINE, size=34, opacity=1).encode(x=x, y=y, description="tip:N"),
        last.mark_circle(color=tone, size=70, opacity=1).encode(x=x, y=y, description="tip:N"),
    ]
    title = f"{series_name(one)}: {_moved(one)}{', worse than before' if worsened(one) else ''}"
    told = "; ".join(row["tip"] for row in rows[-20:])
    svg = draw(alt.layer(*layers).properties(width=_WIDE, height=_HIGH), label=f"{title}. {told}")
    return Chart(title=printable(title, 200), svg=svg)


def _moved(one: Series) -> str:
    first, last = one.points[0].value, one.points[-1].value
    change = signed(last / first - 1) if first else "from 0"
    return f"{figure(first, one.unit)} → {figure(last, one.unit)}, {change}"


def _dates() -> Any:
    return alt.Axis(labelOverlap="greedy", labelSeparation=14, grid=False, format="%d %b %y", labelFlush=True)


def _changes(changed: Sequence[tuple[datetime, int]], x: Any) -> list[Any]:
    """Lines where something else changed, with the number that it has in the table."""
    if not changed:
        return []
    base = alt.Chart(inline([{"time": _iso(time), "number": str(number)} for time, number in changed]))
    line = base.mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x=x)
    return [line, base.mark_text(color=MUTED, fontSize=11).encode(x=x, y=alt.value(-7), text="number:N")]


def _scale(one: Series) -> Any:
    """An axis that does not blow up small differences: at least 10 % on both sides of the middle."""
    values = sorted(point.value for point in one.points)
    middle = values[len(values) // 2]
    low, high = min(values[0], middle - abs(middle) * 0.1), max(values[-1], middle + abs(middle) * 0.1)
    pad = (high - low) * 0.06 or 1.0
    return alt.Scale(domain=[max(0.0, low - pad) if low >= 0 else low - pad, high + pad], nice=False, zero=False)


def _point_row(one: Series, point: Point) -> dict[str, Any]:
    shown = figure(point.value, one.unit)
    of = f", median of {point.subjects:,}" if point.subjects > 1 else ""
    return {"time": _iso(point.time), "value": point.value, "tip": f"{point.time:%Y-%m-%d}: {shown}{of}"}


def _iso(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def rate_chart(cluster: ClusterHistory) -> Chart | None:
    """The pooled failure rate with its exact bounds among what others published; None where it bounds nothing."""
    found = cluster.rates
    if not found.high or (not found.failures and found.high > 1):
        return None
    low, high = ((1000 * end if end else None) for end in (found.low, found.high))
    shown = span(low, high)
    own = Rate(name=f"{number_of(len(cluster.runs), 'run')} together", shown=shown, low=low, high=high, ours=True)
    rows = [own, assumed(), *published()]
    title = rates(found)
    words = "; ".join(f"{row.name}: {row.shown}" for row in rows)
    return Chart(title=title, svg=draw_rates(rows, line=None, axis=f"failures {UNIT}", label=f"{title} {words}."))


_STATES = (("healthy", FINE, "fine"), ("failing", WARN, "warn"), ("not there", BAD, "bad"))


def ledger_chart(found: Ledger) -> Chart | None:
    """Nodes paid for over time, by how each run found them: the area is node-hours. None where no time has passed."""
    rows = [row for line in found.lines if line.until > line.since for row in _ledger_rows(line)]
    if not rows:
        return None
    x = alt.X("since:T", title=None, scale=alt.Scale(type="utc", nice=False), axis=_dates())
    y = alt.Y("low:Q", title="nodes paid for", axis=alt.Axis(tickMinStep=1, tickCount=4), scale=alt.Scale(zero=True))
    layers = []
    for state, colour, _ in _STATES:
        base = alt.Chart(inline([row for row in rows if row["state"] == state and row["high"] > row["low"]]))
        layers.append(base.mark_rect(color=colour).encode(x=x, x2="until:T", y=y, y2="high:Q", description="tip:N"))
    title = ledger(found)
    svg = draw(alt.layer(*layers).properties(width=WIDTH, height=130), label=title)
    key = tuple((name, state) for state, _, name in _STATES)
    return Chart(title=title, svg=svg, key=key, note=f"Areas are node-hours: {found.basis}.")


def _ledger_rows(line: Any) -> list[dict[str, Any]]:
    hours = (line.until - line.since).total_seconds() / 3600
    edges = [0.0, *(part / hours for part in (line.healthy, line.delivered, line.paid))]
    return [
        {
            "since": _iso(line.since), "until": _iso(line.until), "state": state, "low": low, "high": high,
            "tip": f"{line.since:%Y-%m-%d} to {line.until:%Y-%m-%d}: {high - low:g} {state}",
        }
        for (state, _, _), low, high in zip(_STATES, edges, edges[1:], strict=False)
    ]  # fmt: skip
