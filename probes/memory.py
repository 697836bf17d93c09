"""memory: the accelerator's own memory, its link to the host, and the host's DRAM.

Device: copy moves two bytes for each, triad (a = b + s*c) three; buffers are far larger than any cache. On a CPU slot
the same runs in the slot's share of DRAM. Links: pinned host memory, each accelerator alone and then all of a node at
once, for a shared PCIe switch or a wrong NUMA binding only shows under contention (nvbandwidth's buffers are 512 MiB
too). Host: threads bound to one NUMA node copy memory that they touched first. GB/s are 1e9 bytes, one direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..cluster import Cluster, Node, Rank, RankContext, Round, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, Params, reading
from .host_copy import ClosedError, copy_rates, usable_cpus
from .protocol import Plan
from .retests import Watched, with_retests
from .timing import clock_of, timed_each, warm_up

MIB = 1 << 20
DEVICE = ("memory.copy", "memory.triad")
LINK = ("memory.host_to_device", "memory.device_to_host")
HOST = "memory.host_copy"
_OF_SHARED_THINGS = 0.10  # a host's DRAM, links and switches vary more than a device's own memory
_WATCHED = (
    *(Watched(metric=metric) for metric in DEVICE),
    *(Watched(metric=metric, effect=_OF_SHARED_THINGS) for metric in (*LINK, HOST)),
)
# bytes/s, for the plan's times alone: as a rule, and the least for which the deadline still holds.
_USUAL = {"cpu": 8e9, "cuda": 1e12, "link": 2e10, "host": 1e10}
_SLOWEST = {"cpu": 5e8, "cuda": 1e10, "link": 5e8, "host": 5e8}


@dataclass(frozen=True, kw_only=True, slots=True)
class MemorySettings:
    """Sizes of one buffer: on the device, over the link, and on a NUMA node (shared among its threads)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    device_mib: int
    host_mib: int
    link_mib: int = 512
    iterations: int = 20

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if min(self.device_mib, self.host_mib, self.link_mib, self.iterations) < 1:
            raise ValueError("memory needs sizes of at least 1 MiB and at least one iteration")


class Memory:
    """The memory probe."""

    name: ClassVar[str] = "memory"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (*DEVICE, *LINK, HOST)
    retests: ClassVar[tuple[str, ...]] = tuple(one.metric for one in _WATCHED)
    settings: ClassVar[type] = MemorySettings

    def plan(self, cluster: Cluster, settings: MemorySettings, seed: int) -> Plan:
        """Device memory on all ranks; links one accelerator a node at a time, then all; then each node's DRAM. After
        each of these what was slow, again."""
        yield from with_retests(cluster, [[_device_trial(cluster, settings)]], _WATCHED)
        if cluster.device == "cuda":
            yield from with_retests(cluster, [*_link_rounds(cluster, settings)], _WATCHED)
        host = [_host_trial(cluster, node, settings) for node in cluster.nodes if node.ranks]
        yield from with_retests(cluster, [host], _WATCHED)


def _device_trial(cluster: Cluster, settings: MemorySettings) -> Trial:
    size = settings.device_mib * MIB
    moved = 5.0 * size * (settings.iterations + 3)
    return Trial(
        function="memory:device",
        ranks=cluster.ranks,
        params={"bytes": size, "iterations": settings.iterations},
        expected_s=0.5 + moved / _USUAL[cluster.device],
        deadline_s=60 + moved / _SLOWEST[cluster.device],
        fills=_fills(cluster.ranks, DEVICE, {"bytes": size}),
    )


def _link_rounds(cluster: Cluster, settings: MemorySettings) -> Iterable[Round]:
    most = max((len(node.ranks) for node in cluster.nodes), default=0)
    for index in range(most):
        yield [
            _link_trial(node.ranks[index : index + 1], settings, "alone")
            for node in cluster.nodes
            if len(node.ranks) > index
        ]
    yield [_link_trial(cluster.ranks, settings, "node")]


