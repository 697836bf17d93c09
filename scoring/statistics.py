"""Failure statistics: exact Poisson bounds decide, a Gamma posterior only projects.

T node-days were observed with r failures; rates are per node-day. Bounds for a time-truncated observation: Garwood's
exact ones by the chi-squared distribution. The prior of the posterior has the weight of half a failure in 125
node-days (mean 4 per 1000 node-days), from the published rates of large clusters: Meta's RSC-1 6.5 and RSC-2 2.3,
Llama 3's 3.8, Imbue's 4.3, Lablup's 2.9 per 1000 node-days.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

PRIOR_FAILURES = 0.5
PRIOR_NODE_DAYS = 125.0
PRIOR_RATE = PRIOR_FAILURES / PRIOR_NODE_DAYS  # 0.004 a node-day
PLAUSIBLE_RATES = (0.002, 0.009)  # between which large clusters report theirs


class Bounds(NamedTuple):
    """A figure between a lower and an upper bound; the point may be None where there is none."""

    low: float
    point: float | None
    high: float


def upper_rate(failures: int, node_days: float, confidence: float = 0.95) -> float:
    """The rate that is exceeded with probability 1 - confidence at most: chi2(confidence; 2r+2) / 2T."""
    _check(failures, node_days, confidence)
    return _chi2_quantile(confidence, 2 * failures + 2) / (2 * node_days)


def lower_rate(failures: int, node_days: float, confidence: float = 0.95) -> float:
    """The rate that is undercut with probability 1 - confidence at most: chi2(1-confidence; 2r) / 2T, 0 for none."""
    _check(failures, node_days, confidence)
    return _chi2_quantile(1 - confidence, 2 * failures) / (2 * node_days) if failures else 0.0


def _chi2_quantile(probability: float, degrees: int) -> float:
    from scipy.special import chdtri  # scipy.stats takes a second to import, scipy.special a tenth

    return float(chdtri(degrees, 1 - probability))


def node_days_without_failure(rate: float, confidence: float = 0.95) -> float:
    """Node-days without a failure that show a rate of at most `rate`: -ln(1 - confidence) / rate."""
    if not rate > 0:
        raise ValueError("the rate to show is above 0")
    return -math.log(1 - confidence) / rate


def node_days_to_show(rate: float, failures: int, confidence: float = 0.95) -> float:
    """Node-days in which so many failures, and no more, show a rate of at most `rate`: chi2(confidence; 2r+2) / 2 rate.
    With none it is node_days_without_failure."""
    if not rate > 0:
        raise ValueError("the rate to show is above 0")
    return upper_rate(failures, 1.0, confidence) / rate


def chance_of_showing(rate: float, true_rate: float, node_days: float, confidence: float = 0.95) -> float:
    """The power: with what probability a cluster of `true_rate` shows at most `rate` in so many node-days. It does with
    as many failures as the upper bound allows."""
    from scipy.special import pdtr

    most = -1
    while upper_rate(most + 1, node_days, confidence) <= rate * (1 + 1e-9):
        most += 1
    return float(pdtr(most, true_rate * node_days)) if most >= 0 else 0.0


def chance_of_a_failure(rate: float, node_days: float) -> float:
    """The probability to see any failure in so many node-days."""
    return -math.expm1(-rate * node_days)


def projected_rate(failures: int, node_days: float, confidence: float = 0.95) -> Bounds:
    """Mean and central credible interval of the Gamma posterior: for projections only, never for a gate."""
    from scipy.special import gammaincinv

    _check(failures, node_days, confidence, least_days=0.0)
    shape, days = PRIOR_FAILURES + failures, PRIOR_NODE_DAYS + node_days
    tail = (1 - confidence) / 2
    low, high = (float(gammaincinv(shape, at)) / days for at in (tail, 1 - tail))
    return Bounds(low, shape / days, high)


def _check(failures: int, node_days: float, confidence: float, least_days: float | None = None) -> None:
    enough = node_days >= least_days if least_days is not None else node_days > 0
    if failures < 0 or not (enough and math.isfinite(node_days)) or not 0 < confidence < 1:
        raise ValueError("failures are at least 0, node-days above 0, and confidence is between 0 and 1")


def median_interval(numbers: Sequence[float], confidence: float = 0.95) -> Bounds:
    """The median and its distribution-free interval between two order statistics (binomial, exact).

    Under six numbers no such interval has the confidence asked: then it is from the least to the greatest.
    """
    from scipy.special import bdtr

    ordered = sorted(numbers)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    # The median lies outside ordered[cut] to ordered[-1 - cut] with probability 2 P(Binomial(n, 1/2) <= cut): take the
    # largest cut for which that is small enough. It is about n/2 - sqrt(n), so a walk from a little below is short.
    cut = max(0, count // 2 - 2 * math.isqrt(count))
    while cut + 1 < count / 2 and 2 * bdtr(cut + 1, count, 0.5) <= 1 - confidence:
        cut += 1
    return Bounds(ordered[cut], middle, ordered[count - 1 - cut])


# From an interquartile range to a normal distribution's sigma, and from that to a median's standard error.
_ERROR_OF_MEDIAN = 1.2533 / 1.349
TWO_SIDED = 1.96  # standard errors of a normal distribution within which 95 % lie


def error_of_median(noise: float, samples: int) -> float:
    """The standard error of a median as a share of it, from the interquartile range (as a share) of so many samples."""
    return _ERROR_OF_MEDIAN * noise / math.sqrt(max(1, samples))


def bootstrap_median(numbers: Sequence[float], seed: str, confidence: float = 0.95) -> Bounds:
    """The median with its bootstrap interval (percentiles of resampled medians)."""
    return _bootstrapped([numbers], seed, confidence)


def bootstrap_ratio(numbers: Sequence[float], others: Sequence[float], seed: str, confidence: float = 0.95) -> Bounds:
    """The ratio of two medians, each resampled on its own, with its bootstrap interval; the others' are above 0."""
    if not min(others) > 0:
        raise ValueError("a ratio is to numbers above 0")
    return _bootstrapped([numbers, others], seed, confidence)


_RESAMPLES = 2000


def _bootstrapped(groups: Sequence[Sequence[float]], seed: str, confidence: float) -> Bounds:
    """Percentiles of the first group's resampled medians over the second's. `seed` names what is resampled (the run and
    the metric), so that the same evidence gives the same interval."""
    import numpy as np

    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big"))
    medians, points = [], []
    for group in groups:
        values = np.asarray(group, dtype=float)
        medians.append(np.median(generator.choice(values, (_RESAMPLES, len(values))), axis=1))
        points.append(float(np.median(values)))
    ratios = medians[0] / medians[1] if len(groups) > 1 else medians[0]
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Bounds(float(low), points[0] / points[1] if len(groups) > 1 else points[0], float(high))
