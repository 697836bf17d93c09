"""The tables of a history's page."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from ..scoring.history import ClusterHistory, Covered, History, Series
from ..scoring.history_changes import Change
from ..scoring.ledger import Ledger, LedgerLine
from ..scoring.lemons import Lemon
from .first_screen import WORDS
from .history_charts import worsened
from .history_words import gap, series_name, signed
from .layout import Cell, Column, Table, number, text
from .numbers import NOTHING, dollars, figure, significant, utc
from .over_time import sparkline
from .plain_text import listed, natural, printable

MOST_ROWS = 100
_TONES = {"NO_GO": "fail", "CONDITIONAL": "warn", "INCONCLUSIVE": "warn"}


def coverage_table(cluster: ClusterHistory) -> Table:
    """Each node: when it was last measured, and with a partner."""
    rows = sorted(cluster.coverage, key=lambda one: (not one.missing, natural(one.node)))
    columns = ("node", "measured", "with a partner", "coverage", "machine")
    return _table("Nodes, those that are not covered first", columns, [_covered_row(one) for one in rows], folded=True)


def _covered_row(one: Covered) -> tuple[Cell, ...]:
    return (
        text(one.node), _time(one.measured), _time(one.with_partner),
        text(gap(one) or "covered", tone="fail" if one.missing else ""), text(printable(one.machine, 40), code=True),
    )  # fmt: skip


def lemons_table(cluster: ClusterHistory) -> Table | None:
    """Machines that keep failing; those that are still here first."""
    if not cluster.lemons:
        return None
    paths = {run.run_id: printable(run.path.rpartition("/")[2], 60) for run in cluster.runs}
    rows = [_lemon_row(one, paths) for one in sorted(cluster.lemons, key=lambda one: (one.here is None, one.names))]
    columns = ("now", "was called", "failed", "of runs", "in", "checks", "came back", "machine")
    return _table("Who failed, and in which runs", columns, rows, numeric=(2, 3))


def _lemon_row(one: Lemon, paths: Mapping[str, str]) -> tuple[Cell, ...]:
    here = text(one.here, tone="fail") if one.here is not None else text("gone")
    return (
        here, text(listed([name for name in one.names if name != one.here], 4) or NOTHING),
        number(len(one.failed_in), f"{len(one.failed_in):,}"), number(one.seen_in, f"{one.seen_in:,}"),
        text(listed([paths.get(run, run) for run in one.failed_in], 6)), text(listed(one.checks, 6)),
        text("yes" if one.back else "no"), text(printable(one.machine, 40), code=True),
    )  # fmt: skip


def series_table(shown: Sequence[Series]) -> Table:
    """Every metric over the runs, the worse ones first."""
    columns = ("metric", "runs", "first", "last", "against before", "better", "over the runs")
    rows = [_series_row(one) for one in shown]
    return _table("All metrics, as the median over subjects", columns, rows, numeric=range(1, 5), folded=True)


def _series_row(one: Series) -> tuple[Cell, ...]:
    values = [point.value for point in one.points]
    worse = one.worse_by
    away = None if worse is None else worse if one.better == "lower" else -worse
    return (
        text(printable(series_name(one), 160)), number(len(values), f"{len(values):,}"),
        *(number(value, figure(value, one.unit)) for value in (values[0], values[-1])),
        number(away, NOTHING if away is None else signed(away), tone="fail" if worsened(one) else ""),
        text(one.better), text(sparkline(values)),
    )  # fmt: skip


def changes_table(changes: Sequence[Change], marks: Mapping[str, int]) -> Table | None:
    """What changed beside the figures, by the run that found it; numbered as in the charts."""
    if not changes:
        return None
    rows = [_change_row(one, marks) for one in reversed(changes)]
    columns = ("mark", "found", "what", "kind", "nodes")
    return _table("What else changed, newest first; the numbers stand in the charts", columns, rows, numeric=(0,))


def _change_row(one: Change, marks: Mapping[str, int]) -> tuple[Cell, ...]:
    mark, nodes = marks.get(one.run_id), len(one.nodes)
    kind = "hardware" if one.kind == "hardware" else "software, settings"
    return (
        number(mark, NOTHING if mark is None else str(mark)), _time(one.time),
        text(printable(one.what, 200)), text(kind), number(nodes, f"{nodes:,}: {listed(one.nodes, 4)}"),
    )  # fmt: skip


def ledger_table(found: Ledger) -> Table:
    """From each run to the next."""
    columns = ("from", "to", "paid", "delivered", "healthy", "USD", "of them not healthy")
    rows = [_ledger_row(line) for line in reversed(found.lines)]
    return _table("Node-hours from each run to the next, newest first", columns, rows, numeric=range(2, 7), folded=True)


def _ledger_row(line: LedgerLine) -> tuple[Cell, ...]:
    hours = (number(part, significant(part)) for part in (line.paid, line.delivered, line.healthy))
    money = (number(part, dollars(part) if part is not None else NOTHING) for part in (line.usd, line.usd_unhealthy))
    return (_time(line.since), _time(line.until), *hours, *money)


def runs_table(cluster: ClusterHistory) -> Table:
    """The runs that were read, newest first."""
    rows = [
        (
            text(printable(run.path.rpartition("/")[2], 80)), _time(run.started),
            text(WORDS[run.verdict], tone=_TONES.get(run.verdict, "")), number(run.nodes, f"{run.nodes:,}"),
            text("whole" if run.whole else "cut off or damaged", tone="" if run.whole else "warn"),
        )
        for run in reversed(cluster.runs)
    ]  # fmt: skip
    return _table("Runs, newest first", ("run", "began", "verdict", "nodes", "record"), rows, numeric=(3,))


def skipped_table(history: History) -> Table | None:
    """What lies in the folder and was left out."""
    if not history.skipped:
        return None
    rows = [(text(printable(one.path, 120)), text(printable(one.why, 300))) for one in history.skipped]
    return _table("Left out", ("folder", "why"), rows)


def _time(moment: datetime | None) -> Cell:
    return Cell(text=utc(moment), sort=moment.timestamp() if moment else None)


def _table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    numeric: Sequence[int] = (),
    *,
    folded: bool = False,
) -> Table:
    heads = tuple(Column(title=head, numeric=place in numeric) for place, head in enumerate(columns))
    note = f"{len(rows) - MOST_ROWS:,} more: `hwlottery history --json`." if len(rows) > MOST_ROWS else ""
    return Table(caption=caption, columns=heads, rows=tuple(rows[:MOST_ROWS]), note=note, folded=folded)
