"""The tables of a comparison's page."""

from collections.abc import Sequence

from ..scoring.comparison_model import Comparison, MetricCompared, Place, Standing
from ..scoring.out_of_use import out_in_words
from .comparison_words import (
    alike_words,
    interval_words,
    lowered,
    name_of,
    price_words,
    shape_of,
    value_words,
    verdict_words,
)
from .layout import Cell, Column, Table, number, text
from .numbers import NOTHING, percent, significant, utc
from .plain_text import listed, printable
from .sections.delivery import told

MOST_ROWS = 60
_TONES = {"NO_GO": "fail", "CONDITIONAL": "warn", "INCONCLUSIVE": "warn"}


def runs_table(found: Comparison) -> Table:
    """Who takes part."""
    columns = ("run", "size", "began", "USD/hour", "verdict", "take out", "delivery")
    rows = tuple(
        (
            text(name_of(run)), text(shape_of(run)), text(utc(run.started)),
            number(run.price_per_gpu_hour, price_words(run)),
            text(verdict_words(run), tone=_TONES.get(run.verdict, "")),
            text(printable(out_in_words(run.excluded), 200) or NOTHING),
            text(told(run.delivery) if run.delivery else NOTHING),
        )
        for run in found.runs
    )  # fmt: skip
    return _table("The runs; USD an accelerator-hour", columns, rows, numeric=(3,))


def ranking_table(found: Comparison) -> Table | None:
    """The order, with the figure that ranks and the reasons."""
    by = next((one for one in found.metrics if one.key == found.ranking.by), None)
    if by is None:
        return None
    standings = {each.letter: each for each in by.standings}
    names = {run.letter: name_of(run) for run in found.runs}
    rows = [_place_row(place, by, standings[place.letter], names) for place in found.ranking.places]
    rows += [
        (text(NOTHING), text(names[letter]), text(NOTHING), text(NOTHING), text(NOTHING), text(f"not ranked: {why}"))
        for letter, why in found.ranking.unranked
    ]
    columns = ("place", "run", "figure", "95 %", "tied with", "why")
    caption = f"In order of {lowered(by.title)}, {by.unit}; tied are those that cannot be told apart"
    return _table(caption, columns, tuple(rows), numeric=(2, 3))


def _place_row(place: Place, by: MetricCompared, each: Standing, names: dict[str, str]) -> tuple[Cell, ...]:
    return (
        text(str(place.place)), text(names[place.letter]), number(each.value, value_words(by, each)),
        number(each.low, interval_words(by, each)), text(", ".join(place.tied) or NOTHING),
        text(". ".join(place.reasons) or NOTHING),
    )  # fmt: skip


def figures_table(found: Comparison) -> Table:
    """Every figure of every run."""
    letters = [run.letter for run in found.runs]
    rows = tuple(
        (
            text(f"{one.title}, {one.unit}"), text(printable(one.measured_with, 120) or NOTHING),
            *(number(each.value, _with_interval(one, each)) for each in one.standings),
            text(alike_words(one)),
        )
        for one in found.metrics
    )  # fmt: skip
    columns = ("figure", "measured with", *letters, "tied")
    return _table(
        "Figures with their 95 % intervals, variance between runs included", columns, rows,
        numeric=tuple(range(2, 2 + len(letters))),
    )  # fmt: skip


def _with_interval(one: MetricCompared, each: Standing) -> str:
    if each.value is None:
        return each.why_not or "not measured"
    value, low, high = (significant(number) for number in (each.value, each.low or 0.0, each.high or 0.0))
    return f"{value} [{low} to {high}]"


def contrasts_table(found: Comparison) -> Table:
    """Every difference with its interval, those that are told apart first."""
    rows = [
        (not each.told_apart, -abs(each.ratio - 1), one, each) for one in found.metrics for each in one.contrasts
    ]  # fmt: skip
    rows.sort(key=lambda row: row[:2])
    shown = tuple(
        (
            text(one.title), text(f"{each.first} / {each.second}"), number(each.ratio, percent(each.ratio)),
            number(each.low, f"{percent(each.low)} to {percent(each.high)}"),
            text(f"{each.better} is better" if each.better else "cannot be told apart"),
            text(", ".join(each.may_explain) or NOTHING),
        )
        for _, _, one, each in rows[:MOST_ROWS]
    )  # fmt: skip
    sure = f"intervals that hold together with {percent(1 - found.alpha)}"
    table = _table(
        f"Differences, {sure}", ("figure", "runs", "ratio", "interval", "", "may be due to"), shown, numeric=(2, 3)
    )
    note = f"{len(rows) - MOST_ROWS:,} more: `hwlottery compare --json`." if len(rows) > MOST_ROWS else ""
    return Table(
        caption=table.caption, columns=table.columns, rows=table.rows, note=note, folded=True, on_paper="whole"
    )


def differences_table(found: Comparison) -> Table | None:
    """What is not alike, and what it forbids."""
    if not found.differences:
        return None
    letters = [run.letter for run in found.runs]
    rows = tuple(
        (
            text(each.aspect), text(each.effect, tone="fail" if each.effect == "forbids" else ""),
            *(text(printable(value, 120)) for value in each.values),
            text(lowered(listed(each.metrics, 4)) if each.metrics else NOTHING), text(each.why),
        )
        for each in found.differences
    )  # fmt: skip
    columns = ("what differs", "effect", *letters, "touches", "why")
    return _table("What is not alike", columns, rows)


def _table(
    caption: str, columns: Sequence[str], rows: tuple[tuple[Cell, ...], ...], numeric: Sequence[int] = ()
) -> Table:  # fmt: skip
    heads = tuple(Column(title=head, numeric=place in numeric) for place, head in enumerate(columns))
    return Table(caption=caption, columns=heads, rows=rows, on_paper="whole")
