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
_MEDIAN_ERROR = 1.16  # of the median of three normal values, over that of their mean
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

    `first` is its share in the tournament, None where it had no part in it; `first_error` that figure's standard error,
    as a share of it, by the iterations behind it; `own_error` that of `share`, likewise.
    """

    share: float
    values: int
    retests: int
    first: float | None
    first_error: float = 0.0
    own_error: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """All pairs' levels. `ceiling` is in the unit of the values, `alone` that of retests. `noise` is how far a value
    strays from the next of the same pair, as a share; `spread` is that or the scatter of good pairs, if larger.
    `freedom`: the degrees of freedom that the repeats behind the noise have; 0 without any."""

    of: Mapping[Pair, Level]
    ceiling: float
    alone: float
    noise: float
    spread: float
    freedom: int
    thresholds: Thresholds

    def error(self, pair: Pair) -> float:
        """The standard error of a pair's level, as a share of the ceiling: by what repeats of all pairs stray, or by
        its own iterations where they stray further, as on a path that loses packets."""
        level = self.of[pair]
        of_median = _MEDIAN_ERROR if level.values > 2 else 1.0
        return level.share * max(of_median * self.spread / math.sqrt(level.values), level.own_error)

    @property
    def wide(self) -> float:
        """How many standard errors a 95% interval reaches to either side: Student's t, for noise known from so few
        repeats (Cornish and Fisher's series, within 5% from two degrees of freedom on)."""
        z = 1.96
        if not self.freedom:
            return z
        return z + (z**3 + z) / (4 * self.freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * self.freedom**2)

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
    top = ceiling or ceiling_of(middles or retested, thresholds.effect)
    noise, freedom = _noise(together, alone)
    good = [one for pair in retested for one in alone[pair] if middles.get(pair, 0.0) >= (1 - thresholds.effect) * top]
    top_alone = ceiling or _ceiling_alone([one.value for one in good], top, noise)
    levels = {
        pair: _level(together.get(pair, []), alone.get(pair, []), top, top_alone)
        for pair in sorted(middles.keys() | retested.keys())
    }
    return Levels(
        of=levels,
        ceiling=top,
        alone=top_alone,
        noise=noise,
        spread=max(noise, _scatter(levels.values(), thresholds)),
        freedom=freedom,
        thresholds=thresholds,
    )


def ceiling_of(values: Mapping[Pair, float], effect: float) -> float:
    """The middle of the pairs near the top.

    It starts at the 0.9 quantile of the nodes' best pairs, so that one odd value among many sets no standard, and takes
    the median of the pairs that are not worse than that by the effect that matters. From there it walks down in smaller
    steps, to the median of the pairs not further than half that effect below the last: monotone, so it ends.
    """
    best: dict[str, float] = {}
    for pair, value in values.items():
        for node in pair:
            best[node] = max(value, best.get(node, 0.0))
    top = _middle_near(values, quantile(sorted(best.values()), 0.9), effect)
    while (below := _middle_near(values, top, effect / 2)) < top:
        top = below
    return top


def _middle_near(values: Mapping[Pair, float], top: float, window: float) -> float:
    return statistics.median(value for value in values.values() if value >= (1 - window) * top)


def _ceiling_alone(good: Sequence[float], together: float, noise: float) -> float:
    """What a good pair reaches alone: the same as together, unless its retests show another figure."""
    if not good:
        return together
    middle = statistics.median(good)
    error = 1.25 * noise * middle / math.sqrt(len(good))  # of a median of normal values
    return together if abs(middle - together) <= 2 * error else middle


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
    own = max((one.error for one in together), default=0.0)
    if not alone:
        assert first is not None
        return Level(share=first, values=len(together), retests=0, first=first, first_error=own, own_error=own)
    share = statistics.median(one.value for one in alone) / top_alone
    mean = math.hypot(*(one.error for one in alone)) / len(alone)
    return Level(share=share, values=len(alone), retests=len(alone), first=first, first_error=own, own_error=mean)


def _noise(together: _ByPair, alone: _ByPair) -> tuple[float, int]:
    """From repeats of a pair under the same conditions and from iterations, never from one pair to the next.

    A pair that strays four times as far as the middle of six or more comes and goes: that is its fault, not the noise
    of all.
    """
    repeated = [_stray(found) for found in (*together.values(), *alone.values()) if len(found) > 1]
    most = 4 * statistics.median(stray for stray, _ in repeated) if len(repeated) >= 6 else math.inf
    kept = [(stray**2 * freedom, freedom) for stray, freedom in repeated if stray <= most]
    total = sum(freedom for _, freedom in kept)
    pooled = math.sqrt(sum(square for square, _ in kept) / total) if kept else 0.0
    errors = [one.error for found in (*together.values(), *alone.values()) for one in found]
    return max(pooled, statistics.median(errors), LEAST_NOISE), total


def _stray(found: list[Observation]) -> tuple[float, int]:
    """The standard deviation of a pair's values as a share of their mean, with its degrees of freedom."""
    values = [one.value for one in found]
    return statistics.stdev(values) / statistics.fmean(values), len(values) - 1


def _scatter(levels: Iterable[Level], thresholds: Thresholds) -> float:
    """A robust sigma of good pairs seen once. Ten at least: of fewer it is itself too noisy."""
    good = [level.share for level in levels if level.values == 1 and level.share >= 1 - thresholds.effect]
    if len(good) < 10:
        return 0.0
    middle = statistics.median(good)
    return MAD_TO_SIGMA * statistics.median(abs(share - middle) for share in good)
