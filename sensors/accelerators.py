"""What NVML says of each GPU: identity, limits, settings, errors so far. Sizes in bytes, clocks in Hz, power in W."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from .files import ROOT, Found, Unreadable
from .identity import identity_text
from .nvml import NOT_SUPPORTED, Nvml, as_text
from .pci import numa_node

_CLOCK_SM, _CLOCK_MEMORY = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
_UNCORRECTED, _AGGREGATE = 1, 1  # NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC
_MOST_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
_NO_SUCH_LINK = (NOT_SUPPORTED, "NVML: Invalid Argument")
_NO_FABRIC, _FABRIC_COMPLETED = 0, 3  # NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, NVML_GPU_FABRIC_STATE_COMPLETED
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}

# key, function, its further arguments, what to make of its answer
_Row = tuple[str, str, tuple[Any, ...], Callable[[Any], Found]]


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _hertz(megahertz: int) -> int:
    return megahertz * 1_000_000


def _current(pair: Any) -> bool:
    """NVML gives a mode as [current, pending]."""
    return bool(pair[0])


_ASKED: tuple[_Row, ...] = (
    ("accelerator.name", "nvmlDeviceGetName", (), as_text),
    ("accelerator.uuid", "nvmlDeviceGetUUID", (), as_text),
    ("accelerator.serial", "nvmlDeviceGetSerial", (), lambda answer: identity_text(as_text(answer), "NVML serial")),
    ("accelerator.part_number", "nvmlDeviceGetBoardPartNumber", (), as_text),
    ("accelerator.vbios", "nvmlDeviceGetVbiosVersion", (), as_text),
    ("accelerator.inforom", "nvmlDeviceGetInforomImageVersion", (), as_text),
    ("accelerator.capability", "nvmlDeviceGetCudaComputeCapability", (), lambda pair: f"{pair[0]}.{pair[1]}"),
    ("accelerator.memory", "nvmlDeviceGetMemoryInfo", (), lambda memory: int(memory.total)),
    ("accelerator.memory_used", "nvmlDeviceGetMemoryInfo", (), lambda memory: int(memory.used)),
    ("accelerator.power_limit", "nvmlDeviceGetPowerManagementLimit", (), _watts),
    ("accelerator.power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", (), _watts),
    ("accelerator.power_limit_enforced", "nvmlDeviceGetEnforcedPowerLimit", (), _watts),
    ("accelerator.clock_sm_max", "nvmlDeviceGetMaxClockInfo", (_CLOCK_SM,), _hertz),
    ("accelerator.clock_memory_max", "nvmlDeviceGetMaxClockInfo", (_CLOCK_MEMORY,), _hertz),
    ("accelerator.clock_sm_application", "nvmlDeviceGetApplicationsClock", (_CLOCK_SM,), _hertz),
    ("accelerator.ecc", "nvmlDeviceGetEccMode", (), _current),
    ("accelerator.mig", "nvmlDeviceGetMigMode", (), _current),
    ("accelerator.persistence", "nvmlDeviceGetPersistenceMode", (), bool),
    ("accelerator.compute_mode", "nvmlDeviceGetComputeMode", (), lambda mode: _COMPUTE_MODES.get(mode, f"mode {mode}")),
    ("accelerator.pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", (), int),
    ("accelerator.pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", (), int),
    ("accelerator.rows_remapped_correctable", "nvmlDeviceGetRemappedRows", (), lambda rows: int(rows[0])),
    ("accelerator.rows_remapped_uncorrectable", "nvmlDeviceGetRemappedRows", (), lambda rows: int(rows[1])),
    ("accelerator.remap_pending", "nvmlDeviceGetRemappedRows", (), lambda rows: bool(rows[2])),
    ("accelerator.remap_failed", "nvmlDeviceGetRemappedRows", (), lambda rows: bool(rows[3])),
    ("accelerator.ecc_uncorrected_lifetime", "nvmlDeviceGetTotalEccErrors", (_UNCORRECTED, _AGGREGATE), int),
)


def node_facts(nvml: Nvml | Unreadable | None, on_bus: int) -> dict[str, Found]:
    """Driver and CUDA versions and how many GPUs there are. `on_bus` are the NVIDIA GPUs in the PCI tree: more there
    than NVML shows is a GPU that fell off, or one hidden from this container."""
    found: dict[str, Found] = {"accelerators.on_pci_bus": on_bus}
    if nvml is None:
        return found | {"accelerators.count": 0}
    if isinstance(nvml, Unreadable):
        return found | {"accelerators.count": nvml}
    cuda = nvml.ask("nvmlSystemGetCudaDriverVersion")
    return found | {
        "accelerators.count": nvml.count,
        "driver.version": as_text(nvml.ask("nvmlSystemGetDriverVersion")),
        "driver.cuda": cuda if isinstance(cuda, Unreadable) else f"{cuda // 1000}.{cuda % 1000 // 10}",
    }


def gpu_facts(nvml: Nvml, index: int, own_pids: Collection[int], root: Path = ROOT) -> dict[str, Found]:
    """All that is asked of one GPU, each a value or why there is none."""
    found = {key: _converted(nvml.gpu(index, function, *more), make) for key, function, more, make in _ASKED}
    address = nvml.pci(index)
    found["accelerator.pci"] = address
    found["accelerator.nvlink_domain"] = nvlink_domain(nvml, index)
    links = nvlinks(nvml, index)
    found["accelerator.nvlinks"] = links if isinstance(links, Unreadable) else len(links)
    found["accelerator.numa_node"] = address if isinstance(address, Unreadable) else numa_node(address, root)
    return found | foreign_processes(nvml.gpu(index, "nvmlDeviceGetComputeRunningProcesses"), own_pids)


def nvlink_domain(nvml: Nvml, index: int) -> Found:
    """Which GPUs it reaches by NVLink beyond its own node: CLUSTER_UUID.CLIQUE of the fabric that its NVLink switches
    make (GB200 NVL72). Empty where it is in none: that is no failure to read it."""
    fabric = nvml.fabric(index)
    if isinstance(fabric, Unreadable):
        return "" if fabric.why == NOT_SUPPORTED else fabric
    if fabric.state == _NO_FABRIC:
        return ""
    if fabric.state != _FABRIC_COMPLETED or fabric.status:
        return Unreadable(f"its NVLink fabric is not ready: state {fabric.state}, status {fabric.status}")
    uuid = bytes(fabric.clusterUuid)
    return f"{uuid.hex()}.{fabric.cliqueId}" if any(uuid) else ""


def nvlinks(nvml: Nvml, index: int) -> list[bool] | Unreadable:
    """Each NVLink of a GPU, whether it is up. An empty list: this GPU has none. A link beyond the last is refused by
    NVML as not supported or as an invalid argument, as is the first on a GPU without NVLink."""
    states: list[bool] = []
    for number in range(_MOST_NVLINKS):
        state = nvml.gpu(index, "nvmlDeviceGetNvLinkState", number)
        if isinstance(state, Unreadable):
            return states if state.why in _NO_SUCH_LINK else state
        states.append(bool(state))
    return states


def _converted(answer: Any, make: Callable[[Any], Found]) -> Found:
    if isinstance(answer, Unreadable):
        return answer
    try:
        return make(answer)
    except (TypeError, ValueError, IndexError, AttributeError):
        return Unreadable(f"NVML answered in an unknown form: {answer!r}"[:300])


def foreign_processes(processes: Any, own_pids: Collection[int]) -> dict[str, Found]:
    """How many processes that are not ours hold this GPU, and how much of its memory where the driver tells.

    Inside a container the driver hides the processes of others: none seen is then no proof of none.
    """
    if isinstance(processes, Unreadable):
        return {"accelerator.foreign_processes": processes, "accelerator.foreign_memory": processes}
    foreign = [process for process in processes if process.pid not in own_pids]
    held = [process.usedGpuMemory for process in foreign]
    told: Found = Unreadable("NVML does not tell") if None in held else sum(held)
    return {"accelerator.foreign_processes": len(foreign), "accelerator.foreign_memory": told}
