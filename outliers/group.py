"""A group of like subjects, and who in it is an outlier: by the smallest effect that matters and by robust sigmas.

Sigmas alone would flag a fifth of healthy trios, the effect alone whoever is noisy: both are asked for, and then a
retest. Fewer than three say nothing of each other.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]

FEWEST_PEERS = 3
MAD_TO_SIGMA = 1.4826  # of a normal distribution


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """`effect`: the smallest loss that matters, as a share of the median. `sigmas`: how many robust sigmas it must
    be."""

    effect: float = 0.05
    sigmas: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what cannot be a threshold."""
        if not (0 < self.effect < 1 and self.sigmas > 0):
            raise ValueError("effect is between 0 and 1, sigmas above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Like subjects' values of one thing: their median, a robust sigma (MAD x 1.4826), and the values that a quarter
    of them (at least one) reach downwards and upwards."""

    size: int
    median: float
    sigma: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether there are enough of them, around a median above 0, to tell an outlier at all."""
        return self.size >= FEWEST_PEERS and self.median > 0


def group_of(numbers: Iterable[float]) -> Group:
    """The robust centre and spread of a group; an empty one has size 0."""
    ordered = sorted(numbers)
    if not ordered:
        return Group(size=0, median=math.nan, sigma=math.nan, low=math.nan, high=math.nan)
    middle = statistics.median(ordered)
    spread = statistics.median([abs(number - middle) for number in ordered])
    quarter = max(1, len(ordered) // 4)
    return Group(
        size=len(ordered),
        median=middle,
        sigma=MAD_TO_SIGMA * spread,
        low=ordered[quarter - 1],
        high=ordered[-quarter],
    )


def worse_by(value: float, group: Group, better: Better) -> float:
    """How much worse than the group's median, in its unit; negative for what is better. What is neither better nor
    worse in any direction is never worse."""
    if better == "neither":
        return -math.inf
    return value - group.median if better == "lower" else group.median - value


def least_effect(group: Group, threshold: Threshold) -> float:
    """How much worse than the median a value must be to be an outlier, in the group's unit."""
    return max(threshold.effect * group.median, threshold.sigmas * group.sigma)


def is_outlier(value: float, group: Group, better: Better, threshold: Threshold) -> bool:
    """Whether a value is one among a group that can tell."""
    return group.tells and worse_by(value, group, better) >= least_effect(group, threshold)
