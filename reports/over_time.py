"""The history of a folder of runs in a terminal: coverage, machines that keep failing, metrics over weeks."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from ..scoring.history import ClusterHistory, History, Lemon, Series
from ..scoring.words import counted, figure, params_in_words, percent, several, three_digits
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
    yield from (f"  {_lemon(lemon)}" for lemon in cluster.lemons[:MOST_LINES])
    yield f"  {_rates(cluster)}"
    yield f"  {_ledger(cluster)}"
    moved = [series for series in cluster.series if len({point.value for point in series.points}) > 1]
    yield from (f"  {_series(series)}" for series in moved)
    if len(moved) < len(cluster.series):
        yield f"  {counted(len(cluster.series) - len(moved), 'metric')} had the same value in every run (--json)."


def _coverage(cluster: ClusterHistory, history: History) -> Iterator[str]:
    gaps = cluster.uncovered
    nodes = counted(len(cluster.coverage), "node")
    if not gaps:
        yield f"  Covered: all of {nodes} within {history.days:g} days, each with a partner where there is one."
        return
    yield f"  Not covered within {history.days:g} days: {len(gaps)} of {nodes}."
    for gap in gaps[:MOST_LINES]:
        if "measured" in gap.missing:
            yield f"    {gap.node}: " + (f"last measured {gap.measured:%Y-%m-%d}" if gap.measured else "never measured")
        else:
            when = f"last with a partner {gap.with_partner:%Y-%m-%d}" if gap.with_partner else "never with a partner"
            yield f"    {gap.node}: {when}"
    if len(gaps) > MOST_LINES:
        yield f"    and {len(gaps) - MOST_LINES} more"


def _lemon(lemon: Lemon) -> str:
    who = lemon.here or lemon.names[-1]
    was = [name for name in lemon.names if name != who]
    told = f"Keeps failing: {who}" if len(lemon.failed_in) > 1 else f"Is back after it failed: {who}"
    told += f" (was {', '.join(was)})" if was else ""
    told += f", in {len(lemon.failed_in)} of {counted(lemon.seen_in, 'run')}: {several(lemon.checks, 4)}"
    told += "; it came back" if lemon.back and len(lemon.failed_in) > 1 else ""
    return told + ("" if lemon.here else "; it is gone now")


def _rates(cluster: ClusterHistory) -> str:
    rates = cluster.rates
    if rates.high is None or rates.low is None:
        return "Failures: no node-days were observed."
    seen = f"Failures: {rates.failures} in {three_digits(rates.node_days)} node-days of all runs"
    if rates.failures:
        return (
            f"{seen}, between {three_digits(rates.low)} and {three_digits(rates.high)} a node-day (each bound at 95 %)."
        )
    return f"{seen}, at most {three_digits(rates.high)} a node-day (95 %)."


def _ledger(cluster: ClusterHistory) -> str:
    ledger = cluster.ledger
    told = f"Node-hours since {ledger.since:%Y-%m-%d}: {ledger.paid:,.0f} paid"
    if ledger.paid > 0:
        told += (
            f", {percent(ledger.delivered / ledger.paid)} delivered, {percent(ledger.healthy / ledger.paid)} healthy"
        )
    if ledger.usd is not None and ledger.usd_unhealthy is not None:
        told += f"; {ledger.usd:,.0f} USD, {ledger.usd_unhealthy:,.0f} of them for nodes that were not"
    return told + "."


def _series(series: Series) -> str:
    values = [point.value for point in series.points]
    params = params_in_words(series.params)
    name = f"{series.metric}{f' ({params})' if params else ''}"
    change = f"{values[-1] / values[0] - 1:+.1%}" if values[0] else "from 0"
    return (
        f"{sparkline(values)}  {name}: {figure(values[0], series.unit)} → {figure(values[-1], series.unit)}, {change}"
    )


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
