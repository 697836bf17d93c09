"""Which nodes to measure next: those whose coverage has run out, the longest ago first."""

from collections.abc import Iterable
from datetime import UTC, datetime

from .history import ClusterHistory, Covered

_NEVER = datetime.min.replace(tzinfo=UTC)


def due_first(cluster: ClusterHistory, idle: Iterable[str], most: int | None = None) -> tuple[str, ...]:
    """The idle nodes that are due, at most so many. One alone gets another idle node beside it: without a partner half
    of it could not be measured; where there is none, and a partner is all that it lacks, it waits."""
    here = frozenset(idle)
    rows = sorted((one for one in cluster.coverage if one.node in here), key=_longest_ago)
    due = [one for one in rows if one.missing][:most]
    if len(due) == 1 and len(cluster.coverage) > 1 and most != 1:
        due += [one for one in rows if one is not due[0]][:1]
    lonely = len(due) == 1 and len(cluster.coverage) > 1
    return () if lonely and "measured" not in due[0].missing else tuple(one.node for one in due)


def _longest_ago(one: Covered) -> tuple[datetime, datetime, str]:
    return one.measured or _NEVER, one.with_partner or _NEVER, one.node
