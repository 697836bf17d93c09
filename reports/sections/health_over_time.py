"""Temperature, power and clock of the GPUs over time, as heat maps."""

import math
from datetime import timedelta
from typing import Any

import numpy as np
from msgspec import Struct

from ..heat_map import heat_map
from ..layout import Chart, Part
from ..measured import Measured
from ..numbers import figure, lasting, number_of
from ..telemetry_by_gpu import Grid, grids

_MOST_ROWS = 32


class _Told(Struct, frozen=True, kw_only=True):
    """How a quantity is told: `side` is 1 where more is worse, -1 where less is; `notable` is the smallest difference
    that is one, a share of the median where `shares`."""

    title: str
    unit: str
    side: int
    verb: str  # of one: is, draws
    word: str
    best: str
    notable: float
    shares: bool = True


_TOLD = {
    "temperature": _Told(
        title="Temperature", unit="C", side=1, verb="is", word="warmer", best="hottest", notable=8.0, shares=False
    ),
    "power": _Told(title="Power", unit="W", side=-1, verb="draws", word="less", best="lowest", notable=0.1),
    "clock": _Told(title="Clock", unit="MHz", side=-1, verb="runs", word="slower", best="lowest", notable=0.05),
}


def over_time(measured: Measured) -> tuple[Part, ...]:
    """A part for each quantity that telemetry has of two GPUs or more."""
    return tuple(_part(measured, grid) for grid in grids(measured.run))


def _part(measured: Measured, grid: Grid) -> Part:
    told = _TOLD[grid.quantity]
    busy = _busy(measured, grid)
    off = _off(busy, told) if busy is not None else np.zeros(len(grid.subjects))
    notable = frozenset(np.array(grid.subjects)[off >= told.notable].tolist())
    shown = busy if busy is not None else grid.values
    order = np.lexsort((_worst(shown, told) * -told.side, -off))[:_MOST_ROWS]
    title = _title(grid, off, told) if busy is not None else _extreme(grid, told)
    rows, values = [grid.subjects[place] for place in order], grid.values[order]
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    ends = [figure(end, told.unit) for end in (low, high)]
    svg = heat_map(
        rows,
        values,
        told=[figure(float(value), told.unit) for value in _worst(shown[order], told)],
        marked=notable,
        scale=(low, high),
        ends=(ends[0] if np.nanmin(values) >= low else f"{ends[0]} or less", ends[1]),
        across=("start of the run", lasting(timedelta(minutes=grid.minutes * values.shape[1]))),
        label=f"{title}. A row a GPU, time across, {ends[0]} to {ends[1]}.",
    )
    chart = Chart(title=title, svg=svg, note=_note(grid, told, shown=len(rows), compared=busy is not None))
    return Part(title=f"{told.title} over time", answer=_answer(notable, told, busy is not None), chart=chart)


def _busy(measured: Measured, grid: Grid) -> Any:
    """The columns in which the burn-in held all GPUs busy alike; None where it is not known when."""
    steps = measured.main("burn_in.step")
    times = [(each.measurement.start, each.measurement.end) for each in steps.values] if steps else []
    starts, ends = [start for start, _ in times if start], [end for _, end in times if end]
    if not starts or not ends:
        return None
    inside = grid.values[:, max(0, grid.span_of(min(starts)) + 1) : grid.span_of(max(ends))]
    inside = inside[:, ~np.isnan(inside).all(axis=0)]
    return inside if inside.shape[1] > 1 and not np.isnan(inside).all(axis=1).any() else None


def _off(busy: Any, told: _Told) -> Any:
    """How far each GPU stood on the bad side of the median of all, in the median over time."""
    middle = np.nanmedian(busy, axis=0)
    away = (busy - middle) * told.side
    return np.nanmedian(away / middle if told.shares and (middle > 0).all() else away, axis=1)


def _worst(values: Any, told: _Told) -> Any:
    return np.nanmax(values, axis=1) if told.side > 0 else np.nanmin(values, axis=1)


def _title(grid: Grid, off: Any, told: _Told) -> str:
    place = int(np.argmax(off))
    if off[place] < told.notable:
        return (
            f"All {number_of(len(grid.subjects), 'GPU')} alike under load: none {_by(told.notable, told)} {told.word}"
        )
    return f"{grid.subjects[place]} {told.verb} {_by(float(off[place]), told)} {told.word} than its peers under load"


def _by(away: float, told: _Told) -> str:
    return f"{math.floor(away * 100 + 0.5)} %" if told.shares else figure(away, told.unit)


def _extreme(grid: Grid, told: _Told) -> str:
    worst = _worst(grid.values, told)
    place = int(np.argmax(worst * told.side))
    return f"The {told.best}, {grid.subjects[place]}: {figure(float(worst[place]), told.unit)}"


def _answer(notable: frozenset[str], told: _Told, compared: bool) -> str:
    if not compared:
        return "GPUs are not compared: no burn-in held all of them busy at once for long enough."
    much = _by(told.notable, told)
    if not notable:
        return f"While the burn-in held all busy, none stayed {much} or more on the bad side of the median."
    who = number_of(len(notable), "GPU")
    return f"While the burn-in held all busy, {who} stayed {much} or more on the bad side of the median."


def _note(grid: Grid, told: _Told, *, shown: int, compared: bool) -> str:
    kept = {"temperature": "highest", "power": "highest mean", "clock": "lowest"}[grid.quantity]
    left = len(grid.subjects) - shown
    rest = f" The {shown} that stand furthest off; {left:,} others are left out." if left else ""
    under = " under load" if compared else ""
    cell = f"A cell is the {kept} of {lasting(timedelta(minutes=grid.minutes))}"
    return f"{cell}; at the right the {told.best} of the row{under}. Grey: nothing read.{rest}"
