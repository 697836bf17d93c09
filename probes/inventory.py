"""inventory: what this node is. Identity, hardware, versions, settings, limits, and who else uses it.

Facts, no figures. Each key that is wanted is there as a value, or as unreadable.KEY with the reason: a tenant who may
not read a serial number has no serial number, not an empty one. Keys, by subject:

node         hardware.identity, identity.*, machine.*, node.tier, access.*, cpu.*, memory.*, numa.*, os.*, clock.*,
             limit.*, module.*, iommu.*, disk.NAME.*, filesystem.* (of the scratch directory), shm.*, driver.*,
             kernel_log.*, accelerators.*, software.*, torch.*, foreign.*, nics.count
node/gpuN    accelerator.*      node/NIC   nic.*, portN.*      node/numaN   numa.*

Sizes are bytes, clocks Hz, link rates bit/s, power W.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..cluster import Cluster, Node, RankContext, Round, Trial
from ..evidence import AnyReading, Noticed
from ..sensors.accelerators import gpu_facts, node_facts
from ..sensors.access import access, access_facts
from ..sensors.files import ROOT, Found, Unreadable, facts
from ..sensors.host import host_facts, numa_nodes
from ..sensors.identity import hardware, hardware_identity, machine
from ..sensors.kernel_log import log_facts
from ..sensors.links import nics
from ..sensors.nvml import Nvml, open_nvml
from ..sensors.pci import nvidia_gpus
from ..sensors.processes import foreign_facts, own_pids
from ..sensors.settings import settings_facts
from ..sensors.software import software_versions
from ..sensors.storage import disks, scratch_facts, shared_memory
from .protocol import Plan

__all__ = ["Inventory", "InventorySettings", "hardware_identity", "look", "software_versions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InventorySettings:
    """`watch_s`: how long the CPU use of others is watched."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  # read by pydantic from the class, never changed

    watch_s: float = 0.5


class Inventory:
    """Looks at every node once, on its first rank, all nodes at the same time."""

    name: ClassVar[str] = "inventory"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[type] = InventorySettings

    def plan(self, cluster: Cluster, settings: InventorySettings, seed: int) -> Plan:
        """One round: the first rank of each node looks around."""
        yield one_trial_a_node(cluster, lambda node: _trial(node, settings))


def one_trial_a_node(cluster: Cluster, trial: Any) -> Round:
    """A round with one trial for each node that has a rank."""
    return [trial(node) for node in cluster.nodes if node.ranks]


def _trial(node: Node, settings: InventorySettings) -> Trial:
    return Trial(
        function="inventory:look",
        ranks=node.ranks[:1],
        params={"watch_s": settings.watch_s},
        expected_s=settings.watch_s + 1,
        deadline_s=60 + settings.watch_s,  # NVML on eight GPUs without persistence mode takes 20 s to open
        fills=(),
    )


def look(context: RankContext, params: Mapping[str, Any]) -> list[AnyReading]:
    """All facts of the node this rank is on."""
    nvml = open_nvml()
    own = own_pids()
    cards = nics()
    node: dict[str, Found] = {
        **hardware(ROOT, nvml),
        **machine(),
        **access_facts(access()),
        **host_facts(),
        **settings_facts(),
        **disks(),
        **scratch_facts(Path(context.scratch)),
        **shared_memory(),
        **node_facts(nvml, len(nvidia_gpus())),
        **log_facts(),
        "nics.count": len(cards),
        **{f"software.{name}": version for name, version in software_versions().items()},
        **torch_facts(),  # what is in force, over what a package's metadata say
        **foreign_facts(own, float(params["watch_s"])),
    }
    parts = [fact for name, found in (cards | numa_nodes()).items() for fact in facts(f"{context.node}/{name}", found)]
    return [*facts(context.node, node), *accelerator_facts(context.node, nvml, own), *parts]


def accelerator_facts(node: str, nvml: Nvml | Unreadable | None, own: frozenset[int]) -> list[AnyReading]:
    """Facts of each GPU. A driver that is there while NVML fails is noticed as an error: it is not "no GPUs"."""
    if isinstance(nvml, Unreadable):
        return [Noticed(kind="note", subject=node, severity="error", detail=f"GPUs cannot be seen: {nvml.why}")]
    if nvml is None:
        return []
    return [fact for index in range(nvml.count) for fact in facts(f"{node}/gpu{index}", gpu_facts(nvml, index, own))]


def torch_facts() -> dict[str, Found]:
    """What torch says of itself. The only part that loads it."""
    import torch

    found: dict[str, Found] = {"torch.version": torch.__version__, "torch.threads": torch.get_num_threads()}
    found["torch.cuda"] = torch.version.cuda or Unreadable("built without CUDA")
    found["torch.hip"] = torch.version.hip or Unreadable("built without ROCm")
    found["torch.cuda_devices"] = torch.cuda.device_count()
    if torch.cuda.is_available():
        found |= _cuda_libraries(torch)
    return found


def _cuda_libraries(torch: Any) -> dict[str, Found]:
    cudnn: Found = torch.backends.cudnn.version() or Unreadable("built without cuDNN")
    if not (torch.distributed.is_available() and torch.distributed.is_nccl_available()):
        return {"torch.cudnn": cudnn}
    return {"torch.cudnn": cudnn, "software.nccl": ".".join(map(str, torch.cuda.nccl.version()))}
