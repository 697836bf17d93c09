"""The verdict in a terminal: the same object as the page, at any width, with or without colours."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..evidence import Run
from ..scoring.joined import standing
from ..scoring.verdict import Result, Verdict, VerdictWord
from .change import beside_baseline
from .findings import Row, rows
from .first_screen import WORDS, CategoryState, categories, figures, tally
from .measured import Measured
from .money import cost_of_the_test, training_run
from .numbers import NOTHING
from .plain_text import printable
from .rental import rented, when
from .visibility import exclusion, required_words

MOST_ROWS = 20
MOST_REASONS = 5
_VERDICT_STYLES: dict[VerdictWord, str] = {
    "GO": "bold green",
    "CONDITIONAL": "bold yellow",
    "INCONCLUSIVE": "bold cyan",
    "NO_GO": "bold red",
}
_SIGNS: dict[VerdictWord, str] = {"GO": "[+]", "CONDITIONAL": "[!]", "INCONCLUSIVE": "[?]", "NO_GO": "[x]"}
_STYLES: dict[Result, str] = {"pass": "dim", "warn": "yellow", "fail": "bold red", "not_measured": "cyan"}
_NARROW = 72


def show(verdict: Verdict, run: Run, console: Console) -> None:
    """Print caveats, the verdict with its reasons, the four figures, the categories and what did not pass."""
    measured = Measured(standing(run))
    for caveat in verdict.caveats:
        _say(console, caveat, "bold yellow")
    _headline(verdict, console)
    _say(console, " · ".join(part for part in (rented(run), when(run)) if part), "dim")
    _four(run, measured, verdict, console)
    for told in (
        training_run(verdict.economics) if verdict.economics.run_flops else "",
        cost_of_the_test(verdict.economics),
    ):
        if told:
            _say(console, told)
    console.print(_category_line(categories(verdict)))
    _findings(measured, verdict, console)
    for line in beside_baseline(verdict):
        _say(console, line)
    out = exclusion(verdict)
    if out.option:
        _say(console, f"Take out: {out.option}")
    if out.parts:
        _say(console, f"Among them for links and devices: {', '.join(out.parts)}")
    _say(console, required_words(verdict), "dim")


def _headline(verdict: Verdict, console: Console) -> None:
    """The verdict with its sign: square brackets only for one that may be signed, or says no."""
    unsigned = verdict.verdict in ("GO", "CONDITIONAL") and not verdict.signable
    sign = _SIGNS[verdict.verdict]
    sign = f"({sign[1:-1]})" if unsigned else sign
    signed = "signable" if verdict.signable else "not signable"
    style = _VERDICT_STYLES[verdict.verdict].removeprefix("bold " if unsigned else "")
    line = Text.assemble((f"{sign} {WORDS[verdict.verdict]}", style), f", {signed}", "  ", printable(verdict.sentence))
    _hanging(console, line)
    for reason in verdict.reasons[:MOST_REASONS]:
        _say(console, reason, indent=2)
    if verdict.not_judged:
        more = len(verdict.not_judged) - 2
        told = " ".join(verdict.not_judged[:2]) + (f" And {more} more in the report." if more > 0 else "")
        _say(console, f"Not judged: {told}", indent=2)
    if verdict.confidence:
        _say(console, f"Confidence: {verdict.confidence}", indent=2)


def _four(run: Run, measured: Measured, verdict: Verdict, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    for one in figures(run, measured, verdict):
        value = Text(printable(one.value), style="dim" if one.qualifier else "bold")
        value.append(f" {one.qualifier}" if one.qualifier else "")
        value += Text(f" [{one.interval}]" if one.interval else "")
        grid.add_row(Text(one.title), value, Text(printable(one.note), style="dim"))
    console.print(grid)


def _category_line(states: tuple[CategoryState, ...]) -> Text:
    parts = [Text.assemble(f"{state.name} ", (state.word, _STYLES[state.result])) for state in states]
    return Text(" · ").join(parts)


def _findings(measured: Measured, verdict: Verdict, console: Console) -> None:
    found, left_out = rows(measured, verdict, charts=False)
    passed = sum(each.result == "pass" for each in verdict.findings)
    if not found:
        _say(console, f"Every check passed ({passed} results).")
        return
    _say(console, f"{tally(verdict.findings, verdict)} · {passed:,} pass")
    if console.width < _NARROW:
        for row in found[:MOST_ROWS]:
            _hanging(console, _line(row))
    else:
        console.print(_table(found[:MOST_ROWS]))
    more = len(found) - len(found[:MOST_ROWS]) + left_out
    if more:
        _say(console, f"{more} more in the report.", "dim")


def _table(found: list[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("result", "subject", "check", "observed", "expected"):
        table.add_column(head, justify="right" if head == "observed" else "left", overflow="fold")
    for row in found:
        result = Text(row.result_word, style=_STYLES[row.result])
        table.add_row(result, *(Text(part) for part in (row.subject, row.check, row.observed, row.expected)))
    return table


def _line(row: Row) -> Text:
    told = (
        f" {row.subject} {row.check}: {'' if row.observed == NOTHING else f'{row.observed}, '}expected {row.expected}"
    )
    return Text.assemble((row.result_word, _STYLES[row.result]), told)


def _say(console: Console, words: str, style: str = "", *, indent: int = 0) -> None:
    """Plain text: square brackets in names are no markup."""
    _hanging(console, Text(printable(words), style=style), indent)


def _hanging(console: Console, words: Text, indent: int = 0) -> None:
    """One line of the report; where it is folded, what follows is indented, so that no name can begin a line."""
    deeper = indent + 2
    for place, line in enumerate(words.wrap(console, max(10, console.width - deeper))):
        line.rstrip()
        console.print(Text(" " * (deeper if place else indent)) + line)
