"""A comparison in a terminal: the same object as the page."""

from collections.abc import Sequence
from functools import partial

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..scoring.comparison_model import Comparison, MetricCompared, Standing
from .comparison_words import (
    alike_words,
    headline,
    interval_words,
    method,
    name_of,
    price_words,
    shape_of,
    value_words,
    verdict_words,
)
from .numbers import NOTHING, utc
from .plain_text import printable, sentence
from .sections.delivery import told

_NARROW = 14  # characters of a run's column
_GAP = 2


def show_comparison(found: Comparison, console: Console) -> None:
    """Print what must be kept in mind, who takes part, the order with its reasons, the figures, and what differs."""
    for run in found.runs:
        for mark in run.marks:
            _say(console, f"{run.letter}: {mark}", "bold yellow")
    _say(console, headline(found), "bold")
    for run in found.runs:
        price = f"{price_words(run)} USD an accelerator-hour" if run.price_per_gpu_hour else "price not given"
        _say(console, " · ".join((name_of(run), shape_of(run), utc(run.started), price, verdict_words(run))))
        if run.delivery:
            _say(console, f"Delivery and support: {told(run.delivery)}", indent=2)
    _order(found, console)
    if found.metrics:
        _figures(found, console)
    for each in found.differences:
        _say(console, f"{each.effect}: {each.aspect}: {' | '.join(each.values)}. {sentence(each.why)}", indent=2)
    for note in (*found.notes, tuple(method(found))[1]):
        _say(console, note, "dim")


def _order(found: Comparison, console: Console) -> None:
    by = next((one for one in found.metrics if one.key == found.ranking.by), None)
    standings = {each.letter: each for each in by.standings} if by else {}
    for place in found.ranking.places:
        assert by is not None
        each = standings[place.letter]
        tied = f", cannot be told apart from {', '.join(place.tied)}" if place.tied else ""
        _say(console, f"{place.place}. {place.letter}  {value_words(by, each)} [{interval_words(by, each)}]{tied}")
        for reason in place.reasons:
            _say(console, reason, indent=6)
    for letter, why in found.ranking.unranked:
        _say(console, f"{NOTHING}  {letter}  not ranked: {why}")


def _figures(found: Comparison, console: Console) -> None:
    """A row a figure, a column a run, where every value stands in one piece; else the runs of each figure by letter.
    Intervals stand on the page and in the JSON document."""
    widths = [max(map(_whole, column)) for column in _columns(found)]
    if sum(widths) + _GAP * len(widths) <= console.width:
        console.print(_side_by_side(found, widths))
        return
    for one in found.metrics:
        _one_figure(one, console)


def _columns(found: Comparison) -> list[list[str]]:
    """Titles, each run's values, and what cannot be told apart: with what heads each column."""
    values = zip(*(map(partial(_cell, one), one.standings) for one in found.metrics), strict=True)
    runs = [[run.letter, *told] for run, told in zip(found.runs, values, strict=True)]
    titles, alike = (one.title for one in found.metrics), (alike_words(one) for one in found.metrics)
    return [["figure", *titles], *runs, ["not told apart", *alike]]


def _cell(one: MetricCompared, each: Standing) -> str:
    return printable(value_words(one, each) if each.value is not None else each.why_not)


def _whole(cell: str) -> int:
    """The least width that breaks no word, and no short value from its unit."""
    return len(cell) if len(cell) <= _NARROW else max(map(len, cell.split()))


def _side_by_side(found: Comparison, widths: Sequence[int]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
    columns = _columns(found)
    for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
        run = 0 < place < len(columns) - 1
        most = max(width, _NARROW) if run else None
        table.add_column(Text(column[0]), justify="right" if run else "left", min_width=width, max_width=most)
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _one_figure(one: MetricCompared, console: Console) -> None:
    alike = f"not told apart: {alike_words(one)}" if one.alike else alike_words(one)
    _say(console, f"{one.title} ({alike})", "bold")
    known = [f"{each.letter} {_cell(one, each)}" for each in one.standings if each.value is not None]
    if known:
        columns = Columns(map(Text, known), padding=(0, _GAP), width=max(map(len, known)))
        console.print(Padding(columns, (0, 0, 0, 2)))
    missing: dict[str, list[str]] = {}
    for each in one.standings:
        if each.value is None:
            missing.setdefault(_cell(one, each), []).append(each.letter)
    for why, letters in missing.items():
        _say(console, f"{', '.join(letters)}: {why}", "dim", indent=2)


def _say(console: Console, words: str, style: str = "", *, indent: int = 0) -> None:
    """Plain text; where it is folded, what follows is indented, so that no name can begin a line."""
    for place, line in enumerate(
        Text(printable(words), style=style).wrap(console, max(10, console.width - indent - 2))
    ):
        line.rstrip()
        console.print(Text(" " * (indent + 2 if place else indent)) + line)
