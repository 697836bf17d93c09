"""This machine as a cluster of one node: what it has, before anything runs on it."""

import contextlib
import os
import socket

from ..evidence import Launcher, Promised, node_name

LAUNCHER = Launcher(name="local", why="no launcher's variables and no --hosts: this machine alone")


def promised_here(slots: int) -> Promised:
    """This machine as promised: each NVIDIA GPU that its driver shows is a rank; without one, `slots` CPU ranks.

    The driver's count, not torch's: a GPU that torch cannot use was promised all the same, and is not measured.
    """
    gpus = _gpu_count()
    node = node_name(socket.gethostname())
    if gpus:
        return Promised(node=node, device="cuda", ranks=tuple(f"gpu{index}" for index in range(gpus)))
    slots = max(1, min(slots, len(os.sched_getaffinity(0))))
    return Promised(node=node, device="cpu", ranks=tuple(f"slot{index}" for index in range(slots)))


def _gpu_count() -> int:
    """GPUs by NVML, within CUDA_VISIBLE_DEVICES where that is set; 0 where there is no NVIDIA driver."""
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            count: int = pynvml.nvmlDeviceGetCount()
        finally:
            pynvml.nvmlShutdown()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return count
        return min(count, len([name for name in visible.split(",") if name.strip() not in ("", "-1")]))
    return 0
