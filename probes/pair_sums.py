"""What the ranks of a pair, or of the whole cluster, do in a trial of pairs: sums of several sizes, and tiny ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from ..cluster import RankContext
from ..evidence import AnyReading, Observed, Reading, reading
from .collective_settings import settings_in_force
from .reduction import make_reduction, timed_iterations

BUSBW, SKEW, WRONG, LATENCY, STALLS = (
    "all_reduce.busbw",
    "all_reduce.skew",
    "all_reduce.wrong_elements",
    "all_reduce.latency",
    "all_reduce.stalls",
)
# TCP waits 0.2 s at least before it sends a lost last packet again (Linux, TCP_RTO_MIN); RDMA NICs wait as long or
# longer by default. No healthy small message takes that long.
STALL_S = 0.1
_OF_A_PAIR = ("algorithm", "network", "gpudirect")


def reduce_together(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """All metrics for each size, from the first rank; the others take part and return nothing."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    readings: list[AnyReading] = []
    for size in params["sizes"]:
        slowest, skew, wrong = _timed(context, params, size, params["iterations"])
        factor = 2 * (context.world_size - 1) / context.world_size
        busbw = [factor * size / seconds / 1e9 for seconds in slowest]
        readings += _told(params, size, {BUSBW: busbw, SKEW: skew, WRONG: wrong})
    small = params["latency_bytes"]
    slowest, _, wrong = _timed(context, params, small, params["latency_iterations"])
    usual = statistics.median(slowest)
    stalls = sum(seconds > usual + STALL_S for seconds in slowest)
    readings += _told(params, small, {LATENCY: slowest, STALLS: [stalls], WRONG: wrong})
    told = _of_the_library(context, params)
    return [*(readings if context.rank == 0 else []), *told]


def _of_the_library(context: RankContext, params: dict[str, Any]) -> Iterator[Observed]:
    """What the library says of itself: of a pair its first rank, of the whole cluster each rank of its own part."""
    settings = settings_in_force()
    if params["tell"] == "each":
        yield from (Observed(subject=context.subject, key=f"fabric.{key}", value=v) for key, v in settings.items())
    elif context.rank == 0:
        of = {key: value for key, value in settings.items() if key in _OF_A_PAIR}
        yield from (Observed(subject=params["subject"], key=f"pairs.{key}", value=v) for key, v in of.items())


def _timed(
    context: RankContext, params: dict[str, Any], size: int, iterations: int
) -> tuple[list[float], list[float], list[int]]:
    """Seconds of the slowest rank, those that the fastest took less, and wrong elements, an iteration each."""
    reduction = make_reduction(context, size, params["key"]["dtype"])
    timed_iterations(context, reduction, params["warm_ups"])
    durations, wrong = timed_iterations(context, reduction, iterations)
    slowest = [max(ranks) for ranks in durations]
    return slowest, [max(ranks) - min(ranks) for ranks in durations], wrong


def _told(params: dict[str, Any], size: int, samples: dict[str, list[Any]]) -> Iterator[Reading]:
    for metric, found in samples.items():
        yield reading(metric, params["subject"], found, bytes=size, **params["key"])
