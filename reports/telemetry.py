"""A chart from telemetry/NODE/*.parquet: windows a minute of temperature, clock or power. Read as untrusted input."""

import math
import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from .curves import series
from .layout import Chart
from .numbers import figure

LARGEST_FILE = 32 * 2**20
MOST_FILES = 65_536
MOST_ROWS = 50_000_000  # 512 nodes x 8 GPUs x a day are 5.9 million of each quantity
MOST_ROWS_OF_A_PART = 1_000_000  # some bytes of a file can stand for billions of like rows
LARGEST_COLUMN = 64 * 2**20
_LONGEST_WORD = 160
_POOLED_AT_ONCE = 64
_MOST_POINTS = 600
_WORDS = ("subject", "quantity")
_COLUMNS = (*_WORDS, "minute", "minimum", "mean", "maximum")
# quantity as the sensors name it, its unit, its axis, what the title says
_QUANTITIES = (
    ("temperature", "C", "temperature, °C", "Highest temperature under load"),
    ("power", "W", "power, W", "Highest power under load"),
    ("foreign_cpu", "cores", "cores", "Most cores used by other processes"),
    ("load", "", "load average", "Highest load average"),
)

Window = tuple[float, float, float, float]  # minute, lowest, mean, highest


def telemetry_chart(run: Path) -> Chart | None:
    """The first quantity that is there, over minutes: the mean over all devices with lowest and highest.

    None where there is no telemetry, or none of it can be read.
    """
    by_quantity = _windows(run)
    for quantity, unit, axis, words in _QUANTITIES:
        windows = sorted(by_quantity.get(quantity, []))
        if len(windows) > 1:
            return _drawn(windows, unit, axis, words)
    return None


