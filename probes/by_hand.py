"""Rank functions called by hand, without a cluster: for one GPU (gpu_check), for tests and for benchmarks."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..cluster import Cluster, Finished, Node, Rank, RankContext, Trial
from ..evidence import AnyReading, Device, Fill, Missing, Reading
from ..evidence.records import Scalar
from .protocol import Probe

Value = tuple[str, str, tuple[tuple[str, Scalar], ...]]


def one_node(device: Device, ranks: int, scratch: str, name: str = "here") -> Cluster:
    """A cluster of one node with so many accelerators or CPU slots."""
    short = "gpu" if device == "cuda" else "slot"
    places = tuple(
        Rank(subject=f"{name}/{short}{index}", node=name, index=index, device=device) for index in range(ranks)
    )
    return Cluster(nodes=(Node(name=name, ranks=places, scratch=scratch),), device=device)


def trials_of(probe: Probe, cluster: Cluster, settings: Any, seed: int = 1) -> Iterator[Trial]:
    """A probe's trials, one after another, as if each ended well and brought nothing: without any retest."""
    plan = probe.plan(cluster, settings, seed)
    with contextlib.suppress(StopIteration):
        together = next(plan)
        while True:
            yield from together
            together = plan.send([Finished(readings=()) for _ in together])


def call(trial: Trial, subject: str, scratch: str, threads: int = 1) -> list[AnyReading]:
    """Do the part of the rank `subject` in a trial, in this process. Raises what the function raises."""
    subjects = tuple(rank.subject for rank in trial.ranks)
    place = subjects.index(subject)
    rank = trial.ranks[place]
    context = RankContext(
        subject=subject,
        node=rank.node,
        device_name=f"cuda:{rank.index}" if rank.device == "cuda" else "cpu",
        rank=place,
        local_rank=rank.index,
        subjects=subjects,
        nodes=tuple(each.node for each in trial.ranks),
        threads=threads,
        scratch=Path(scratch),
    )
    module, _, name = trial.function.partition(":")
    function = getattr(importlib.import_module(f".{module}", __package__), name)
    readings: list[AnyReading] = function(context, dict(trial.params))
    return readings


@contextlib.contextmanager
def group_of_one(device: Device, folder: str) -> Iterator[None]:
    """This process alone in a process group, as the only rank of a collective trial. `folder` takes a small file."""
    import torch
    import torch.distributed as dist

    if device == "cuda":
        torch.cuda.set_device(0)
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/group-of-one",
        rank=0,
        world_size=1,
        device_id=torch.device("cuda", 0) if device == "cuda" else None,
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def values_of(items: Iterable[AnyReading | Fill]) -> set[Value]:
    """Which values are meant, as (metric, subject, params): those that fills announce, or that readings bring or say
    they cannot bring."""
    return {
        (each.metric, each.subject, tuple(sorted(each.params.items())))
        for each in items
        if isinstance(each, Reading | Missing | Fill)
    }


def gang(trials: Sequence[Trial], ranks: Sequence[str], scratch: str, timeout_s: float = 120) -> list[list[AnyReading]]:
    """Run trials one after another on fresh CPU processes, one a rank, that share one gloo group.

    Returns the readings of all ranks in their order, by trial. Raises what a rank raises, and TimeoutError.
    """
    meeting = Path(tempfile.mkdtemp(prefix="hwlottery-gang-"))
    try:
        with ProcessPoolExecutor(len(ranks), mp_context=multiprocessing.get_context("spawn")) as processes:
            waiting = [
                processes.submit(_work, str(meeting / "store"), place, tuple(ranks), tuple(trials), scratch)
                for place in range(len(ranks))
            ]
            by_rank = [one.result(timeout=timeout_s) for one in waiting]
    finally:
        for file in meeting.iterdir():
            file.unlink()
        meeting.rmdir()
    return [[reading for own in by_rank for reading in own[index]] for index in range(len(trials))]


def _work(
    store: str, place: int, ranks: tuple[str, ...], trials: tuple[Trial, ...], scratch: str
) -> list[list[AnyReading]]:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=place,
        world_size=len(ranks),
        timeout=timedelta(seconds=60),
    )
    try:
        mine = ranks[place]
        return [
            call(trial, mine, scratch) if any(rank.subject == mine for rank in trial.ranks) else [] for trial in trials
        ]
    finally:
        dist.destroy_process_group()
