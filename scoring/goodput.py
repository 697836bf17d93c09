"""Goodput: the share of time that makes progress, with checkpoints, failures and recoveries.

Times in seconds. `save_s` is one checkpoint, `mtbf_s` the mean time between failures of the whole job, `recovery_s`
from a failure until training goes on (noticed, rescheduled, loaded). Young 1974; Daly, FGCS 22 (2006), for the
interval; the share is exact for failures at a constant rate.
"""

import math

SECONDS_A_DAY = 86_400.0


def job_mtbf_s(nodes: int, failures_per_node_day: float) -> float:
    """Mean time between failures of a job on so many nodes; infinite where the rate is 0."""
    if nodes < 1 or failures_per_node_day < 0:
        raise ValueError("a job has at least one node and a rate of at least 0")
    return SECONDS_A_DAY / (nodes * failures_per_node_day) if failures_per_node_day else math.inf


def young_interval_s(save_s: float, mtbf_s: float) -> float:
    """The time of work between two checkpoints by Young's first order: sqrt(2wM)."""
    return math.sqrt(2 * save_s * mtbf_s)


def daly_interval_s(save_s: float, mtbf_s: float) -> float:
    """The time of work between two checkpoints by Daly's higher order; M where a save takes 2M or more."""
    if save_s >= 2 * mtbf_s:
        return mtbf_s
    part = save_s / (2 * mtbf_s)
    return young_interval_s(save_s, mtbf_s) * (1 + math.sqrt(part) / 3 + part / 9) - save_s


def goodput(save_s: float, mtbf_s: float, recovery_s: float, interval_s: float | None = None) -> float:
    """tau / (M e^(R/M) (e^((tau+w)/M) - 1)): exact for failures at a constant rate.

    `interval_s` is the work between checkpoints; Daly's where it is not given. 1 where nothing ever fails and saving
    takes no time; 0 where the exponent leaves the range of numbers.
    """
    if not (save_s > 0 and mtbf_s > 0 and recovery_s >= 0):
        raise ValueError("a save and the time between failures take time, and a recovery at least none")
    if math.isinf(mtbf_s):
        return 1.0 if interval_s is None else interval_s / (interval_s + save_s)
    tau = daly_interval_s(save_s, mtbf_s) if interval_s is None else interval_s
    try:
        share = tau / (mtbf_s * math.exp(recovery_s / mtbf_s) * math.expm1((tau + save_s) / mtbf_s))
        return min(1.0, share)  # rounding may end above, where nearly nothing fails
    except OverflowError:
        return 0.0


def goodput_by_meta(save_s: float, mtbf_s: float, restart_s: float, interval_s: float) -> float:
    """(1 - (u0 + dt/2)/M) / (1 + w/dt), a first-order estimate from Meta's study of its research clusters, to hold the
    exact share against."""
    return (1 - (restart_s + interval_s / 2) / mtbf_s) / (1 + save_s / interval_s)


def longest_save_s(overhead: float, mtbf_s: float) -> float:
    """The longest save that keeps the overhead of checkpoints below a share: eps^2 M / 2 (from Young's interval)."""
    return overhead**2 * mtbf_s / 2
