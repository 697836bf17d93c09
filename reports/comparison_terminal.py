"""A comparison in a terminal: the same object as the page."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..scoring.comparison_model import Comparison
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
        console.print(_figures(found))
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


def _figures(found: Comparison) -> Table:
    """A row a figure, a column a run; intervals stand on the page and in the JSON document."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("figure", overflow="fold")
    for run in found.runs:
        table.add_column(run.letter, justify="right", overflow="fold", max_width=_NARROW)
    table.add_column("not told apart", overflow="fold")
    for one in found.metrics:
        values = (value_words(one, each) if each.value is not None else each.why_not for each in one.standings)
        table.add_row(*(Text(printable(part)) for part in (one.title, *values, alike_words(one))))
    return table


def _say(console: Console, words: str, style: str = "", *, indent: int = 0) -> None:
    """Plain text; where it is folded, what follows is indented, so that no name can begin a line."""
    for place, line in enumerate(
        Text(printable(words), style=style).wrap(console, max(10, console.width - indent - 2))
    ):
        line.rstrip()
        console.print(Text(" " * (indent + 2 if place else indent)) + line)
