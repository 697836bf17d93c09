"""A chart from telemetry/NODE/*.parquet: windows a minute of temperature, clock or power. Read as untrusted input."""

import statistics
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from .charts import series
from .layout import Chart
from .numbers import figure

LARGEST_FILE = 32 * 2**20
MOST_FILES = 4096
MOST_ROWS = 8_000_000
_COLUMNS = ("subject", "quantity", "minute", "minimum", "mean", "maximum")
_QUANTITIES = (("temperature", "C", "temperature, °C"), ("clock", "MHz", "clock, MHz"), ("power", "W", "power, W"))


def telemetry_chart(run: Path) -> Chart | None:
    """The first quantity that is there, over minutes: median of the means with the range of minima and maxima.

    None where there is no telemetry or none of it can be read.
    """
    minutes = _minutes(run)
    for quantity, unit, axis in _QUANTITIES:
        found = next((name for name in minutes if quantity in name.lower()), None)
        if found and len(minutes[found]) > 1:
            return _drawn(minutes[found], quantity, unit, axis)
    return None


def _drawn(windows: dict[datetime, list[tuple[float, float, float]]], quantity: str, unit: str, axis: str) -> Chart:
    times = sorted(windows)
    points = []
    for at in times:
        low, mean, high = zip(*windows[at], strict=True)
        since = (at - times[0]).total_seconds() / 60
        points.append((since, min(low), statistics.median(mean), max(high)))
    top = max(point[3] for point in points)
    title = (
        f"Highest {quantity} {figure(top, unit)}, {figure(statistics.median(p[2] for p in points), unit)} in the middle"
    )
    svg = series(points, x="minutes since the first reading", y=axis, label=title)
    return Chart(title=title, svg=svg, note="Line: median over all devices. Band: lowest to highest.")


def _minutes(run: Path) -> dict[str, dict[datetime, list[tuple[float, float, float]]]]:
    found: dict[str, dict[datetime, list[tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(list))
    rows = 0
    for file in _files(run / "telemetry"):
        for row in _rows(file):
            rows += 1
            if rows > MOST_ROWS:
                return found
            at, values = row["minute"], (row["minimum"], row["mean"], row["maximum"])
            if isinstance(at, datetime) and all(_is_finite(value) for value in values):
                found[str(row["quantity"])][at].append(values)
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Plain files of nodes' folders; links are not followed."""
    if not folder.is_dir() or folder.is_symlink():
        return
    places = [place for place in sorted(folder.iterdir()) if place.is_dir() and not place.is_symlink()]
    files = [file for place in places for file in sorted(place.glob("*.parquet"))]
    for file in files[:MOST_FILES]:
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST_FILE:
            yield file


def _rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file, or none where it is no telemetry: a part without its footer was cut off and is lost."""
    import pyarrow
    import pyarrow.parquet

    try:
        content = pyarrow.parquet.ParquetFile(file)
        if content.metadata.num_rows > MOST_ROWS or not set(_COLUMNS) <= set(content.schema_arrow.names):
            return []
        rows: list[dict[str, Any]] = content.read(columns=list(_COLUMNS)).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError):
        return []
    return rows


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")
