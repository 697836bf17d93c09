"""Copies in host DRAM by threads that stay on the CPUs of one NUMA node."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

# A dozen cores already fill a socket's memory channels; more only wait for each other.
_MOST_THREADS = 32
_SYSFS = Path("/sys/devices/system/node")


class ClosedError(Exception):
    """This process may not run on that NUMA node; the message says why in one line."""


def usable_cpus(numa: int) -> tuple[int, ...]:
    """CPUs of a NUMA node that this process may run on, at most 32. Raises ClosedError where there are none."""
    file = _SYSFS / f"node{numa}" / "cpulist"
    try:
        wanted = parse_cpu_list(file.read_text())
    except (OSError, ValueError) as error:
        raise ClosedError(f"cannot read {file}: {error}") from error
    with ThreadPoolExecutor(max_workers=1) as thread:  # its affinity goes with it
        try:
            cpus = thread.submit(_bound_to, wanted).result()
        except OSError as error:
            raise ClosedError(f"may not run on the CPUs of NUMA node {numa}: {error.strerror}") from error
    return tuple(sorted(cpus)[:_MOST_THREADS])


def parse_cpu_list(text: str) -> frozenset[int]:
    """CPU numbers from Linux's notation, "0-3,8". Raises ValueError."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def _bound_to(cpus: frozenset[int]) -> set[int]:
    os.sched_setaffinity(0, cpus)  # 0 is the calling thread
    return os.sched_getaffinity(0)


def copy_rates(cpus: Sequence[int], size: int, iterations: int) -> list[float]:
    """GB/s of each iteration: bytes read plus written by a thread on each CPU, from the first start to the last end.

    `size` bytes are shared among the threads.
    """
    line_up = threading.Barrier(len(cpus))
    part = max(1, size // len(cpus) // 8)  # of 8-byte numbers

    def one_thread(cpu: int) -> list[tuple[float, float]]:
        import numpy as np

        _bound_to(frozenset({cpu}))
        source = np.full(part, float(cpu + 1))  # first touched here: it lies in this NUMA node's memory
        target = np.zeros_like(source)
        return [_one_copy(line_up, source, target) for _ in range(iterations + 2)][2:]

    with ThreadPoolExecutor(max_workers=len(cpus)) as threads:
        spans = list(threads.map(one_thread, cpus))
    moved = 2 * 8 * part * len(cpus)
    return [
        moved / (max(end for _, end in each) - min(start for start, _ in each)) / 1e9
        for each in zip(*spans, strict=True)
    ]


def _one_copy(line_up: threading.Barrier, source: Array, target: Array) -> tuple[float, float]:
    import numpy as np

    line_up.wait(timeout=60)
    start = time.perf_counter()
    np.copyto(target, source)  # runs without the interpreter's lock
    return start, time.perf_counter()
