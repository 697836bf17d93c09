"""The layer of peers: an outlier among like subjects, and what such a group cannot tell."""

from collections.abc import Sequence
from functools import lru_cache

from ..evidence import Metric
from ..outliers import FEWEST_PEERS, Group, Threshold, is_outlier, least_effect, worse_by
from .layers import Judged
from .policy_layers import Peers
from .words import counted, figure, percent

# Peers that scatter so much that only a value this far off would be an outlier can tell nothing of a node.
_NO_POWER = 0.25


def by_peers(value: float, peers: Peers, group: Group, metric: Metric, *, others: Sequence[float] = ()) -> Judged:
    """Among its peers: an outlier is worse than the median by the smallest effect that matters and by enough sigmas.

    `others` are the values of the other attempts. What was an outlier in one attempt alone is not measured until a
    retest. Peers of which half are bad scatter, and where most are bad a good part is far better than the median: then
    they have no power.
    """
    if group.size < FEWEST_PEERS:
        why = f"{counted(group.size, 'peer')}: too few to tell an outlier"
        return Judged(layer="peers", result="pass", expected=why, not_judged=why)
    if not group.tells:
        why = "the peers' median is not above 0"
        return Judged(layer="peers", result="not_measured", expected=why, reason="no_power", detail=why)
    threshold = Threshold(effect=peers.effect, sigmas=peers.sigmas)
    worse, least = worse_by(value, group, metric.better), least_effect(group, threshold)
    if is_outlier(value, group, metric.better, threshold):
        again = any(is_outlier(other, group, metric.better, threshold) for other in others)
        return _outlier(value, group, metric, worse, least, seen_again=again)
    bound = group.median + least if metric.better == "lower" else group.median - least
    powerless = _without_power(worse, least, peers, group, metric)
    return Judged(
        layer="peers",
        result="not_measured" if powerless else "pass",
        expected=_among(group.size, group.median, metric.unit, least),
        threshold=bound,
        reason="no_power" if powerless else "",
        detail=powerless,
    )


def _outlier(value: float, group: Group, metric: Metric, worse: float, least: float, *, seen_again: bool) -> Judged:
    """Seen again it fails; seen once it is to be measured again."""
    off = f"{figure(value, metric.unit)}, {percent(worse / group.median)} worse than the median of its peers"
    return Judged(
        layer="peers",
        result="fail" if seen_again else "not_measured",
        expected=_among(group.size, group.median, metric.unit, least),
        threshold=group.median + least if metric.better == "lower" else group.median - least,
        reason="" if seen_again else "not_retested",
        detail="" if seen_again else f"{off}, seen once",
        outlier=True,
    )


@lru_cache(maxsize=1024)
def _among(size: int, median: float, unit: str, least: float) -> str:
    return f"within {percent(least / median)} of the median {figure(median, unit)} of {counted(size, 'peer')}"


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
