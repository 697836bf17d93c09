"""All measurements as CSV rows, one a measurement, and what was not measured with its reason."""

import csv
import re
import statistics
from collections.abc import Iterator
from datetime import datetime
from typing import TextIO

import msgspec

from ..evidence import Measurement, NotMeasured, Params, Run, is_metric, metric, value_of
from ..evidence.records import QUANTILES
from .plain_text import printable

COLUMNS = (
    "number",
    "metric",
    "unit",
    "subject",
    "params",
    "state",
    "statistic",
    "value",
    "n",
    "min",
    "median",
    "max",
    "trial",
    "attempt",
    "retest_of",
    "start",
    "end",
    "detail",
)
# A spreadsheet takes a cell that begins so for a formula (OWASP: CSV injection); a number may begin with a minus.
_FORMULA = re.compile(r"^[\s]*[=+\-@\t\r]")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?(e[+-]?\d+)?$")


def write(run: Run, out: TextIO) -> None:
    """Write every measurement and every NotMeasured of the run, in the order they were recorded.

    `state` is measured, or the reason why not; the figures of what was not measured are empty, never 0. Numbers are
    written in full. Text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    records: list[Measurement | NotMeasured] = [*run.measurements, *run.not_measured]
    for record in sorted(records, key=lambda each: each.number or 0):
        rows.writerow([_safe(cell) for cell in _row(record)])


def _row(record: Measurement | NotMeasured) -> Iterator[str]:
    known = metric(record.metric) if is_metric(record.metric) else None
    yield str(record.number or "")
    yield record.metric
    yield known.unit if known else ""
    yield record.subject
    yield _params(record.params)
    if isinstance(record, Measurement):
        yield "measured"
        yield known.statistic if known else ""
        yield from _figures(record)
    else:
        yield record.reason
        yield from [""] * 6
    yield record.trial or ""
    yield str(record.attempt)
    yield record.retest_of or ""
    if isinstance(record, Measurement):
        yield from (_time(record.start), _time(record.end), "")
    else:
        yield from ("", "", record.detail)


def _figures(record: Measurement) -> Iterator[str]:
    """value, n, min, median, max."""
    numbers = record.numbers()
    yield _number(value_of(record))
    yield str(record.count or len(numbers))
    yield _number(min(numbers))
    yield _number(_median(record))
    yield _number(max(numbers))


def _median(record: Measurement) -> float:
    if record.quantiles is not None:
        return record.quantiles[QUANTILES.index(0.5)]
    return statistics.median(record.numbers())


def _params(params: Params) -> str:
    return msgspec.json.encode(params, order="sorted").decode() if params else ""


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def _safe(cell: str) -> str:
    shown = printable(cell)
    formula = _FORMULA.match(shown) or _FORMULA.match(cell)
    return f"'{shown}" if formula and not _NUMBER.match(shown) else shown
