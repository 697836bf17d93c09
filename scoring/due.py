"""Which nodes to measure next: those whose coverage has run out, the longest ago first."""

from collections.abc import Collection
from datetime import UTC, datetime

from .history import ClusterHistory, Covered

_NEVER = datetime.min.replace(tzinfo=UTC)


def due(cluster: ClusterHistory, *, pairs: bool = True) -> list[Covered]:
    """Whose coverage has run out, the longest ago first. Without `pairs`, where none will be measured, a partner is not
    asked for: whoever lacks one would be due for ever."""
    rows = [one for one in cluster.coverage if "measured" in one.missing or (pairs and one.missing)]
    return sorted(rows, key=_longest_ago)


def due_first(
    cluster: ClusterHistory, idle: Collection[str], most: int | None = None, *, pairs: bool = True
) -> tuple[str, ...]:
    """The idle nodes that are due, at most so many. One alone gets another idle node beside it: without a partner half
    of it could not be measured; where there is none, and a partner is all that it lacks, it waits."""
    chosen = [one for one in due(cluster, pairs=pairs) if one.node in idle][:most]
    if len(chosen) != 1 or len(cluster.coverage) == 1 or not pairs:
        return tuple(one.node for one in chosen)
    others = sorted((one for one in cluster.coverage if one.node in idle and one is not chosen[0]), key=_longest_ago)
    if most != 1:
        chosen += others[:1]
    return () if len(chosen) == 1 and "measured" not in chosen[0].missing else tuple(one.node for one in chosen)


def _longest_ago(one: Covered) -> tuple[datetime, datetime, str]:
    return one.measured or _NEVER, one.with_partner or _NEVER, one.node
