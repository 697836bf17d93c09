"""From measured values of pairs to levels: each pair's share of what a pair can do here, and how sure that is.

The ceiling is what a pair of two good nodes over a good link reaches. It is sought from the top, for any number of bad
nodes pulls a median down (two of four nodes spoil five of six pairs), and as the middle of the pairs near the top
rather than as the best one, which noise flatters more the more pairs there are.

Pairs of the tournament ran beside others, retests alone: each kind has its own ceiling, so that a fabric which slows
when all talk at once does not make every retest look good.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Pair = tuple[str, str]  # two node names in alphabetical order

MAD_TO_SIGMA = 1.4826  # of a normal distribution
LEAST_NOISE = 0.002  # no network repeats itself better; keeps two equal values from passing for certainty


def pair_of(one: str, other: str) -> Pair:
    """The pair of two nodes, however they are named first. Raises ValueError for a node with itself."""
    if one == other:
        raise ValueError(f"{one} is no pair with itself")
    return (one, other) if one < other else (other, one)


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """`effect`: the smallest loss that matters, as a share. `sigmas`: how many times its uncertainty it must be."""

    effect: float = 0.10
    sigmas: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what cannot be a threshold."""
        if not (0 < self.effect < 0.5 and self.sigmas > 0):
            raise ValueError("effect is between 0 and 0.5, sigmas above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One measured value of a pair (GB/s, more is better). `alone`: no other pair ran meanwhile. `error`: the value's
    relative standard error by its own iterations, 0 where there were none."""

    pair: Pair
    value: float
    alone: bool = False
    error: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no bandwidth: a caller leaves out what was not measured."""
        if not (math.isfinite(self.value) and self.value > 0 and self.error >= 0):
            raise ValueError(f"{self.pair}: {self.value} is no bandwidth")


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """A pair's share of the ceiling, from `values` values: those of its retests where there are any.

    `first` is its share in the tournament, None where it had no part in it.
    """

    share: float
    values: int
    retests: int
    first: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """All pairs' levels. `ceiling` is in the unit of the values, `alone` that of retests. `noise` is how far a value
    strays from the next of the same pair, as a share; `spread` is that or the scatter of good pairs, if larger."""

    of: Mapping[Pair, Level]
    ceiling: float
    alone: float
    noise: float
    spread: float
    thresholds: Thresholds

    def error(self, pair: Pair) -> float:
        """The standard error of a pair's level, as a share."""
        return self.spread / math.sqrt(self.of[pair].values)

    @property
    def nodes(self) -> list[str]:
        """Each node of any measured pair."""
        return sorted({node for pair in self.of for node in pair})


def levels_of(
    observations: Iterable[Observation], thresholds: Thresholds, *, ceiling: float | None = None
) -> Levels | None:
    """Levels of all pairs that have a value; None where there is none.

    `ceiling` is what a pair should reach, in the unit of the values, where that is known from elsewhere: without it
    pairs are compared with each other alone, and one pair has nothing to be compared with.
    """
    together, alone = _by_pair(observations)
    middles = {pair: statistics.median(one.value for one in found) for pair, found in together.items()}
    retested = {pair: statistics.median(one.value for one in found) for pair, found in alone.items()}
    if not middles and not retested:
        return None
    window = thresholds.effect / 2
    top = ceiling or ceiling_of(middles or retested, window)
    good = {pair: value for pair, value in retested.items() if middles.get(pair, 0.0) >= (1 - thresholds.effect) * top}
    top_alone = ceiling or (ceiling_of(good, window) if good else top)
    levels = {
        pair: _level(together.get(pair, []), alone.get(pair, []), top, top_alone)
        for pair in sorted(middles.keys() | retested.keys())
    }
    noise = _noise(together, alone)
    return Levels(
        of=levels,
        ceiling=top,
        alone=top_alone,
        noise=noise,
        spread=max(noise, _scatter(levels.values(), thresholds)),
        thresholds=thresholds,
    )


def ceiling_of(values: Mapping[Pair, float], window: float) -> float:
    """The middle of the pairs within `window` of it, sought from the top of the nodes' best pairs.

    It starts at the 0.9 quantile, not at the maximum, so that one odd value among many sets no standard. Each step is
    the median of the pairs not further than `window` below the last: a monotone walk, so it ends.
    """
    best: dict[str, float] = {}
    for pair, value in values.items():
        for node in pair:
            best[node] = max(value, best.get(node, 0.0))
    top = quantile(sorted(best.values()), 0.9)
    while True:
        middle = statistics.median(value for value in values.values() if value >= (1 - window) * top)
        if math.isclose(middle, top, rel_tol=1e-12):
            return middle
        top = middle


def quantile(ordered: Sequence[float], at: float) -> float:
    """Linear interpolation between order statistics (Hyndman and Fan's type 7)."""
    place = at * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


_ByPair = dict[Pair, list[Observation]]


def _by_pair(observations: Iterable[Observation]) -> tuple[_ByPair, _ByPair]:
    together: _ByPair = {}
    alone: _ByPair = {}
    for one in observations:
        (alone if one.alone else together).setdefault(one.pair, []).append(one)
    return together, alone


def _level(together: list[Observation], alone: list[Observation], top: float, top_alone: float) -> Level:
    """Retests speak where there are any: the tournament's value is what made the pair a suspect."""
    first = statistics.median(one.value for one in together) / top if together else None
    if not alone:
        assert first is not None
        return Level(share=first, values=len(together), retests=0, first=first)
    share = statistics.median(one.value for one in alone) / top_alone
    return Level(share=share, values=len(alone), retests=len(alone), first=first)


def _noise(together: _ByPair, alone: _ByPair) -> float:
    """From repeats of a pair under the same conditions and from iterations, never from one pair to the next."""
    strays = [stray for found in (*together.values(), *alone.values()) for stray in _strays(found)]
    repeated = MAD_TO_SIGMA * statistics.median(strays) if strays else 0.0
    errors = [one.error for found in (*together.values(), *alone.values()) for one in found]
    return max(repeated, statistics.median(errors), LEAST_NOISE)


def _strays(found: list[Observation]) -> list[float]:
    """How far each of several values of a pair lies from their mean, as a share, for their number corrected."""
    if len(found) < 2:
        return []
    mean = statistics.fmean(one.value for one in found)
    correction = math.sqrt(len(found) / (len(found) - 1))
    return [abs(one.value / mean - 1) * correction for one in found]


def _scatter(levels: Iterable[Level], thresholds: Thresholds) -> float:
    """A robust sigma of good pairs seen once. Five at least, for of fewer it means nothing."""
    good = [level.share for level in levels if level.values == 1 and level.share >= 1 - thresholds.effect]
    if len(good) < 5:
        return 0.0
    middle = statistics.median(good)
    return MAD_TO_SIGMA * statistics.median(abs(share - middle) for share in good)
