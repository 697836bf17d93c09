"""Which collective library is at work, and with which settings: what it says itself, not what was asked of it."""

from __future__ import annotations

import os
from pathlib import Path

from ..readers.nccl_settings import nccl_settings

Value = str | int | bool
_LOG = "hwlottery-nccl."  # in the scratch directory, one a process, removed once read


def nccl_debug_env(scratch: str) -> dict[str, str]:
    """Variables that make NCCL write its settings to a file of each process. NCCL reads them once a process."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,TUNING",
        "NCCL_DEBUG_FILE": f"{scratch}/{_LOG}%h.%p.log",
    }


def settings_in_force() -> dict[str, Value]:
    """Backend, version, network, transports, algorithm and variables of this rank's process group.

    What the library does not tell is left out. The debug file is removed.
    """
    import torch.distributed as dist

    backend = str(dist.get_backend())
    return {"backend": backend} | (_gloo() if backend == "gloo" else _nccl())


def _gloo() -> dict[str, Value]:
    """gloo tells nothing of itself. Its all-reduce is the ring unless asked otherwise, and torch does not ask
    (gloo allreduce.cc, torch ProcessGroupGloo.cpp)."""
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "the hostname's")
    transport = os.environ.get("GLOO_DEVICE_TRANSPORT", "TCP")
    return {"algorithm": "ring", "network": transport, "interface": interface}


def _nccl() -> dict[str, Value]:
    import torch

    version = ".".join(str(part) for part in torch.cuda.nccl.version())
    return {"version": version} | nccl_settings(_debug_text())


def _debug_text() -> str:
    pattern = Path(os.environ.get("NCCL_DEBUG_FILE", ""))
    texts = []
    for file in pattern.parent.glob(f"{_LOG}*.{os.getpid()}.log"):
        texts.append(file.read_text(errors="replace"))
        file.unlink()
    return "\n".join(texts)
