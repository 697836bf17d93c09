"""Failures seen, and what they allow to say of the rate: bounds by exact Poisson, projections apart."""

from datetime import datetime
from itertools import pairwise

from ..evidence import Run
from .goodput import SECONDS_A_DAY
from .scope import nodes_of
from .statistics import PRIOR_RATE, lower_rate, node_days_without_failure, projected_rate, upper_rate
from .verdict import Reliability
from .words import counted, three_digits

_FAILURES = ("node_lost", "worker_lost", "hang", "stuck_in_kernel", "xid", "ecc")
_GRAVE = ("error", "fatal")


def reliability(run: Run) -> Reliability:
    """The failure rate of this run's nodes. With no failure it is a bound, never an infinite time between failures."""
    days = node_days(run)
    failures = failures_seen(run)
    if days <= 0:
        return Reliability(
            node_days=0.0,
            failures=failures,
            rate_low=None,
            rate_high=None,
            projected_rate=None,
            node_days_to_settle=None,
            sentence="No node-days were observed: nothing can be said of failures.",
        )
    low, high = lower_rate(failures, days), upper_rate(failures, days)
    return Reliability(
        node_days=round(days, 6),
        failures=failures,
        rate_low=low,
        rate_high=high,
        projected_rate=projected_rate(failures, days).point,
        node_days_to_settle=None if failures else node_days_without_failure(PRIOR_RATE),
        sentence=_sentence(failures, days, low, high),
    )


def node_days(run: Run) -> float:
    """Node-days observed: the length of each start of the run times the nodes that had joined in it."""
    known = {node.node for node in run.header.known}
    return sum(seconds * len(joined & known) for seconds, joined in _looks(run)) / SECONDS_A_DAY


def observed_seconds(run: Run) -> float:
    """How long the run looked, over all its starts."""
    return sum(seconds for seconds, _ in _looks(run))


def shortest_look(run: Run) -> float:
    """How long the run looked; where nodes joined an accepted run, the shorter of the times before and since."""
    bounds = [0, *(join.starts for join in run.header.joins), len(run.header.segments)]
    seconds = [seconds for seconds, _ in _looks(run)]
    return min(sum(seconds[one:other]) for one, other in pairwise(bounds))


def _looks(run: Run) -> list[tuple[float, set[str]]]:
    """Of each start of the run, how long it looked (from its first event until the last trial that ended before the
    next start) and who had joined in it."""
    starts = sorted(segment.start for segment in run.header.segments)
    times = sorted(event.time for event in run.events)
    ends = sorted(event.time for event in run.events if event.kind == "trial_ended")
    looks = []
    for place, start in enumerate(starts):
        until = starts[place + 1] if place + 1 < len(starts) else None
        inside = [time for time in ends if time >= start and (until is None or time < until)]
        first = next((time for time in times if time >= start), start)
        seconds = (inside[-1] - first).total_seconds() if inside else 0.0
        looks.append((seconds, _joined(run, start if place else None, until)))
    return looks


def failures_seen(run: Run) -> int:
    """Failures of nodes that had joined; what one trial shows on one node counts once."""
    joined = _joined(run)
    seen = {
        (node, event.trial or event.number)
        for event in run.events
        if event.kind in _FAILURES and event.severity in _GRAVE
        for node in nodes_of(event.subject)
        if node in joined
    }
    return len(seen)


def _joined(run: Run, since: datetime | None = None, until: datetime | None = None) -> set[str]:
    """Who joined, in all of the run or between two of its starts."""
    joined = (event for event in run.events if event.kind == "node_joined")
    inside = (e for e in joined if (since is None or e.time >= since) and (until is None or e.time < until))
    return {node for event in inside for node in nodes_of(event.subject)}


def _sentence(failures: int, days: float, low: float, high: float) -> str:
    observed = f"in {three_digits(days)} node-days"
    if failures:
        return (
            f"{counted(failures, 'failure')} {observed}: between {three_digits(low)} and {three_digits(high)} "
            "a node-day (each bound at 95 %)."
        )
    if high > 1:
        return f"No failure {observed}: too short a time to say anything of failures."
    needed = three_digits(round(node_days_without_failure(PRIOR_RATE)))
    return (
        f"No failure {observed}: at most {three_digits(high)} a node-day (95 %). {needed} node-days "
        f"without one would show at most {PRIOR_RATE * 1000:.0f} per 1000 node-days, what large clusters report."
    )
