"""all_reduce: how fast, how evenly and how exactly the ranks of a node sum a buffer.

For each size: warm-ups (the first collective also builds channels), then timed iterations. Before each, the buffer is
refilled and a tiny all-reduce lines the ranks up. Every rank's durations are gathered; per iteration
    slowest rank = the collective's time          busbw = 2(n-1)/n x bytes / time   (nccl-tests PERFORMANCE.md)
    fastest rank = transfer, free of late arrival
    slowest - fastest = arrival skew
After each iteration every element is compared with the exact sum. Then back to back: wall time over iterations, as
nccl-tests does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..cluster import Cluster, Node, RankContext, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, Params, reading
from ..evidence.subjects import Kind
from .collective_settings import nccl_debug_env, settings_in_force
from .protocol import Plan
from .reduction import batched_seconds, make_reduction, timed_iterations
from .retests import Watched, with_retests

KIB = 1 << 10
_PLATEAU = tuple(gib << 30 for gib in (1, 2, 4, 8, 16))  # bytes at which bandwidth no longer grows, on any machine
METRICS = (
    "all_reduce.busbw",
    "all_reduce.algbw",
    "all_reduce.transfer",
    "all_reduce.skew",
    "all_reduce.batched_busbw",
    "all_reduce.wrong_elements",
)
# For the plan's times alone, bytes/s of one all-reduce with its refill and check: as a rule, and the least for which
# the deadline still holds. gloo on two CPU cores does a GiB in 1.3 s.
_USUAL = {"cpu": 4e8, "cuda": 5e10}
_SLOWEST = {"cpu": 2e7, "cuda": 5e8}


@dataclass(frozen=True, kw_only=True, slots=True)
class AllReduceSettings:
    """`sizes_kib` are each rank's buffer. `batched` all-reduces are timed together; `warm_ups` and then `iterations`
    one by one."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sizes_kib: tuple[int, ...]
    dtype: Literal["fp32", "bf16"] = "fp32"
    warm_ups: int = 5
    iterations: int = 20
    batched: int = 20

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.sizes_kib or min(self.sizes_kib) < 1:
            raise ValueError("all_reduce needs sizes of at least 1 KiB")
        if min(self.warm_ups, self.iterations, self.batched) < 1:
            raise ValueError("all_reduce needs at least one warm-up, iteration and batched iteration")


class AllReduce:
    """The all_reduce probe: over each node's own ranks, all nodes at once."""

    name: ClassVar[str] = "all_reduce"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = METRICS
    subjects: ClassVar[tuple[Kind, ...]] = ("node",)
    retests: ClassVar[tuple[str, ...]] = ("all_reduce.busbw",)
    settings: ClassVar[type] = AllReduceSettings

    def plan(self, cluster: Cluster, settings: AllReduceSettings, seed: int) -> Plan:
        """One round, a collective on each node; who is slow at the largest size again."""
        largest = max(settings.sizes_kib) * KIB
        watched = Watched(metric="all_reduce.busbw", where=lambda params: params["bytes"] in (largest, *_PLATEAU))
        trials = [_on_node(node, cluster.device, settings) for node in cluster.nodes]
        yield from with_retests(cluster, [trials], [watched])


def _on_node(node: Node, device: str, settings: AllReduceSettings) -> Trial:
    sizes = [kib * KIB for kib in settings.sizes_kib]
    each = settings.warm_ups + settings.iterations + settings.batched
    moved = float(sum(sizes) * each)
    alone = len(node.ranks) < 2
    return Trial(
        function="all_reduce:lone_rank" if alone else "all_reduce:on_node",
        ranks=node.ranks,
        params={
            "sizes": sizes,
            "dtype": settings.dtype,
            "warm_ups": settings.warm_ups,
            "iterations": settings.iterations,
            "batched": settings.batched,
        },
        env=nccl_debug_env(node.scratch) if device == "cuda" and not alone else {},
        collective=not alone,
        expected_s=0.1 if alone else 1.0 + moved / _USUAL[device],
        deadline_s=120 + moved / _SLOWEST[device],
        fills=tuple(
            Fill(metric=metric, subject=node.name, params=_key(size, settings.dtype, len(node.ranks)))
            for size in sizes
            for metric in METRICS
        ),
    )


def _key(size: int, dtype: str, ranks: int) -> Params:
    return {"bytes": size, "dtype": dtype, "ranks": ranks}


# On the ranks ------------------------------------------------------------------------------------------------------


def lone_rank(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """What a node with one rank says: there is nobody to reduce with."""
    return [
        Missing(
            metric=metric,
            subject=context.node,
            reason="unsupported",
            detail="needs two ranks",
            params=_key(size, params["dtype"], 1),
        )
        for size in params["sizes"]
        for metric in METRICS
    ]


def on_node(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """All metrics of all_reduce for each size, from the first rank; the others take part and return nothing."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    readings: list[AnyReading] = []
    for size in params["sizes"]:
        readings += _one_size(context, params, size)
    settings = settings_in_force()
    if context.rank != 0:
        return []
    return readings + [
        Observed(subject=context.node, key=f"all_reduce.{key}", value=value) for key, value in settings.items()
    ]


def _one_size(context: RankContext, params: dict[str, Any], size: int) -> list[AnyReading]:
    reduction = make_reduction(context, size, params["dtype"])
    timed_iterations(context, reduction, params["warm_ups"])
    durations, wrong = timed_iterations(context, reduction, params["iterations"])
    batch_s = batched_seconds(context, reduction, params["batched"])
    slowest = [max(ranks) for ranks in durations]
    fastest = [min(ranks) for ranks in durations]
    skew = [late - early for late, early in zip(slowest, fastest, strict=True)]
    factor = 2 * (context.world_size - 1) / context.world_size
    key = _key(size, params["dtype"], context.world_size)
    subject = context.node
    return [
        reading("all_reduce.busbw", subject, [factor * size / seconds / 1e9 for seconds in slowest], **key),
        reading("all_reduce.algbw", subject, [size / seconds / 1e9 for seconds in slowest], **key),
        reading("all_reduce.transfer", subject, fastest, **key),
        reading("all_reduce.skew", subject, skew, **key),
        reading("all_reduce.batched_busbw", subject, factor * size / batch_s / 1e9, **key),
        reading("all_reduce.wrong_elements", subject, wrong, **key),
    ]
