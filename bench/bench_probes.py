"""What the probes' measuring path costs: probe and bare loop, turn by turn in one run.

The two take turns and the upper quartile of each counts: what else runs on the machine slows single turns, a cost of
the path all of them.
"""

import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from hwlottery.cluster import RankContext
from hwlottery.evidence import Reading

TURNS = 16
SIDE = 1024  # of the products
BYTES = 64 << 20  # of the all-reduce: far beyond the cache, which the probe's checks would flush
Budget = tuple[str, float, float, str]  # what, the ratio measured, the least it may be, unit


def budgets() -> list[Budget]:
    """Both budgets, measured."""
    return [
        ("matmul probe over a bare torch.mm loop", matmul_ratio(), 0.98, "x"),
        ("all-reduce probe's bus bandwidth and a bare loop's, smaller over larger", all_reduce_ratio(), 0.95, "x"),
    ]


def matmul_ratio() -> float:
    """TFLOPS of the probe's sustained path over those of a bare loop on the same operands' shapes."""
    import torch

    from hwlottery.probes.matmul import sustained

    torch.set_num_threads(1)
    context = RankContext(subject="here/slot0", node="here", device_name="cpu", subjects=("here/slot0",))
    params = {"dtype": "fp32", "shapes": [(SIDE, SIDE, SIDE)], "seconds": 0.4, "seed": 1}

    def probe() -> list[float]:
        (reading,) = sustained(context, params)
        assert isinstance(reading, Reading)
        return list(reading.samples)

    a, b, c = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE).t(), torch.empty(SIDE, SIDE)

    def bare() -> list[float]:
        return [_bare_rate(a, b, c) for _ in range(4)]

    return _ratio(probe, bare)


def _bare_rate(a: Any, b: Any, c: Any, times: int = 4) -> float:
    """TFLOPS of so many products as the probe has in a sample of 0.1 s."""
    import torch

    start = time.perf_counter()
    for _ in range(times):
        torch.mm(a, b, out=c)
    flops = 2.0 * SIDE * SIDE * SIDE * times
    return flops / (time.perf_counter() - start) / 1e12


def _ratio(probe: Callable[[], list[float]], bare: Callable[[], list[float]]) -> float:
    """Upper quartile of the probe's samples over that of the bare loop's."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(TURNS):
        ours += probe()
        theirs += bare()
    return statistics.quantiles(ours, n=4)[2] / statistics.quantiles(theirs, n=4)[2]


def all_reduce_ratio() -> float:
    """Bus bandwidth of the probe's timed iterations and of a bare loop on the same two ranks: smaller over larger."""
    with tempfile.TemporaryDirectory() as meeting, _two_processes() as processes:
        waiting = [processes.submit(_both_loops, str(Path(meeting) / "store"), rank) for rank in range(2)]
        ratio = min(one.result(timeout=120) for one in waiting)
    return min(ratio, 1 / ratio)


def _two_processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def _both_loops(store: str, rank: int) -> float:
    import torch
    import torch.distributed as dist

    from hwlottery.probes.reduction import make_reduction, timed_iterations

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    subjects = ("here/slot0", "here/slot1")
    context = RankContext(subject=subjects[rank], node="here", device_name="cpu", rank=rank, subjects=subjects)
    reduction = make_reduction(context, BYTES, "fp32")
    buffer = torch.ones(BYTES // 4)

    def probe() -> list[float]:
        durations, _ = timed_iterations(context, reduction, 5)
        return [1 / max(each) for each in durations]

    def bare() -> list[float]:
        dist.barrier()
        marks = [time.perf_counter()]
        for _ in range(5):
            dist.all_reduce(buffer)
            marks.append(time.perf_counter())
        return [1 / (end - start) for start, end in itertools.pairwise(marks)]

    ratio = _ratio(probe, bare)
    dist.destroy_process_group()
    return ratio
