"""nics: what a node's NICs carry, before the node meets any other.

The node's own accelerators sum a buffer in a ring with every way inside the node switched off (P2P, shared memory,
NVLS), so that each byte leaves by one NIC and comes back by another. All nodes at once; who is slower than the others
is measured again alone.

What NCCL says of its transports decides whether that happened: a figure of another path is not kept, nor one of
sockets, which the kernel turns round inside the node. gloo has no such switches: on CPUs this is not measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..cluster import Cluster, Finished, Node, Outcome, RankContext, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, Params, reading
from ..outliers import Threshold, suspects
from .collective_settings import Value, nccl_debug_env, settings_in_force
from .observations import bandwidth
from .protocol import Plan
from .reduction import make_reduction, timed_iterations

KIB = 1 << 10
BUSBW, WRONG = "all_reduce.nic_busbw", "all_reduce.nic_wrong_elements"
# Newer NCCL refuses its network inside a node unless NCCL_NET_DISABLE_INTRA says 0 (src/graph/paths.cc); NVLS and
# multi-node NVLink are ways of their own; a tree would spare the NICs bytes.
FORCED = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_MNNVL_ENABLE": "0",
    "NCCL_NET_DISABLE_INTRA": "0",
    "NCCL_ALGO": "Ring",
}
_USUAL, _SLOWEST = 1e10, 1e8  # bytes/s, for the plan's times alone


@dataclass(frozen=True, kw_only=True, slots=True)
class NicsSettings:
    """`sizes_kib` are each rank's buffer. An outlier that is slower than the others by the share `effect`
    is measured again alone."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sizes_kib: tuple[int, ...]
    dtype: Literal["fp32", "bf16"] = "fp32"
    warm_ups: int = 5
    iterations: int = 20
    effect: float = 0.10

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.sizes_kib or min(self.sizes_kib) < 1 or min(self.warm_ups, self.iterations) < 1:
            raise ValueError("nics needs sizes of at least 1 KiB, a warm-up and an iteration")
        if not 0.01 <= self.effect <= 0.4:
            raise ValueError("nics needs an effect of 0.01 to 0.4")


class Nics:
    """The nics probe: over each node's own accelerators, all nodes at once."""

    name: ClassVar[str] = "nics"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (BUSBW, WRONG)
    settings: ClassVar[type] = NicsSettings

    def plan(self, cluster: Cluster, settings: NicsSettings, seed: int) -> Plan:
        """One round for all nodes, then one for each outlier until it was seen as one twice, or is none."""
        nodes = [node for node in cluster.nodes if node.ranks]
        outcomes = yield [_trial(node, cluster.device, settings) for node in nodes]
        first = {node.name: outcome for node, outcome in zip(nodes, outcomes, strict=True)}
        seen = {name: [value] for name, outcome in first.items() if (value := _value(outcome, settings)) is not None}
        by_name = {node.name: node for node in nodes}
        while wanted := suspects(seen, "higher", Threshold(effect=settings.effect)):
            for name in wanted:
                attempt, original = 1 + len(seen[name]), first[name].trial
                (outcome,) = yield [_trial(by_name[name], cluster.device, settings, attempt, original)]
                again = _value(outcome, settings)
                seen = {key: values for key, values in seen.items() if key != name or again is not None}
                if again is not None:
                    seen[name].append(again)


def _value(outcome: Outcome, settings: NicsSettings) -> float | None:
    """The bandwidth at the largest size; None where it did not come."""
    if not isinstance(outcome, Finished):
        return None
    samples = bandwidth(outcome.readings, BUSBW, max(settings.sizes_kib) * KIB)
    return statistics.median(samples) if samples else None


def _trial(node: Node, device: str, settings: NicsSettings, attempt: int = 1, retest_of: str | None = None) -> Trial:
    sizes = [kib * KIB for kib in settings.sizes_kib]
    moved = float(sum(sizes) * (settings.warm_ups + settings.iterations))
    why = _cannot(device, len(node.ranks))
    key: Params = {"dtype": settings.dtype, "ranks": len(node.ranks), "path": "nic"}
    return Trial(
        function="nics:not_here" if why else "nics:round_the_nics",
        ranks=node.ranks,
        params={
            "sizes": sizes,
            "warm_ups": settings.warm_ups,
            "iterations": settings.iterations,
            "key": key,
            "why": why,
        },
        env={} if why else nccl_debug_env(node.scratch) | FORCED,
        collective=not why,
        expected_s=0.1 if why else 5.0 + moved / _USUAL,
        deadline_s=120 + moved / _SLOWEST,
        fills=tuple(
            Fill(metric=m, subject=node.name, params={"bytes": s} | key) for s in sizes for m in (BUSBW, WRONG)
        ),
        attempt=attempt,
        retest_of=retest_of,
    )


def _cannot(device: str, ranks: int) -> str:
    if device != "cuda":
        return "gloo cannot be told to leave the node: only NCCL on accelerators can"
    return "needs two accelerators" if ranks < 2 else ""


# On the ranks ------------------------------------------------------------------------------------------------------


def not_here(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """Why nothing can be measured on this node, from its first rank."""
    return _missing(context, params, params["why"]) if context.rank == 0 else []


def round_the_nics(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """Both metrics for each size from the first rank, unless some rank's bytes went another way."""
    import torch
    import torch.distributed as dist

    readings: list[AnyReading] = []
    for size in params["sizes"]:
        reduction = make_reduction(context, size, params["key"]["dtype"])
        timed_iterations(context, reduction, params["warm_ups"])
        durations, wrong = timed_iterations(context, reduction, params["iterations"])
        factor = 2 * (context.world_size - 1) / context.world_size
        busbw = [factor * size / max(ranks) / 1e9 for ranks in durations]
        readings.append(reading(BUSBW, context.node, busbw, bytes=size, **params["key"]))
        readings.append(reading(WRONG, context.node, wrong, bytes=size, **params["key"]))
    settings = settings_in_force()
    why = why_not_by_nic(settings)
    elsewhere = torch.tensor(float(bool(why)), device=context.device)
    dist.all_reduce(elsewhere)
    if context.rank != 0:
        return []
    if elsewhere > 0:
        readings = _missing(context, params, why or f"{elsewhere:.0f} other ranks did not go by a NIC")
    return readings + [Observed(subject=context.node, key=f"nics.{key}", value=v) for key, v in settings.items()]


def why_not_by_nic(settings: Mapping[str, Value]) -> str:
    """Why what NCCL says of one rank's transports does not show that a NIC carried its bytes; empty where it does."""
    ways = str(settings.get("transports", "")).split()
    if not ways:
        return "the library did not say which way it took"
    inside = [way for way in ways if not way.startswith("NET/")]
    if inside:
        return f"NCCL went by {', '.join(inside)} in spite of the switches"
    if any(way.startswith("NET/Socket") for way in ways):
        return "NCCL uses sockets here, and the kernel turns those round inside the node"
    return ""


def _missing(context: RankContext, params: dict[str, Any], why: str) -> list[AnyReading]:
    return [
        Missing(
            metric=metric,
            subject=context.node,
            reason="unsupported",
            detail=why,
            params={"bytes": size, **params["key"]},
        )
        for size in params["sizes"]
        for metric in (BUSBW, WRONG)
    ]