def _drawn(windows: list[Window], unit: str, axis: str, words: str) -> Chart:
    start = windows[0][0]
    step = -(-len(windows) // _MOST_POINTS)
    points = [_pooled(windows[at : at + step], start) for at in range(0, len(windows), step)]
    top = max(point[3] for point in points)
    title = f"{words}: {figure(top, unit)}"
    svg = series(points, x="minutes since the first reading", y=axis, label=title)
    return Chart(title=title, svg=svg, note="Line: mean over all devices. Band: lowest to highest.")


def _pooled(windows: list[Window], start: float) -> Window:
    means = [window[2] for window in windows]
    lowest, highest = min(window[1] for window in windows), max(window[3] for window in windows)
    return windows[0][0] - start, lowest, sum(means) / len(means), highest


def _windows(run: Path) -> dict[str, list[Window]]:
    """Windows by quantity, all devices pooled minute by minute."""
    import pyarrow

    try:
        pooled = _pooled_over_devices(tables(run / "telemetry"))
    except pyarrow.ArrowException:
        return {}
    found: dict[str, list[Window]] = {}
    for row in pooled:
        mean = row["total"] / row["rows"] if row["rows"] else math.nan
        window = (row["minute"], row["minimum"], mean, row["maximum"])
        if all(isinstance(part, float) and math.isfinite(part) for part in window):
            found.setdefault(str(row["quantity"]), []).append(window)
    return found


def _pooled_over_devices(tables: Iterable[Any]) -> list[dict[str, Any]]:
    """One row for each quantity and minute. Parts are pooled as they come: a day of 512 nodes is millions of rows."""
    import pyarrow

    so_far: list[Any] = []
    for table in tables:
        so_far.append(_pool(_with_totals(table)))
        if len(so_far) >= _POOLED_AT_ONCE:
            so_far = [_pool(pyarrow.concat_tables(so_far))]
    rows: list[dict[str, Any]] = _pool(pyarrow.concat_tables(so_far)).to_pylist() if so_far else []
    return rows


def _with_totals(table: Any) -> Any:
    """A part whose rows can be pooled again and again: sums and how many rows are in them."""
    import pyarrow
    import pyarrow.compute

    counted = pyarrow.compute.cast(pyarrow.compute.is_valid(table["mean"]), pyarrow.int64())
    columns = [table[name] for name in ("quantity", "minute", "minimum", "maximum", "mean")]
    return pyarrow.table([*columns, counted], names=["quantity", "minute", "minimum", "maximum", "total", "rows"])


def _pool(table: Any) -> Any:
    over_devices = [("minimum", "min"), ("maximum", "max"), ("total", "sum"), ("rows", "sum")]
    pooled = table.group_by(["quantity", "minute"]).aggregate(over_devices)
    plain = {f"{name}_{how}": name for name, how in over_devices}
    return pooled.rename_columns([plain.get(name, name) for name in pooled.column_names])


def tables(folder: Path) -> Iterator[Any]:
    """Each readable part with the columns subject, quantity, minute (since 1970), minimum, mean and maximum, as text
    and floats, as long as there is room. Raises pyarrow.ArrowException."""
    room = MOST_ROWS
    for file in _files(folder):
        table = _table(file, room)
        if table is not None:
            room -= table.num_rows
            yield table


def _files(folder: Path) -> Iterator[Path]:
    """Plain files in nodes' folders; links are not followed."""
    if not folder.is_dir() or folder.is_symlink():
        return
    places = [place.path for place in _in_order(folder) if place.is_dir(follow_symlinks=False)]
    for file in islice(chain.from_iterable(map(_in_order, places)), MOST_FILES):
        plain = file.name.endswith(".parquet") and file.is_file(follow_symlinks=False)
        if plain and file.stat(follow_symlinks=False).st_size <= LARGEST_FILE:
            yield Path(file.path)


def _in_order(folder: Path | str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=attrgetter("name"))


def _table(file: Path, room: int) -> Any:
    """One part, or None where it is no telemetry: a part without its footer was cut off and is lost."""
    import pyarrow
    import pyarrow.parquet

    try:
        # As a dictionary: a long word that stands in each of a million rows is kept once.
        content = pyarrow.parquet.ParquetFile(file, read_dictionary=list(_WORDS))
        if not _can_be_read(content, room):
            return None
        table = content.read(columns=list(_COLUMNS), use_threads=False)
        return pyarrow.table({name: _as_column(table[name], name) for name in _COLUMNS})
    except (pyarrow.ArrowException, OSError, ValueError, TypeError):
        return None


def _can_be_read(content: Any, room: int) -> bool:
    """Whether a part has the columns, of plain types, and no more in them than a few minutes of a node can be."""
    from pyarrow import types

    if content.metadata.num_rows > min(room, MOST_ROWS_OF_A_PART):
        return False
    kinds = {field.name: field.type for field in content.schema_arrow}
    number = (types.is_floating, types.is_integer, types.is_timestamp)
    plain = all(name in kinds and any(of(kinds[name]) for of in number) for name in _COLUMNS if name not in _WORDS)
    return (
        plain
        and all(name in kinds and types.is_dictionary(kinds[name]) for name in _WORDS)
        and _size(content) <= LARGEST_COLUMN
    )


def _size(content: Any) -> int:
    """Bytes of the largest column, when unpacked."""
    groups = [content.metadata.row_group(index) for index in range(content.metadata.num_row_groups)]
    sizes = [
        [group.column(index).total_uncompressed_size for group in groups]
        for index in range(content.metadata.num_columns)
    ]
    return max((sum(column) for column in sizes), default=0)


def _as_column(column: Any, name: str) -> Any:
    import pyarrow
    import pyarrow.compute

    if name in _WORDS:
        if any(len(word or "") > _LONGEST_WORD for chunk in column.chunks for word in chunk.dictionary.to_pylist()):
            raise ValueError("no name is so long")
        return column.cast(pyarrow.string())
    if pyarrow.types.is_timestamp(column.type):
        seconds = column.cast(pyarrow.timestamp("us", tz=column.type.tz)).cast(pyarrow.int64())
        return pyarrow.compute.divide(seconds.cast(pyarrow.float64()), 60e6)
    return column.cast(pyarrow.float64())
