"""This machine as a cluster of one node: what it has, before anything runs on it."""

import os
import socket
from pathlib import Path
from typing import Any

from ..evidence import Launcher, Promised, node_name

LAUNCHER = Launcher(name="local", why="no launcher's variables and no --hosts: this machine alone")
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers


def promised_here(slots: int) -> Promised:
    """This machine as promised: each NVIDIA GPU is a rank; on a machine without one, `slots` CPU ranks.

    The driver's count, not torch's: a GPU that torch cannot use was promised all the same, and is not measured. Where
    the driver's library is there and fails, the PCI bus is counted: such a machine is no CPU node.
    """
    import pynvml

    gpus = gpu_count(pynvml, _PCI)
    node = node_name(socket.gethostname())
    if gpus:
        return Promised(node=node, device="cuda", ranks=tuple(f"gpu{index}" for index in range(gpus)))
    slots = max(1, min(slots, len(os.sched_getaffinity(0))))
    return Promised(node=node, device="cpu", ranks=tuple(f"slot{index}" for index in range(slots)))


def gpu_count(nvml: Any, pci: Path) -> int:
    """NVIDIA GPUs within CUDA_VISIBLE_DEVICES where that is set; 0 where no NVIDIA driver is installed."""
    try:
        nvml.nvmlInit()
        try:
            count = int(nvml.nvmlDeviceGetCount())
        finally:
            nvml.nvmlShutdown()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return 0
    except nvml.NVMLError:
        count = gpus_on_bus(pci)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count
    return min(count, len([name for name in visible.split(",") if name.strip() not in ("", "-1")]))


def gpus_on_bus(pci: Path) -> int:
    """NVIDIA's display and 3D controllers on the PCI bus."""
    return sum(
        _text(device / "vendor") == _NVIDIA and _text(device / "class")[:6] in _DISPLAY_CLASSES
        for device in (pci.iterdir() if pci.is_dir() else ())
    )


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
