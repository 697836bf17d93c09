"""collectives: all-gather, reduce-scatter and all-to-all over the whole cluster, beside the all-reduce of pairs.

What sharded training asks of a fabric (gather, scatter) and what experts ask of it (all-to-all, where every rank talks
with every other and nothing but the middle of the fabric helps). bytes are those of all ranks' parts together for
all-gather, and each rank's whole send buffer for the others; busbw = (n-1)/n x bytes / time of the slowest rank
(nccl-tests PERFORMANCE.md). Every element that arrives is checked. All-to-all is repeated on half of the nodes, a
quarter and so on: it falls where the middle of the fabric is oversubscribed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from ..cluster import Cluster, Node, RankContext, Trial
from ..evidence import AnyReading, Fill, Params, reading
from ..evidence.subjects import Kind
from .collective_settings import nccl_debug_env
from .exchanges import Operation, make_exchange, whole_bytes
from .protocol import Plan
from .reduction import timed_iterations

KIB = 1 << 10
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
FIGURES = ("busbw", "wrong_elements")
# For the plan's times alone, bytes/s of one collective with its refill and check: as a rule, and the least for which
# the deadline still holds.
_USUAL = {"cpu": 3e7, "cuda": 1e10}
_SLOWEST = {"cpu": 1e6, "cuda": 1e8}
_SETTLE_S = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectivesSettings:
    """`sizes_kib`: each rank's larger buffer. `ranks_a_node`: so many of each node's ranks take part, None for all."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sizes_kib: tuple[int, ...]
    dtype: Literal["fp32", "bf16"] = "fp32"
    warm_ups: int = 5
    iterations: int = 20
    ranks_a_node: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        ranks = 1 if self.ranks_a_node is None else self.ranks_a_node
        if not self.sizes_kib or min(*self.sizes_kib, self.warm_ups, self.iterations, ranks) < 1:
            raise ValueError("collectives needs sizes of at least 1 KiB, and a warm-up, an iteration and a rank")


class Collectives:
    """The collectives probe. With fewer than two nodes there is nothing to do."""

    name: ClassVar[str] = "collectives"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = tuple(f"{each}.{what}" for each in OPERATIONS for what in FIGURES)
    subjects: ClassVar[tuple[Kind, ...]] = ("cluster",)
    nodes_at_least: ClassVar[int] = 2
    settings: ClassVar[type] = CollectivesSettings

    def plan(self, cluster: Cluster, settings: CollectivesSettings, seed: int) -> Plan:
        """One operation after another, on all nodes; all-to-all on halves too."""
        nodes = [node for node in cluster.nodes if node.ranks]
        if len(nodes) < 2:
            return
        for operation in OPERATIONS:
            yield [_trial(operation, nodes, cluster.device, settings)]
        for some in _halves(nodes):
            yield [_trial("all_to_all", some, cluster.device, settings)]


def _halves(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Half of the nodes, a quarter, down to two."""
    while len(nodes) >= 4:
        nodes = nodes[: len(nodes) // 2]
        yield nodes


def _trial(operation: Operation, nodes: Sequence[Node], device: str, settings: CollectivesSettings) -> Trial:
    ranks = tuple(rank for node in nodes for rank in node.ranks[: settings.ranks_a_node])
    sizes = [whole_bytes(kib * KIB, len(ranks), settings.dtype) for kib in settings.sizes_kib]
    moved = float(sum(sizes) * (settings.warm_ups + settings.iterations))
    key: Params = {"dtype": settings.dtype, "ranks": len(ranks), "nodes": len(nodes)}
    return Trial(
        function="collectives:exchange",
        ranks=ranks,
        params={
            "operation": operation,
            "subject": "cluster",
            "sizes": sizes,
            "warm_ups": settings.warm_ups,
            "iterations": settings.iterations,
            "key": key,
        },
        env=nccl_debug_env(nodes[0].scratch) if device == "cuda" else {},
        collective=True,
        expected_s=0.5 + moved / _USUAL[device],
        deadline_s=_SETTLE_S + moved / _SLOWEST[device],
        fills=tuple(
            Fill(metric=f"{operation}.{what}", subject="cluster", params={"bytes": size} | key)
            for size in sizes
            for what in FIGURES
        ),
    )


# On the ranks ------------------------------------------------------------------------------------------------------


def exchange(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """Both metrics of the operation for each size, from the first rank."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    readings: list[AnyReading] = []
    for size in params["sizes"]:
        collective = make_exchange(context, params["operation"], size, params["key"]["dtype"])
        timed_iterations(context, collective, params["warm_ups"])
        durations, wrong = timed_iterations(context, collective, params["iterations"])
        factor = (context.world_size - 1) / context.world_size
        busbw = [factor * size / max(ranks) / 1e9 for ranks in durations]
        readings += [
            reading(f"{params['operation']}.{what}", params["subject"], samples, bytes=size, **params["key"])
            for what, samples in zip(FIGURES, (busbw, wrong), strict=True)
        ]
    return readings if context.rank == 0 else []
