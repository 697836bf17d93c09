"""The index: one number from 0 to 100 to compare clusters by. It never decides the verdict."""

import math
import statistics
from collections.abc import Collection, Sequence

from .policy_model import Check
from .scope import nodes_of

# By check: each subject with its share of the reference, None where it was not measured.
Shares = dict[str, list[tuple[str, float | None]]]


def index(checks: Sequence[Check], shares: Shares, out: Collection[str]) -> float | None:
    """Weighted geometric mean of the shares of the reference, each capped at 1, times 100.

    A check's share is the median over all its subjects, also of nodes that would be taken out: else a value could be
    made worse until its node is, and the index rise. None unless every weighted check was measured on every subject
    that remains: a cluster that hides a figure must not look better than one that shows it.
    """
    logs: list[tuple[float, float]] = []
    for check in checks:
        if check.weight > 0:
            kept = shares.get(check.check, [])
            found = [share for subject, share in kept if share is not None or not _among(subject, out)]
            numbers = [share for share in found if share is not None]
            if not numbers or len(numbers) < len(found):
                return None
            logs.append((check.weight, math.log(max(min(1.0, statistics.median(numbers)), 1e-9))))
    if not logs:
        return None
    mean = sum(weight * log for weight, log in logs) / sum(weight for weight, _ in logs)
    return round(100 * math.exp(mean), 2)


def _among(subject: str, out: Collection[str]) -> bool:
    return any(node in out for node in nodes_of(subject))
