"""The layer of peers: an outlier among like subjects, and what such a group cannot tell."""

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

from ..evidence import Metric
from .layers import Judged
from .policy_layers import Peers
from .words import counted, figure, percent

FEWEST_PEERS = 3
MAD_TO_SIGMA = 1.4826  # of a normal distribution


class Group(Struct, frozen=True, kw_only=True):
    """Like subjects' values of one thing: their median, a robust sigma (MAD x 1.4826), and the values that a quarter
    of them (at least one) reach downwards and upwards."""

    size: int
    median: float
    sigma: float
    low: float
    high: float


def group_of(numbers: Sequence[float]) -> Group:
    """The robust centre and spread of a group; an empty one has size 0."""
    if not numbers:
        return Group(size=0, median=math.nan, sigma=math.nan, low=math.nan, high=math.nan)
    ordered = sorted(numbers)
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


# Peers that scatter so much that only a value this far off would be an outlier can tell nothing of a node.
_NO_POWER = 0.25


def by_peers(value: float, peers: Peers, group: Group, metric: Metric, *, retested: bool) -> Judged:
    """Among its peers: an outlier is worse than the median by the smallest effect that matters and by enough sigmas.

    Sigmas alone would flag a fifth of healthy trios. What was seen once is not measured until a retest. Peers of which
    half are bad scatter, and where most are bad a good part is far better than the median: then they have no power.
    """
    if group.size < FEWEST_PEERS:
        why = f"{counted(group.size, 'peer')}: too few to tell an outlier"
        return Judged(layer="peers", result="pass", expected=why, not_judged=why)
    if not group.median > 0:
        why = "the peers' median is not above 0"
        return Judged(layer="peers", result="not_measured", expected=why, reason="no_power", detail=why)
    worse = (value - group.median) if metric.better == "lower" else (group.median - value)
    least = max(peers.effect * group.median, peers.sigmas * group.sigma)
    if metric.better != "neither" and worse >= least:
        return _outlier(value, group, metric, worse, least, retested=retested)
    threshold = group.median + least if metric.better == "lower" else group.median - least
    powerless = _without_power(worse, least, peers, group, metric)
    return Judged(
        layer="peers",
        result="not_measured" if powerless else "pass",
        expected=_among(group, metric, least),
        threshold=threshold,
        reason="no_power" if powerless else "",
        detail=powerless,
    )


def _outlier(value: float, group: Group, metric: Metric, worse: float, least: float, *, retested: bool) -> Judged:
    """Seen again it fails; seen once it is to be measured again."""
    off = f"{figure(value, metric.unit)}, {percent(worse / group.median)} worse than the median of its peers"
    return Judged(
        layer="peers",
        result="fail" if retested else "not_measured",
        expected=_among(group, metric, least),
        threshold=group.median + least if metric.better == "lower" else group.median - least,
        reason="" if retested else "not_retested",
        detail="" if retested else f"{off}, seen once",
        outlier=True,
    )


def _among(group: Group, metric: Metric, least: float) -> str:
    median = figure(group.median, metric.unit)
    return f"within {percent(least / group.median)} of the median {median} of {counted(group.size, 'peer')}"


def _without_power(worse: float, least: float, peers: Peers, group: Group, metric: Metric) -> str:
    """Why a group cannot clear a value that is no outlier in it; empty where it can."""
    if least > max(_NO_POWER, 2 * peers.effect) * group.median:
        return (
            f"its {counted(group.size, 'peer')} scatter so much that only a value {percent(least / group.median)} off "
            "would show"
        )
    best = (group.median - group.low) if metric.better == "lower" else (group.high - group.median)
    if metric.better != "neither" and best >= least and worse > -least:
        better = f"{percent(best / group.median)} better than their median"
        return (
            f"a quarter or more of its {counted(group.size, 'peer')} are {better}: the median is no measure of health"
        )
    return ""
