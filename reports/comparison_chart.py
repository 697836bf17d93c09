"""A figure of several runs: a dot and interval each, as a share of the best; a bracket joins what is not told apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from ..scoring.comparison_model import Comparison, MetricCompared, Standing
from ..scoring.comparison_ranking import against
from .comparison_words import drawn, interval_words, message, name_of, value_words
from .layout import Chart
from .svg import BAD, INK, MUTED, draw, inline

WIDTH = 240
_ROW = 24
_BRACKET = 9  # pixels from one bracket to the next
_LEAST = 0.9  # an axis that does not blow up small differences


def charts(found: Comparison) -> tuple[Chart, ...]:
    """One chart a figure that tells runs apart, all on one scale."""
    shown = [one for one in found.metrics if drawn(found, one)]
    names = {run.letter: name_of(run, 20) for run in found.runs}
    domain = _domain(shown)
    return tuple(Chart(title=message(one), svg=_svg(one, names, domain)) for one in shown)


def _domain(shown: Sequence[MetricCompared]) -> tuple[float, float]:
    ends = [end for one in shown for row in _rows(one, {}) for end in (row["low"], row["high"])]
    return min([*ends, _LEAST]) - 0.01, max([*ends, 1.0]) + 0.01


def _svg(one: MetricCompared, names: Mapping[str, str], domain: tuple[float, float]) -> Any:
    rows = _rows(one, names)
    y = alt.Y(
        "name:N", title=None, scale=alt.Scale(type="point", padding=0.5, domain=[row["name"] for row in rows]),
        axis=alt.Axis(domain=False, ticks=False, labelPadding=6, labelLimit=150),
    )  # fmt: skip
    axis = alt.Axis(format=".0%", tickCount=4)
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=list(domain), nice=False, zero=False), axis=axis)
    layers: list[Any] = []
    for marked in (False, True):
        part = alt.Chart(inline([row for row in rows if row["marked"] is marked]))
        tone = BAD if marked else MUTED
        layers += [
            part.mark_rule(color=tone, strokeWidth=3, opacity=0.45).encode(y=y, x="low:Q", x2="high:Q"),
            part.mark_circle(color=tone, size=80, opacity=1).encode(y=y, x=x, description="tip:N"),
        ]
    layers += _brackets(one, names, y)
    right = WIDTH + _BRACKET * (len(one.alike) + 1)
    told = alt.Chart(inline(rows)).mark_text(align="left", color=INK)
    layers.append(told.encode(y=y, x=alt.value(right), text="shown:N"))
    chart = alt.layer(*layers).properties(width=WIDTH, height=_ROW * len(rows))
    words = "; ".join(row["tip"] for row in rows)
    return draw(chart, label=f"{message(one)}. {words}")


def _brackets(one: MetricCompared, names: Mapping[str, str], y: Any) -> list[Any]:
    """A bracket beside the rows it joins, one a group."""
    layers = []
    for place, group in enumerate(one.alike, 1):
        at = WIDTH + _BRACKET * place
        ends = [names[group[0]], names[group[-1]]]
        line = alt.Chart(inline([{"name": ends[0], "end": ends[1]}]))
        layers.append(line.mark_rule(color=INK).encode(y=y, y2="end:N", x=alt.value(at)))
        feet = alt.Chart(inline([{"name": end} for end in ends]))
        layers.append(feet.mark_rule(color=INK).encode(y=y, x=alt.value(at - 4), x2=alt.value(at)))
    return layers


def _rows(one: MetricCompared, names: Mapping[str, str]) -> list[dict[str, Any]]:
    standings = {each.letter: each for each in one.standings}
    return [_row(one, standings[letter], letters[0], names) for letters in one.comparable for letter in letters]


def _row(one: MetricCompared, each: Standing, best: str, names: Mapping[str, str]) -> dict[str, Any]:
    """A run as a share of the best that it may be compared with: less is worse, whatever the figure."""
    share, value = each.share or 0.0, each.value or 1.0
    turned = 1 if one.better == "higher" else -1
    low, high = sorted(share * ((end or value) / value) ** turned for end in (each.low, each.high))
    name, shown = names.get(each.letter, each.letter), value_words(one, each)
    return {
        "name": name, "value": share, "low": low, "high": high, "shown": shown,
        "marked": against(one, each.letter, best) is not None,
        "tip": f"{name}: {shown} [{interval_words(one, each)}]",
    }  # fmt: skip
