"""Money and time: what the rental gives for its money, what it rests on, and a calculator to change that."""

from collections.abc import Callable

from ...scoring.verdict import Economics, Interval, Verdict
from ..calculator import calculator
from ..layout import Cell, Column, Section, Table, number, text
from ..measured import Measured
from ..money import cost_of_the_test, training_run
from ..numbers import NOTHING, below_all, dollars, long_time, percent, significant
from ..plain_text import printable

_MOST_COSTS = 50
_WAYS = {"hot": "a hot spare", "cold": "a cold spare", "none": "no spare: the job waits"}


def economics(_measured: Measured, verdict: Verdict) -> Section:
    """The section on money and time."""
    money = verdict.economics
    tables = (_figures(money), _ways(money), _costs(money))
    return Section(
        anchor="economics",
        title="Money and time",
        answer=_answer(money),
        tables=tuple(table for table in tables if table is not None),
        calculator=calculator(money),
        method=(
            "Goodput is exact for failures at a constant rate, with Daly's interval between checkpoints. Effective "
            "throughput is MFU x goodput x (1 - straggler loss) x what trains of what is paid for.",
            "An interval has failure rate and speed both at their bad ends, and both at their good ends.",
            "What is assumed says so; a file of costs states it instead (docs/economics.md).",
        ),
        source=("Daly, FGCS 22 (2006)", "https://doi.org/10.1016/j.future.2004.11.016"),
        cannot_tell="What another run would show, and how a larger model saves: saves are as large as those measured.",
    )


def _answer(money: Economics) -> str:
    told = [training_run(money), cost_of_the_test(money)]
    if money.goodput is None:
        told.insert(0, "Not measured: what the rental gives for its money needs a save of a checkpoint.")
    if money.missing:
        told.append(f"Missing: {printable('; '.join(money.missing), 600)}.")
    return " ".join(part for part in told if part).replace("$ ", "$\N{NO-BREAK SPACE}")


def _figures(money: Economics) -> Table | None:
    """Every figure with its interval and what it rests on."""
    shown = [
        _row("Goodput", money.goodput, below_all),
        _row("Effective throughput, of the peak of all that is paid for", money.effective_throughput, percent),
        _row("USD a useful PFLOP-day", money.usd_per_pflop_day, dollars),
        _row("Time of the training run", money.run_s, long_time),
        _row("Cost of the training run", money.run_usd, dollars),
        _row("Spare nodes", money.spares, significant),
        _row("A hot spare pays from a wait of", money.hot_spare_pays_from_s, long_time),
        _row("Best time between two checkpoints", money.checkpoint_interval_s, long_time),
        _row("Longest save for 5 % of overhead", money.longest_save_s, long_time),
    ]
    rows = tuple(row for row in shown if row is not None)
    columns = (
        Column(title="Figure"), Column(title="Value", numeric=True), Column(title="Interval", numeric=True),
        Column(title="Rests on"),
    )  # fmt: skip
    return Table(caption="What it gives, and what that rests on", columns=columns, rows=rows) if rows else None


def _row(name: str, shown: Interval | None, words: Callable[[float], str]) -> tuple[Cell, ...] | None:
    if shown is None or shown.value is None:
        return None
    ends = [NOTHING if end is None else words(end) for end in (shown.low, shown.high)]
    interval = NOTHING if shown.low is None and shown.high is None else " to ".join(ends)
    return (text(name), number(shown.value, words(shown.value)), text(interval), text(printable(shown.basis, 400)))


def _ways(money: Economics) -> Table | None:
    """The three ways to make up for a failed node."""
    columns = (
        Column(title="Way"), Column(title="Wait, h", numeric=True), Column(title="Says who"),
        Column(title="Spares paid for", numeric=True),
        Column(title="Goodput", numeric=True), Column(title="Interval", numeric=True),
        Column(title="USD/PFLOP-day", numeric=True),
    )  # fmt: skip
    rows = []
    for way in money.replacements:
        cells = _row(_WAYS[way.spare], way.goodput, below_all)
        usd = way.usd_per_pflop_day.value if way.usd_per_pflop_day else None
        told = [word for word, so in (("the one assumed above", way.assumed), ("the cheapest", way.cheapest)) if so]
        name = _WAYS[way.spare] + (f" ({', '.join(told)})" if told else "")
        spares = number(way.spare_nodes, str(way.spare_nodes))
        wait = number(way.wait_hours, significant(way.wait_hours))
        if cells is not None:
            paid = number(usd, NOTHING if usd is None else dollars(usd))
            rows.append((text(name), wait, text(printable(way.source, 80)), spares, *cells[1:3], paid))
    note = (
        "Every failure is taken to need another node. Hot spares are paid for all the time, one at least, and are in "
        "these prices; a cold spare and a replacement are paid for once they train."
    )
    if (pays := money.hot_spare_pays_from_s) is not None and pays.value is not None:
        note += f" A hot spare is the cheaper way where another node takes longer than {long_time(pays.value)}."
    caption = "Three ways to replace a failed node"
    return Table(caption=caption, columns=columns, rows=tuple(rows), note=note) if rows else None


def _costs(money: Economics) -> Table | None:
    """What each finding costs a month, the dearest first."""
    columns = (
        Column(title="Finding"), Column(title="Cost a month", numeric=True), Column(title="Interval", numeric=True),
        Column(title="Because"),
    )  # fmt: skip
    rows = [
        _row(
            printable(f"{cost.subject} ({', '.join(cost.checks)})" if cost.checks else cost.subject, 120),
            cost.usd,
            dollars,
        )
        for cost in money.findings[:_MOST_COSTS]
    ]
    left = len(money.findings) - _MOST_COSTS
    note = f"{left} more are in `verdict.json`." if left > 0 else ""
    shown = tuple(row for row in rows if row is not None)
    return Table(caption="What findings cost", columns=columns, rows=shown, note=note) if shown else None
