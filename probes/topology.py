"""topology: how this node is wired inside. PCIe links under load, NVLinks that are up, and which NIC is near which GPU.

An idle GPU drops its PCIe link to the lowest rate to save power, so its link is read while it multiplies and copies.
The facts say what was looked at: a node without accelerators and without NICs of its own has nothing to measure here.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from ..cluster import Cluster, Node, RankContext, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, parse_subject, reading
from ..sensors.accelerators import nvlinks
from ..sensors.files import ROOT, Found, Unreadable, facts
from ..sensors.links import nics
from ..sensors.nvml import Nvml, open_nvml
from ..sensors.pci import distance, link, numa_node, path_of
from .protocol import Plan

WIDTH, RATE, NVLINKS = "topology.pcie_width", "topology.pcie_gts", "topology.nvlinks_active"
# GT/s a lane by PCIe generation (PCI Express base specification).
GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_RAMP_S = 0.5  # a link that slept is retrained within this
_EVERY_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class TopologySettings:
    """`load_s`: how long a GPU is kept busy while its link is read."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  # read by pydantic from the class, never changed

    load_s: float = 2.0


class Topology:
    """All GPUs of a node at once, each read by its own rank; the first rank reads the NICs. All nodes in one round."""

    name: ClassVar[str] = "topology"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (WIDTH, RATE, NVLINKS)
    settings: ClassVar[type] = TopologySettings

    def plan(self, cluster: Cluster, settings: TopologySettings, seed: int) -> Plan:
        """One round. What there is to measure follows from inventory's facts."""
        yield [_trial(cluster, node, settings) for node in cluster.nodes if node.ranks]


def _trial(cluster: Cluster, node: Node, settings: TopologySettings) -> Trial:
    ranks = node.ranks if cluster.device == "cuda" else node.ranks[:1]
    return Trial(
        function="topology:look",
        ranks=ranks,
        params={"load_s": settings.load_s, "nics": _nics_with_a_link(cluster, node)},
        expected_s=settings.load_s + 1,
        deadline_s=settings.load_s + 60,  # NVML on eight GPUs without persistence mode takes 20 s to open
        fills=tuple(_fills(cluster, node)),
    )


def _fills(cluster: Cluster, node: Node) -> Iterator[Fill]:
    gpus = [rank.subject for rank in node.ranks if rank.device == "cuda"]
    cards = [f"{node.name}/{name}" for name in _nics_with_a_link(cluster, node)]
    for subject in (*gpus, *cards):
        yield Fill(metric=WIDTH, subject=subject)
        yield Fill(metric=RATE, subject=subject)
    for subject in gpus:
        # Without the fact nobody knows that there are none.
        if cluster.fact(subject, "accelerator.nvlinks") != 0:
            yield Fill(metric=NVLINKS, subject=subject)


def _nics_with_a_link(cluster: Cluster, node: Node) -> list[str]:
    """The node's NICs that showed a PCIe link of their own; a virtual one has none."""
    seen = [subject for subject, key in cluster.facts if key == "pcie.width_max"]
    parsed = (parse_subject(subject) for subject in seen)
    return sorted(one.text.partition("/")[2] for one in parsed if one.kind == "nic" and one.node == node.name)


def look(context: RankContext, params: Mapping[str, Any]) -> list[AnyReading]:
    """This rank's GPU under load; on the node's first rank also its NICs."""
    nvml = open_nvml() if context.on_cuda else None
    cards = nics()
    readings: list[AnyReading] = []
    if context.on_cuda:
        readings += look_at_gpu(context, nvml, cards, float(params["load_s"]))
    if context.leads_node:
        readings += look_at_nics(context.node, cards, list(params["nics"]))
        readings.append(Observed(subject=context.node, key="topology.seen", value=seen(nvml, cards)))
    return readings


def seen(nvml: Nvml | Unreadable | None, cards: Mapping[str, Mapping[str, Found]]) -> str:
    """What there was to look at, in words."""
    linked = [name for name, card in cards.items() if isinstance(card.get("pcie.width_max"), int)]
    if isinstance(nvml, Unreadable):
        accelerators = f"accelerators that cannot be seen ({nvml.why})"
    else:
        accelerators = f"{nvml.count} accelerators" if nvml else "no accelerators"
    named = f": {', '.join(linked)}" if linked else ""
    nics = "1 NIC" if len(cards) == 1 else f"{len(cards)} NICs"
    return f"{accelerators}, {nics}, {len(linked)} of them with a PCIe link of their own{named}"


