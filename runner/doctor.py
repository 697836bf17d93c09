"""doctor: what would keep a run from working on this machine, or bend its figures, each with its remedy.

Nothing is changed but for a small file in the scratch directory, which is removed.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..sensors.access import access
from ..sensors.files import Unreadable
from ..sensors.host import cpu_limit
from ..sensors.links import rdma_devices
from ..sensors.nvml import driver_signs, open_nvml
from ..sensors.processes import foreign_facts, own_pids
from ..sensors.settings import clock_synchronised, limits
from ..sensors.storage import shared_memory
from . import doctor_host as host
from . import doctor_software as software
from .advice import Advice

__all__ = ["Advice", "examine"]

_T = TypeVar("_T")
_U = TypeVar("_U")
_NVML_PATIENCE_S = 30.0


def examine(scratch: Path) -> list[Advice]:
    """Look at everything. Takes some seconds: torch is loaded in a process of its own."""
    nvml = in_time(open_nvml, _NVML_PATIENCE_S, Unreadable(f"the driver gave no answer in {_NVML_PATIENCE_S:.0f} s"))
    own = own_pids()
    return [
        software.python_version(sys.version_info[:2]),
        software.driver(nvml),
        software.torch_build(software.ask_torch(), bool(driver_signs())),
        software.fio(),
        software.tls(),
        *host.scratch_checks(scratch.resolve()),
        host.shm_size(shared_memory()["shm.size"]),
        *host.limit_checks(limits(), bool(rdma_devices())),
        host.clock(clock_synchronised()),
        host.loopback(),
        host.hostname(socket.gethostname()),
        host.cpus(len(os.sched_getaffinity(0)), cpu_limit()),
        host.foreign_cpu(foreign_facts(own), os.cpu_count() or 1),
        *host.foreign_gpus(nvml, own),
        host.tier(access()),
    ]


def in_time(question: Callable[[], _T], seconds: float, otherwise: _U) -> _T | _U:
    """The answer, or `otherwise` where it does not come in time: the asking thread is then left behind."""
    answers: list[_T] = []
    thread = threading.Thread(target=lambda: answers.append(question()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else otherwise
