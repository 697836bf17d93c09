"""What a history says, in words: for the terminal, the page, and what other programs read."""

from collections.abc import Iterator

from ..scoring.history import ClusterHistory, Covered, History, Rates, Series
from ..scoring.history_changes import Change
from ..scoring.ledger import Ledger
from ..scoring.lemons import Lemon
from ..scoring.words import counted, figure, params_in_words, percent, several, three_digits


def answer(history: History) -> str:
    """All of it in a sentence or two."""
    if not history.clusters:
        return "No run was read: nothing is covered."
    named = len(history.clusters) > 1
    return " ".join(f"{one.cluster}: {_of(one, history)}" if named else _of(one, history) for one in history.clusters)


def _of(cluster: ClusterHistory, history: History) -> str:
    nodes, gaps = len(cluster.coverage), len(cluster.uncovered)
    here = [lemon.here for lemon in cluster.lemons if lemon.here is not None]
    gap = "is" if gaps == 1 else "are"
    told = f"{gaps} of {counted(nodes, 'node')} {gap} not covered within {history.days:g} days."
    covered = told if gaps else f"{'Every node' if nodes > 1 else 'The node'} is covered within {history.days:g} days."
    if not here:
        return f"{covered} No machine that keeps failing is here."
    many = "machines that fail again and again are" if len(here) > 1 else "machine that fails again and again is"
    return f"{covered} {len(here)} {many} still here: {several(here)}."


def gap(one: Covered) -> str:
    """What a node's coverage lacks; nothing where it is covered."""
    if "measured" in one.missing:
        return f"last measured {one.measured:%Y-%m-%d}" if one.measured else "never measured"
    if "partner" in one.missing:
        return f"last with a partner {one.with_partner:%Y-%m-%d}" if one.with_partner else "never with a partner"
    return ""


def lemon(one: Lemon) -> str:
    """A machine that keeps failing, under which names, and in which checks."""
    who = one.here or one.names[-1]
    was = [name for name in one.names if name != who]
    told = f"Keeps failing: {who}" if len(one.failed_in) > 1 else f"Is back after it failed: {who}"
    told += f" (was {', '.join(was)})" if was else ""
    told += f", in {len(one.failed_in)} of {counted(one.seen_in, 'run')}: {several(one.checks, 4)}"
    told += "; it came back" if one.back and len(one.failed_in) > 1 else ""
    return told + ("" if one.here else "; it is gone now")


def rates(found: Rates) -> str:
    """Failures with their bounds."""
    if found.high is None or found.low is None:
        return "Failures: no node-days were observed."
    seen = f"Failures: {found.failures} in {three_digits(found.node_days)} node-days of all runs"
    if found.failures:
        low, high = three_digits(found.low), three_digits(found.high)
        return f"{seen}, between {low} and {high} a node-day (each bound at 95 %)."
    return f"{seen}, at most {three_digits(found.high)} a node-day (95 %)."


def ledger(found: Ledger) -> str:
    """What was paid for, and what came of it."""
    return f"Node-hours since {found.since:%Y-%m-%d}: {'; '.join(_ledger(found))}."


def _ledger(found: Ledger) -> Iterator[str]:
    told = f"{found.paid:,.0f} paid"
    if found.paid > 0:
        told += f", {percent(found.delivered / found.paid)} delivered, {percent(found.healthy / found.paid)} healthy"
    yield told
    if found.usd is not None and found.usd_unhealthy is not None:
        yield f"{found.usd:,.0f} USD, {found.usd_unhealthy:,.0f} of them for nodes that were not"


def series_name(one: Series) -> str:
    """A metric with its params."""
    params = params_in_words(one.params)
    return f"{one.metric} ({params})" if params else one.metric


def moved(one: Series) -> str:
    """From the first run's value to the last one's."""
    first, last = one.points[0].value, one.points[-1].value
    change = signed(last / first - 1) if first else "from 0"
    return f"{figure(first, one.unit)} → {figure(last, one.unit)}, {change}"


def signed(share: float) -> str:
    """A change as a percentage with its sign; one that rounds to nothing has none."""
    shown = f"{share * 100:+.1f}"
    return "unchanged" if shown in ("+0.0", "-0.0") else f"{shown} %"


def moves(one: Series) -> bool:
    """Whether a metric ever had another value."""
    return len({point.value for point in one.points}) > 1


def change(one: Change) -> str:
    """What a run found otherwise, and on which nodes."""
    return f"Changed by {one.time:%Y-%m-%d}: {one.what} ({several(one.nodes, 4)})"
