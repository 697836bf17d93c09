"""What a node can do at its best, from its pairs with partners that do not hide it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .levels import Levels, Pair, quantile

CAPABILITY_QUANTILE = 0.75
# Of a normal distribution: where that quantile lies, and the standard error of a sample's, as multiples of sigma and
# of sigma over the root of the number.
_QUANTILE_AT, _QUANTILE_ERROR = 0.6745, 1.363


@dataclass(frozen=True, kw_only=True, slots=True)
class Capability:
    """What a node can do at its best, as a share of the ceiling, with its 95% interval, from so many partners."""

    share: float
    low: float
    high: float
    partners: int


def upper_share(levels: Levels, pairs: Sequence[Pair]) -> float:
    """A high quantile of the pairs' shares, less what noise alone lifts it by.

    The best pair would be flattered by noise the more, the more pairs there are; a median would fall with partners
    that are themselves a little slow.
    """
    shares = sorted(levels.of[pair].share for pair in pairs)
    count = len(shares)
    lifted = _QUANTILE_AT * (count - 1) / (count + 0.3)  # exact for 1, near for 2 and more
    error = statistics.fmean(levels.noise / math.sqrt(levels.of[pair].values) for pair in pairs)
    return quantile(shares, CAPABILITY_QUANTILE) * (1 - lifted * error)


def capability(levels: Levels, pairs: Sequence[Pair]) -> Capability:
    """The capability that these pairs of a node show."""
    share = upper_share(levels, pairs)
    each = math.sqrt(statistics.fmean(levels.noise**2 / levels.of[pair].values for pair in pairs))
    error = share * each * (_QUANTILE_ERROR if len(pairs) > 1 else 1.0) / math.sqrt(len(pairs))
    margin = levels.wide * error
    return Capability(share=share, low=share - margin, high=share + margin, partners=len(pairs))
