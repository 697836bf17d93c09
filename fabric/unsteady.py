"""Pairs that are slow beside others and well alone, more than other pairs are: such a path comes and goes."""

import math
import statistics
from collections.abc import Iterator

from .levels import Level, Levels, Pair

_NORMAL_MAD = 1.4826  # of a standard deviation over the median absolute deviation of normal values
_FEWEST_FOR_A_MIDDLE = 3
_FEW = 16  # others: their middle says nothing yet of how far one in twenty strays
_TIMES = 3  # what the worst of a few others loses


def unsteady_pairs(levels: Levels, least: float) -> Iterator[Pair]:
    """Pairs of a good level whose tournament figure lies clearly below it, and further than those of others do.

    What all pairs lose together is the price of running at once, and says nothing of one of them. How a figure beside
    others strays is told by its own iterations and by the other pairs', never by repeats alone.
    """
    kept = {pair: kept for pair, level in levels.of.items() if (kept := _kept(level, least)) is not None}
    for pair, share in kept.items():
        others = [other for one, other in kept.items() if one != pair]
        usual, stray = _of_others(others)
        level = levels.of[pair]
        own = (levels.spread * math.sqrt(1 + 1 / level.retests), (level.first or 0.0) * level.first_error)
        loss = usual - share
        worst = max((usual - other for other in others), default=0.0) if len(others) < _FEW else 0.0
        enough = loss >= max(usual * levels.thresholds.effect, _TIMES * worst)
        if enough and loss >= levels.thresholds.sigmas * math.hypot(*own, stray):
            yield pair


def _kept(level: Level, least: float) -> float | None:
    """What a pair keeps of its speed beside others; None where it has no figure both ways, or is slow alone."""
    if not level.retests or level.first is None or level.share < least:
        return None
    return level.first / level.share


def _of_others(kept: list[float]) -> tuple[float, float]:
    """What other pairs keep, at most all, and how far one of them strays from that: 1 and 0 where there are none."""
    if not kept:
        return 1.0, 0.0
    usual = min(1.0, statistics.median(kept))
    strays = [abs(one - usual) for one in kept]
    few = len(kept) < _FEWEST_FOR_A_MIDDLE
    return usual, max(strays) if few else _NORMAL_MAD * statistics.median(strays)
