"""Failure statistics: exact Poisson bounds decide, a Gamma posterior only projects.

T node-days were observed with r failures; rates are per node-day. Bounds for a time-truncated observation: Garwood's
exact ones by the chi-squared distribution. The prior of the posterior has the weight of half a failure in 125
node-days (mean 4 per 1000 node-days), from the published rates of large clusters: Meta's RSC-1 6.5 and RSC-2 2.3,
Llama 3's 3.8, Imbue's 4.3, Lablup's 2.9 per 1000 node-days.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

PRIOR_FAILURES = 0.5
PRIOR_NODE_DAYS = 125.0
PRIOR_RATE = PRIOR_FAILURES / PRIOR_NODE_DAYS  # 0.004 a node-day


class Bounds(NamedTuple):
    """A figure between a lower and an upper bound; the point may be None where there is none."""

    low: float
    point: float | None
    high: float


def upper_rate(failures: int, node_days: float, confidence: float = 0.95) -> float:
    """The rate that is exceeded with probability 1 - confidence at most: chi2(confidence; 2r+2) / 2T."""
    from scipy.stats import chi2

    _check(failures, node_days, confidence)
    return float(chi2.ppf(confidence, 2 * failures + 2)) / (2 * node_days)


def lower_rate(failures: int, node_days: float, confidence: float = 0.95) -> float:
    """The rate that is undercut with probability 1 - confidence at most: chi2(1-confidence; 2r) / 2T, 0 for none."""
    from scipy.stats import chi2

    _check(failures, node_days, confidence)
    return float(chi2.ppf(1 - confidence, 2 * failures)) / (2 * node_days) if failures else 0.0


def node_days_without_failure(rate: float, confidence: float = 0.95) -> float:
    """Node-days without a failure that show a rate of at most `rate`: -ln(1 - confidence) / rate."""
    if not rate > 0:
        raise ValueError("the rate to show is above 0")
    return -math.log(1 - confidence) / rate


def chance_of_a_failure(rate: float, node_days: float) -> float:
    """The probability to see any failure in so many node-days."""
    return -math.expm1(-rate * node_days)


def projected_rate(failures: int, node_days: float, confidence: float = 0.95) -> Bounds:
    """Mean and central credible interval of the Gamma posterior: for projections only, never for a gate."""
    from scipy.stats import gamma

    _check(failures, node_days, confidence, least_days=0.0)
    shape, days = PRIOR_FAILURES + failures, PRIOR_NODE_DAYS + node_days
    tail = (1 - confidence) / 2
    low, high = (float(gamma.ppf(at, shape, scale=1 / days)) for at in (tail, 1 - tail))
    return Bounds(low, shape / days, high)


def _check(failures: int, node_days: float, confidence: float, least_days: float | None = None) -> None:
    enough = node_days >= least_days if least_days is not None else node_days > 0
    if failures < 0 or not (enough and math.isfinite(node_days)) or not 0 < confidence < 1:
        raise ValueError("failures are at least 0, node-days above 0, and confidence is between 0 and 1")


def median_interval(numbers: Sequence[float], confidence: float = 0.95) -> Bounds:
    """The median and its distribution-free interval between two order statistics (binomial, exact).

    Under six numbers no such interval has the confidence asked: then it is from the least to the greatest.
    """
    from scipy.stats import binom

    ordered = sorted(numbers)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    # P(between the k-th least and the k-th greatest) = 1 - 2 P(Binomial(n, 1/2) < k); the largest such k.
    below = int(binom.ppf((1 - confidence) / 2, count, 0.5))
    cut = below - 1 if below > 0 and 1 - 2 * binom.cdf(below - 1, count, 0.5) >= confidence else 0
    cut = max(cut, 0)
    return Bounds(ordered[cut], middle, ordered[count - 1 - cut])
