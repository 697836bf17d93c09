"""The history of a folder of runs in a terminal: coverage, machines that keep failing, metrics over weeks."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from ..scoring.history import ClusterHistory, History, Series
from ..scoring.words import counted
from .history_words import change, gap, ledger, lemon, moved, moves, rates, series_name
from .plain_text import printable

MOST_LINES = 20
_BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 40


def show_history(history: History, console: Console) -> None:
    """Print it cluster by cluster; names may be anybody's, and none of them drives the terminal."""
    for line in lines(history):
        console.print(printable(line), markup=False, soft_wrap=True)


def lines(history: History) -> Iterator[str]:
    """All of it, line by line."""
    if not history.clusters:
        yield "No run was read: nothing is covered."
    for cluster in history.clusters:
        yield from _of_cluster(cluster, history)
    for skipped in history.skipped[:MOST_LINES]:
        yield f"skipped {skipped.path}: {skipped.why}"
    if len(history.skipped) > MOST_LINES:
        yield f"and {len(history.skipped) - MOST_LINES} more skipped"


def _of_cluster(cluster: ClusterHistory, history: History) -> Iterator[str]:
    first, last = cluster.runs[0], cluster.runs[-1]
    yield (
        f"{cluster.cluster}: {counted(len(cluster.runs), 'run')} from {first.started:%Y-%m-%d} to "
        f"{last.started:%Y-%m-%d}, the last {last.verdict}"
    )
    yield from _coverage(cluster, history)
    yield from (f"  {lemon(one)}" for one in cluster.lemons[:MOST_LINES])
    yield f"  {rates(cluster.rates)}"
    yield f"  {ledger(cluster.ledger)}"
    shown = [one for one in cluster.series if moves(one)]
    yield from (f"  {_series(one)}" for one in shown)
    if len(shown) < len(cluster.series):
        yield f"  {counted(len(cluster.series) - len(shown), 'metric')} had the same value in every run (--json)."
    yield from (f"  {change(one)}" for one in cluster.changes[-MOST_LINES:])


def _coverage(cluster: ClusterHistory, history: History) -> Iterator[str]:
    gaps = cluster.uncovered
    nodes = counted(len(cluster.coverage), "node")
    if not gaps:
        yield f"  Covered: all of {nodes} within {history.days:g} days, each with a partner where there is one."
        return
    yield f"  Not covered within {history.days:g} days: {len(gaps)} of {nodes}."
    yield from (f"    {one.node}: {gap(one)}" for one in gaps[:MOST_LINES])
    if len(gaps) > MOST_LINES:
        yield f"    and {len(gaps) - MOST_LINES} more"


def _series(one: Series) -> str:
    return f"{sparkline([point.value for point in one.points])}  {series_name(one)}: {moved(one)}"


def sparkline(values: Sequence[float]) -> str:
    """One bar a value, the last of many: from the least to the greatest, or all in the middle where they are alike.

    A range under 5 % of the greatest is drawn as 5 %: noise is no mountain.
    """
    shown = list(values[-MOST_BARS:])
    least, most = min(shown), max(shown)
    middle, span = (least + most) / 2, max(most - least, 0.05 * abs(most))
    if not span > 0:
        return _BARS[len(_BARS) // 2] * len(shown)
    return "".join(
        _BARS[min(len(_BARS) - 1, int(((value - middle) / span + 0.5) * len(_BARS)))] for value in shown
    )  # fmt: skip
