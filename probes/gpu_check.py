"""gpu-check: everything one GPU can be asked, in under six minutes, without the rest of hwlottery installed.

    python -m hwlottery.probes.gpu_check [--device cuda|cpu]

Needs torch, numpy, psutil, msgspec and nvidia-ml-py alone. Runs the probes' own plans and rank functions in this
process, prints a table, and last one line of JSON. Nothing is judged here: exit 0 unless something broke.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from ..cluster import Cluster, Trial
from ..evidence import Device
from . import PROBES
from .all_reduce import AllReduceSettings
from .burn_in import BurnInSettings
from .by_hand import call, group_of_one, one_node, trials_of
from .checkpoint import CheckpointSettings
from .gpu_check_result import Check, now, print_check
from .matmul import MatmulSettings
from .memory import MemorySettings

LIMIT_S = 345
# The probes that need no other program and no second rank, at two sizes: for a GPU, and a small one for a CPU.
SETTINGS: dict[Device, dict[str, Any]] = {
    "cuda": {
        "matmul": MatmulSettings(
            dtypes=("bf16", "fp16", "tf32", "fp32", "fp8"),
            shapes=((4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 16384), (8192, 28672, 8192)),
            burst_iterations=50,
            sustained_shapes=((8192, 8192, 8192),),
            sustained_s=8,
            repeats=5,
        ),
        "memory": MemorySettings(device_mib=2048, host_mib=2048, link_mib=512, iterations=20),
        "all_reduce": AllReduceSettings(sizes_kib=(1 << 20,)),
        "checkpoint": CheckpointSettings(mib_per_rank=2048, saves=3),
        "burn_in": BurnInSettings(
            seconds=45, vocabulary=32768, sequence=2048, width=2048, layers=8, heads=16, batch=8, learning_rate=3e-4
        ),
    },
    "cpu": {
        "matmul": MatmulSettings(
            dtypes=("fp32", "bf16", "fp8"),
            shapes=((256, 256, 256),),
            burst_iterations=10,
            sustained_shapes=((256, 256, 256),),
            sustained_s=0.2,
            repeats=2,
            warm_up_s=0.1,
        ),
        "memory": MemorySettings(device_mib=16, host_mib=32, iterations=5),
        "all_reduce": AllReduceSettings(sizes_kib=(1024,)),
        "checkpoint": CheckpointSettings(mib_per_rank=8, tensor_mib=4, saves=2),
        "burn_in": BurnInSettings(
            seconds=2, vocabulary=64, sequence=32, width=32, layers=2, heads=2, batch=4, check_every=5
        ),
    },
}


def main(arguments: list[str] | None = None) -> int:
    """Run the check and print it. Returns the exit code: 1 where a probe broke, 0 otherwise."""
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__, formatter_class=_Plain)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: the same path, tiny sizes")
    device: Device = parser.parse_args(arguments).device
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        print("not run: no CUDA device")
        print(json.dumps({"status": "not run", "reason": "no CUDA device", "torch": torch.__version__, "date": now()}))
        return 0
    check = Check(device=device)
    with tempfile.TemporaryDirectory(prefix="hwlottery-gpu-check-") as scratch:
        watchdog = threading.Timer(LIMIT_S, _give_up, [check, scratch])
        watchdog.daemon = True
        watchdog.start()
        _run(check, scratch)
        watchdog.cancel()
    print_check(check)
    return 1 if check.broken else 0


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Help with the module's text as it stands."""


def _run(check: Check, scratch: str) -> None:
    with group_of_one(check.device, scratch):
        for trial in _trials(one_node(check.device, 1, scratch)):
            if time.monotonic() - check.started + trial.expected_s > LIMIT_S:
                check.skip(trial)
                continue
            try:
                check.take(trial, call(trial, trial.ranks[0].subject, scratch, os.cpu_count() or 1))
            except Exception as error:  # noqa: BLE001  # a probe that breaks is said, and the next goes on
                check.fail(trial, error)


def _trials(cluster: Cluster) -> Iterator[Trial]:
    for probe in PROBES:
        if probe.name in SETTINGS[cluster.device]:
            yield from trials_of(probe, cluster, SETTINGS[cluster.device][probe.name])


def _give_up(check: Check, scratch: str) -> None:
    """The time is over and a probe hangs: say what there is, and end."""
    check.broken.append(f"still running after {LIMIT_S} s")
    print_check(check)
    sys.stdout.flush()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
