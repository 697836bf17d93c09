"""Temperature, power and clock of each GPU over the run, pooled to at most 96 spans of time. Untrusted input."""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
from msgspec import Struct

from ..evidence import Run
from .telemetry import tables

SPANS = 96
_ROWS_AT_ONCE = 200_000
MOST_GPUS = 20_000  # three grids of 16 MB
# What of a span is kept: the hottest moment, the highest mean power, the slowest clock.
_KEPT = {"temperature": ("maximum", np.fmax), "power": ("mean", np.fmax), "clock": ("minimum", np.fmin)}


class Grid(Struct, frozen=True, kw_only=True):
    """One quantity: `values` has a row a subject and a column a span of `minutes`, NaN where nothing was read."""

    quantity: str
    subjects: tuple[str, ...]
    values: Any  # numpy, subjects x spans
    start: datetime
    minutes: float  # of a span

    def span_of(self, moment: datetime) -> int:
        """The column in which a moment lies."""
        return int((moment - self.start).total_seconds() / 60 / self.minutes)


def grids(run: Run) -> list[Grid]:
    """A grid for each quantity that was read on two promised GPUs or more, in two spans or more."""
    subjects = tuple(f"{node.node}/{rank}" for node in run.header.promised for rank in node.ranks)
    if run.started is None or run.ended is None or not 1 < len(subjects) <= MOST_GPUS:
        return []
    length = (run.ended - run.started).total_seconds() / 60
    minutes = max(1.0, math.ceil(length / SPANS))
    shape = (len(subjects), min(SPANS, int(length / minutes)) + 1)
    values = _filled(run, subjects, run.started.timestamp() // 60, minutes, shape)
    found = [_read(quantity, subjects, each, run.started, minutes) for quantity, each in values.items()]
    return [grid for grid in found if min(grid.values.shape) > 1]


def _filled(
    run: Run, subjects: tuple[str, ...], first: float, minutes: float, shape: tuple[int, int]
) -> dict[str, Any]:
    """Each quantity with its values by subject and span. Whatever is none of them is passed over."""
    import pyarrow

    wanted = pyarrow.array(subjects)
    values = {quantity: np.full(shape, np.nan) for quantity in _KEPT}
    try:
        for table in _together(tables(run.path / "telemetry")):
            there = set(table["quantity"].unique().to_pylist())
            for quantity, grid in values.items():
                if quantity in there:
                    _take(table, quantity, grid, wanted, first=first, minutes=minutes)
    except pyarrow.ArrowException:
        return {}
    return values


def _together(parts: Iterable[Any]) -> Iterator[Any]:
    """Parts joined until they have some rows: a part has a few minutes of a node, and each look at one costs the same
    as at many."""
    import pyarrow

    waiting, rows = [], 0
    for part in parts:
        waiting.append(part)
        rows += part.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield pyarrow.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pyarrow.concat_tables(waiting)


def _take(table: Any, quantity: str, grid: Any, wanted: Any, *, first: float, minutes: float) -> None:
    import pyarrow.compute as pc

    part = table.filter(pc.equal(table["quantity"], quantity))
    column, better = _KEPT[quantity]
    rows = pc.fill_null(pc.index_in(part["subject"], value_set=wanted), -1).to_numpy()
    spans = np.floor((pc.fill_null(part["minute"], math.nan).to_numpy() - first) / minutes)
    read = pc.fill_null(part[column], math.nan).to_numpy()
    kept = (rows >= 0) & (spans >= 0) & (spans < grid.shape[1]) & np.isfinite(read)
    better.at(grid, (rows[kept], spans[kept].astype(int)), read[kept])


def _read(quantity: str, subjects: tuple[str, ...], values: Any, start: datetime, minutes: float) -> Grid:
    """The grid without subjects and last spans of which nothing was read."""
    rows, spans = ~np.isnan(values).all(axis=1), ~np.isnan(values).all(axis=0)
    last = int(np.flatnonzero(spans)[-1]) + 1 if spans.any() else 0
    names = tuple(name for name, there in zip(subjects, rows, strict=True) if there)
    return Grid(quantity=quantity, subjects=names, values=values[rows, :last], start=start, minutes=minutes)