def look_at_nics(node: str, cards: Mapping[str, Mapping[str, Found]], wanted: list[str]) -> list[AnyReading]:
    """The PCIe link of each NIC. One that inventory saw and that is gone now is missing, not absent."""
    readings: list[AnyReading] = []
    for name in wanted:
        address = cards.get(name, {}).get("nic.pci", Unreadable("the NIC is no longer there"))
        found = (
            dict.fromkeys(("pcie.width", "pcie.gts"), address)
            if isinstance(address, Unreadable)
            else link(str(address))
        )
        readings += [
            as_reading(WIDTH, f"{node}/{name}", [found["pcie.width"]]),
            as_reading(RATE, f"{node}/{name}", [found["pcie.gts"]]),
        ]
    return readings


def as_reading(metric: str, subject: str, found: Sequence[Found]) -> AnyReading:
    """A reading where every sample was read, else why one was not."""
    unread = [value for value in found if isinstance(value, Unreadable)]
    if unread or not found:
        why = unread[0] if unread else Unreadable("no reading was taken under load")
        return Missing(metric=metric, subject=subject, reason=why.reason, detail=why.why)
    return reading(metric, subject, [float(value) for value in found if not isinstance(value, Unreadable)])


def look_at_gpu(
    context: RankContext, nvml: Nvml | Unreadable | None, cards: Mapping[str, Mapping[str, Found]], load_s: float
) -> list[AnyReading]:
    """A GPU's link under load, its NVLinks, and how far each NIC is from it."""
    if not isinstance(nvml, Nvml):
        why = nvml or Unreadable("no NVML: not an NVIDIA GPU")
        return [as_reading(metric, context.subject, [why]) for metric in Topology.metrics]
    index = int(context.device_name.partition(":")[2] or 0)
    links: list[dict[str, Found]] = []
    with busy(context) as work:
        ends = time.monotonic() + load_s
        while (left := ends - time.monotonic()) > 0:
            work()
            if left < load_s - _RAMP_S:
                links.append(gpu_link(nvml, index))
                time.sleep(_EVERY_S)
        states = nvlinks(nvml, index)
    readings = [
        as_reading(WIDTH, context.subject, [found["pcie.width"] for found in links]),
        as_reading(RATE, context.subject, [found["pcie.gts"] for found in links]),
    ]
    if isinstance(states, Unreadable) or states:
        readings.append(
            as_reading(NVLINKS, context.subject, [states if isinstance(states, Unreadable) else sum(states)])
        )
    return readings + list(facts(context.subject, distances(nvml.pci(index), cards)))


def gpu_link(nvml: Nvml, index: int) -> dict[str, Found]:
    """The link as the GPU itself tells it, which is true in a virtual machine too; else as the kernel shows it."""
    generation = nvml.gpu(index, "nvmlDeviceGetCurrPcieLinkGeneration")
    width = nvml.gpu(index, "nvmlDeviceGetCurrPcieLinkWidth")
    if not isinstance(width, Unreadable) and generation in GTS:
        return {"pcie.gts": GTS[generation], "pcie.width": int(width)}
    address = nvml.pci(index)
    return dict.fromkeys(("pcie.gts", "pcie.width"), address) if isinstance(address, Unreadable) else link(address)


@contextmanager
def busy(context: RankContext) -> Iterator[Callable[[], None]]:
    """Give a function that queues products and a copy over the link, unless the last ones still run; at the end all
    are waited for."""
    import torch

    torch.cuda.set_device(context.device)
    matrix = torch.randn(4096, 4096, device=context.device, dtype=torch.float16)
    product = torch.empty_like(matrix)
    on_host = torch.empty(32 << 20, dtype=torch.uint8, pin_memory=True)
    on_device = torch.empty(32 << 20, dtype=torch.uint8, device=context.device)
    done = torch.cuda.Event()

    def work() -> None:
        if not done.query():  # true before the first record
            return
        on_device.copy_(on_host, non_blocking=True)
        for _ in range(100):
            torch.mm(matrix, matrix, out=product)
        done.record()

    yield work
    torch.cuda.synchronize(context.device)


def distances(address: str | Unreadable, cards: Mapping[str, Mapping[str, Found]]) -> dict[str, Found]:
    """How far each NIC is from a GPU (PIX, PXB, PHB, NODE, SYS), as distance.NIC."""
    return {
        f"distance.{name}": _distance(address, card.get("nic.pci", Unreadable("no address")))
        for name, card in cards.items()
    }


def _distance(gpu: Found, nic: Found) -> Found:
    for address in (gpu, nic):
        if isinstance(address, Unreadable):
            return address
    found = distance(
        path_of(str(gpu), ROOT), path_of(str(nic), ROOT), (numa_node(str(gpu), ROOT), numa_node(str(nic), ROOT))
    )
    return found or Unreadable(f"the PCI tree does not show the way from {gpu} to {nic}")
