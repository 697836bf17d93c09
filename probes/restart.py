"""A training's own checkpoint: saved by one rank of each node, loaded back by all."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ..cluster import RankContext
from .replicas import parameter_hash
from .timed_writer import PartTimes, TimedFile, sync_directory


def save_and_restore(
    context: RankContext, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[float | str, int]:
    """Seconds of the slowest save with its fsync, or why it failed; and how many ranks then held other parameters.

    The parameters are wiped before they are loaded: a load that does nothing is found out.
    """
    before = parameter_hash(model.parameters())
    dist.barrier()
    start = time.perf_counter()
    said: str | Path | None = _save(context, model, optimizer) if context.leads_node else None
    save_s = time.perf_counter() - start
    of_all: list[tuple[str, float, str | Path | None]] = [("", 0.0, None)] * context.world_size
    dist.all_gather_object(of_all, (context.node, save_s, said))
    try:
        failed = [f"{node}: {what}" for node, _, what in of_all if isinstance(what, str)]
        if failed:
            return failed[0], 0
        file = next(what for node, _, what in of_all if node == context.node and isinstance(what, Path))
        _restore(context, file, model, optimizer)
        lost = (parameter_hash(model.parameters()) != before).to(torch.int64)
        dist.all_reduce(lost)
        return max(seconds for _, seconds, _ in of_all), int(lost)
    finally:
        if isinstance(said, Path):
            said.unlink(missing_ok=True)


def _save(context: RankContext, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Path | str:
    """The file it wrote, or in one line why it could not."""
    path = None
    times = PartTimes()
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{context.mark}burn-in-", suffix=".pt", dir=context.scratch)
        path = Path(name)
        with os.fdopen(descriptor, "wb") as opened:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, TimedFile(opened, times))
            opened.flush()
            os.fsync(opened.fileno())
        sync_directory(path.parent)
    except (OSError, RuntimeError) as error:
        if path is not None:
            path.unlink(missing_ok=True)
        why = times.refused or error
        return f"{(isinstance(why, OSError) and why.strerror) or why}: {context.scratch}"[:300]
    return path


def _restore(context: RankContext, file: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    loaded: dict[str, Any] = torch.load(file, map_location=context.device, weights_only=True)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
