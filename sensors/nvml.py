"""NVIDIA's management library: what is there, and one place where its errors become reasons.

Three states are kept apart: no accelerators (None), an open library (Nvml), and a driver or a GPU that is there while
the library does not work (Unreadable): the last is a fault to be seen, never "no GPUs".
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from .files import ROOT, Unreadable, content_or_empty
from .pci import nvidia_gpus

# Bits of nvmlDeviceGetCurrentClocksEventReasons. Test with `&`: several stand at once.
IDLE = 0x1
HW_SLOWDOWN = 0x8
SW_THERMAL = 0x20
HW_THERMAL = 0x40
HW_POWER_BRAKE = 0x80
THROTTLED = HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | HW_POWER_BRAKE  # a software power cap (0x4) is how boost works
REASONS = {
    IDLE: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    HW_SLOWDOWN: "hardware slowdown",
    0x10: "sync boost",
    SW_THERMAL: "software thermal slowdown",
    HW_THERMAL: "hardware thermal slowdown",
    HW_POWER_BRAKE: "power brake",
    0x100: "display clocks",
}


NOT_SUPPORTED = "NVML: Not Supported"


class Nvml:
    """An open NVML, showing the GPUs that CUDA would show: rank 0's GPU is index 0 here.

    `library` is the pynvml module, or in tests a stand-in with its functions.
    """

    def __init__(self, library: Any, indices: tuple[int, ...]) -> None:
        self.library = library
        self.indices = indices
        self._handles: dict[int, Any] = {}

    @property
    def count(self) -> int:
        """How many GPUs are visible to CUDA."""
        return len(self.indices)

    def ask(self, function: str, *arguments: Any) -> Any:
        """What a function of the library answers, or Unreadable with its error."""
        try:
            return getattr(self.library, function)(*arguments)
        except self.library.NVMLError as error:
            return Unreadable(f"NVML: {error}")
        except AttributeError:
            return Unreadable(f"this nvidia-ml-py has no {function}")
        except Exception as error:  # noqa: BLE001  # bindings newer than the driver raise errors of other kinds
            return Unreadable(f"nvidia-ml-py: {type(error).__name__}: {error}"[:300])

    def gpu(self, index: int, function: str, *arguments: Any) -> Any:
        """What a function that takes a device handle first answers for the GPU of that index, or Unreadable."""
        if index not in self._handles:
            handle = self.ask("nvmlDeviceGetHandleByIndex", self.indices[index])
            if isinstance(handle, Unreadable):
                return handle
            self._handles[index] = handle
        return self.ask(function, self._handles[index], *arguments)

    def uuid(self, index: int) -> str | Unreadable:
        """GPU-xxxxxxxx-…"""
        return as_text(self.gpu(index, "nvmlDeviceGetUUID"))

    def fabric(self, index: int) -> Any:
        """The GPU's place in an NVLink fabric of several nodes (c_nvmlGpuFabricInfoV_t), or Unreadable."""
        make = getattr(self.library, "c_nvmlGpuFabricInfoV_t", None)
        if make is None:
            return Unreadable("this nvidia-ml-py has no c_nvmlGpuFabricInfoV_t")
        info = make()
        answer = self.gpu(index, "nvmlDeviceGetGpuFabricInfoV", info)
        return answer if isinstance(answer, Unreadable) else info

    def pci(self, index: int) -> str | Unreadable:
        """The GPU's address as /sys has it: 0000:18:00.0."""
        info = self.gpu(index, "nvmlDeviceGetPciInfo")
        if isinstance(info, Unreadable):
            return info
        domain, _, rest = str(as_text(info.busId)).lower().partition(":")
        return f"{domain[-4:] if domain.startswith('0000') else domain}:{rest}"


def as_text(value: Any) -> str | Unreadable:
    """Text of an answer: older bindings return bytes."""
    if isinstance(value, Unreadable):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def open_nvml(
    root: Path = ROOT, library: Any = None, environment: Mapping[str, str] = os.environ
) -> Nvml | Unreadable | None:
    """Open NVML. None where there are no accelerators at all; Unreadable where there are and it does not work.

    May take long on a broken driver: call it where a deadline holds.
    """
    pynvml = library or _bindings()
    if isinstance(pynvml, Unreadable):
        return _absent_or(pynvml, root)
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return _absent_or(Unreadable(f"NVML: {error}"), root)
    if not count:
        return _absent_or(Unreadable("NVML works and finds no GPU"), root)
    opened = Nvml(pynvml, tuple(range(count)))
    indices = visible(environment.get("CUDA_VISIBLE_DEVICES"), [str(opened.uuid(index)) for index in range(count)])
    return indices if isinstance(indices, Unreadable) else Nvml(pynvml, indices)


def _bindings() -> ModuleType | Unreadable:
    try:
        import pynvml
    except ImportError:
        return Unreadable("nvidia-ml-py is not installed")
    module: ModuleType = pynvml
    return module


def _absent_or(trouble: Unreadable, root: Path) -> Unreadable | None:
    signs = driver_signs(root)
    return Unreadable(f"{trouble.why}, though {', '.join(signs)}") if signs else None


def driver_signs(root: Path = ROOT) -> list[str]:
    """What shows that NVIDIA GPUs or their driver should be here."""
    signs = []
    if content_or_empty(root / "proc/driver/nvidia/version"):
        signs.append("the driver is loaded (/proc/driver/nvidia)")
    if (root / "dev/nvidiactl").exists():
        signs.append("/dev/nvidiactl exists")
    if addresses := nvidia_gpus(root):
        signs.append(f"{len(addresses)} NVIDIA GPUs are on the PCI bus")
    return signs


def visible(setting: str | None, uuids: list[str]) -> tuple[int, ...] | Unreadable:
    """The NVML indices that CUDA shows under CUDA_VISIBLE_DEVICES, in CUDA's order.

    CUDA takes numbers and beginnings of UUIDs, and stops at the first that is none. MIG instances are not followed:
    a rank on one is not a whole GPU. Numbers are taken in PCI order, which equals CUDA's own "fastest first" where all
    GPUs are of one model.
    """
    if setting is None:
        return tuple(range(len(uuids)))
    chosen: list[int] = []
    for word in (part.strip() for part in setting.split(",")):
        if word.startswith("MIG-"):
            return Unreadable("CUDA_VISIBLE_DEVICES names MIG instances: sensors see whole GPUs only")
        index = _index_of(word, uuids)
        if index is None or index in chosen:
            break
        chosen.append(index)
    return tuple(chosen) or Unreadable(f"CUDA_VISIBLE_DEVICES={setting!r} shows none of the {len(uuids)} GPUs")


def _index_of(word: str, uuids: list[str]) -> int | None:
    if word.isdecimal():
        return int(word) if int(word) < len(uuids) else None
    matches = [index for index, uuid in enumerate(uuids) if word.startswith("GPU-") and uuid.startswith(word)]
    return matches[0] if len(matches) == 1 else None


def named_reasons(bits: int) -> str:
    """The clock event reasons in words."""
    names = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return ", ".join(names + ([f"bits {rest:#x}"] if rest else [])) or "none"
