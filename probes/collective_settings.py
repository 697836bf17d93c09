"""Which collective library is at work, and with which settings: what it says itself, not what was asked of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from ..readers.nccl_settings import nccl_settings

Value = str | int | bool
_LOG = "hwlottery-nccl."  # in the scratch directory, one a process, removed once found
# This process's own logs. NCCL opens its file once a process and goes on writing to it for each new communicator, also
# after its name is gone: what follows here is what was written since the last reading.
_OPEN: list[TextIO] = []


def nccl_debug_env(scratch: str) -> dict[str, str]:
    """Variables that make NCCL write its settings to a file of each process. NCCL reads them once a process."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,TUNING",
        "NCCL_DEBUG_FILE": f"{scratch}/{_LOG}%h.%p.log",
    }


def settings_in_force() -> dict[str, Value]:
    """Backend, version, network, transports, algorithm and variables of this rank's process group.

    What the library does not tell is left out: what it said before the last call too. The debug file is removed.
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
    for file in pattern.parent.glob(f"{_LOG}*.{os.getpid()}.log"):
        _OPEN.append(file.open(errors="replace"))  # kept open while this process lives
        file.unlink()
    return "\n".join(log.read() for log in _OPEN)