def _link_trial(ranks: tuple[Rank, ...], settings: MemorySettings, load: str) -> Trial:
    size = settings.link_mib * MIB
    moved = 2.0 * size * (settings.iterations + 3)
    return Trial(
        function="memory:link",
        ranks=ranks,
        params={"bytes": size, "iterations": settings.iterations, "load": load},
        expected_s=0.5 + moved / _USUAL["link"],
        deadline_s=60 + moved / _SLOWEST["link"],
        fills=_fills(ranks, LINK, _link_key(size, load)),
    )


def _host_trial(cluster: Cluster, node: Node, settings: MemorySettings) -> Trial:
    size = settings.host_mib * MIB
    subjects = _numa_subjects(cluster, node)
    moved = 2.0 * size * (settings.iterations + 3) * len(subjects)
    return Trial(
        function="memory:host",
        ranks=node.ranks[:1],
        params={"bytes": size, "iterations": settings.iterations, "subjects": list(subjects)},
        expected_s=0.5 + moved / _USUAL["host"],
        deadline_s=60 + moved / _SLOWEST["host"],
        fills=tuple(Fill(metric=HOST, subject=subject, params={"bytes": size}) for subject in subjects),
    )


def _numa_subjects(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """The node's NUMA nodes that have CPUs, as inventory saw them; the first where it saw none."""
    seen = sorted(
        (
            subject
            for (subject, key), cpus in cluster.facts.items()
            if key == "numa.cpus" and cpus and subject.startswith(f"{node.name}/numa")
        ),
        key=_numa_index,
    )
    return tuple(seen) or (f"{node.name}/numa0",)


def _numa_index(subject: str) -> int:
    return int(subject.rpartition("numa")[2])


def _fills(ranks: Iterable[Rank], metrics: Iterable[str], key: Params) -> tuple[Fill, ...]:
    return tuple(Fill(metric=metric, subject=rank.subject, params=key) for rank in ranks for metric in metrics)


def _link_key(size: int, load: str) -> Params:
    return {"bytes": size, "load": load}


# On the ranks ------------------------------------------------------------------------------------------------------


def device(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """memory.copy and memory.triad of this rank's device, with buffers of params["bytes"]."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    size = params["bytes"]
    a, b, c = (torch.randn(size // 4, device=context.device) for _ in range(3))
    clock = clock_of(context)
    readings: list[AnyReading] = []
    for metric, moved, work in (
        ("memory.copy", 2 * size, lambda: a.copy_(b)),
        ("memory.triad", 3 * size, lambda: torch.add(b, c, alpha=0.5, out=a)),
    ):
        warm_up(clock, work, 0.0)
        times = timed_each(clock, work, params["iterations"])
        readings.append(reading(metric, context.subject, [moved / s / 1e9 for s in times], bytes=size))
    return readings


def link(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """Copies between pinned host memory and the device. load "alone": other accelerators idle; "node": all copy."""
    import torch

    size = params["bytes"]
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True).random_()
    far = torch.empty(size, dtype=torch.uint8, device=context.device)
    clock = clock_of(context)
    readings: list[AnyReading] = []
    for metric, work in (
        ("memory.host_to_device", lambda: far.copy_(host, non_blocking=True)),
        ("memory.device_to_host", lambda: host.copy_(far, non_blocking=True)),
    ):
        warm_up(clock, work, 0.0)
        times = timed_each(clock, work, params["iterations"])
        key = _link_key(size, params["load"])
        readings.append(reading(metric, context.subject, [size / s / 1e9 for s in times], **key))
    return readings


def host(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """memory.host_copy of each NUMA node in params["subjects"], one after another."""
    readings: list[AnyReading] = []
    for subject in params["subjects"]:
        readings += _one_numa_node(subject, params["bytes"], params["iterations"])
    return readings


def _one_numa_node(subject: str, size: int, iterations: int) -> list[AnyReading]:
    try:
        cpus = usable_cpus(_numa_index(subject))
    except ClosedError as error:
        return [
            Missing(metric=HOST, subject=subject, reason="closed_to_tenant", detail=str(error), params={"bytes": size})
        ]
    rates = copy_rates(cpus, size, iterations)
    return [
        Observed(subject=subject, key="memory.host_copy_threads", value=len(cpus)),
        reading(HOST, subject, rates, bytes=size),
    ]
