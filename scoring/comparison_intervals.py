"""Whether two figures can be told apart: the unit of replication is the run.

The difference of the logarithms of two figures has the variance 2 tau^2 + e1^2 + e2^2. tau, from run to run, is a
stated default moderated by repeated runs of the same cluster (Smyth 2004): tau^2 = (w tau0^2 + d s^2) / (w + d), with
w + d degrees of freedom, where d are those of history; or s^2 itself where that is larger and d is 2 or more. e are the
errors within the runs. Degrees of freedom of the sum by Welch and Satterthwaite.

A comparison as a whole makes a wrong claim in at most 2 % of cases: of m intervals each has the confidence 1 - 0.02 / m
(Bonferroni), so that all of them hold together, over all figures and all pairs of runs.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations

from msgspec import Struct

from .comparison_figures import Figure

ALPHA = 0.02  # of wrong claims in one whole comparison
_ENOUGH = 2  # degrees of freedom from which history that is wilder than the default stands by itself


class Between(Struct, frozen=True, kw_only=True):
    """Variance from run to run: one standard deviation on the log scale, its degrees of freedom, and how many of those
    came from repeated runs."""

    spread: float
    degrees: float
    repeats: int


class Apart(Struct, frozen=True, kw_only=True):
    """A difference of two figures as a ratio of the first to the second, with its interval at the joint confidence."""

    ratio: float
    low: float
    high: float

    @property
    def told_apart(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low > 1 or self.high < 1


def between_runs(default: float, weight: float, repeated: Iterable[Sequence[float]]) -> Between:
    """The variance from run to run. `repeated` are logarithms of a figure, a list a cluster that was run again."""
    squares, degrees = 0.0, 0
    for logs in repeated:
        if len(logs) > 1:
            squares += statistics.variance(logs) * (len(logs) - 1)
            degrees += len(logs) - 1
    moderated = (weight * default**2 + squares) / (weight + degrees)
    seen = squares / degrees if degrees >= _ENOUGH else 0.0
    return Between(spread=math.sqrt(max(moderated, seen)), degrees=weight + degrees, repeats=degrees)


def apart(one: Figure, other: Figure, between: Between, comparisons: float) -> Apart:
    """The ratio of two figures with the interval that holds together with `comparisons` - 1 others."""
    parts = ((2 * between.spread**2, between.degrees), (one.error**2, one.degrees), (other.error**2, other.degrees))
    reach = _reach(parts, ALPHA / comparisons)
    middle = math.log(one.value / other.value)
    return Apart(ratio=math.exp(middle), low=math.exp(middle - reach), high=math.exp(middle + reach))


def interval(one: Figure, between: Between) -> tuple[float, float]:
    """The 95 % interval of one figure, with the variance from run to run."""
    reach = _reach(((between.spread**2, between.degrees), (one.error**2, one.degrees)), 0.05)
    return one.value * math.exp(-reach), one.value * math.exp(reach)


def _reach(parts: Iterable[tuple[float, float]], alpha: float) -> float:
    """Half the width of an interval: the quantile of Student's t times the root of the summed variances."""
    from scipy.special import stdtrit

    kept = [(variance, degrees) for variance, degrees in parts if variance > 0]
    total = sum(variance for variance, _ in kept)
    if total <= 0:
        return 0.0
    degrees = total**2 / max(sum(variance**2 / degrees for variance, degrees in kept), 1e-300)
    return float(stdtrit(min(degrees, 1e6), 1 - alpha / 2)) * math.sqrt(total)


def not_told_apart(order: Sequence[int], told_apart: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Runs, in the order of their figures, that cannot be told apart from each other: the longest stretches of two or
    more. A run may stand in two of them: that A cannot be told from B nor B from C does not make A like C."""
    different = {frozenset(pair) for pair in told_apart}
    stretches: list[tuple[int, ...]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(
            frozenset(pair) in different for pair in combinations(order[start : end + 1], 2)
        ):
            end += 1
        stretch = tuple(order[start:end])
        if len(stretch) > 1 and not any(set(stretch) <= set(earlier) for earlier in stretches):
            stretches.append(stretch)
    return stretches
