"""A rank's shard of a checkpoint: made, saved, read back from its neighbour, compared, and removed."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from ..cluster import RankContext
from ..evidence.records import Reason
from .fio_job import reason_of
from .page_cache import drop_cached, read_from
from .timed_writer import TimedWriter

State = dict[str, torch.Tensor]
_PREFIX = "hwlottery-checkpoint-"
_ABANDONED_S = 6 * 3600


class SavingError(Exception):
    """The filesystem refused, on some rank; raised alike on all ranks. `reason` is for a Missing."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """One save, seconds of the slowest rank; the ranks' hash mismatches together."""

    save_s: float
    stage_s: float
    write_s: float
    sync_s: float
    commit_s: float
    read_back_s: float
    hash_mismatches: int
    read_from: str


@contextlib.contextmanager
def scratch_folder(context: RankContext, directory: str, bytes_per_rank: int) -> Iterator[Path]:
    """A new folder, the same on all ranks, removed at the end whatever happened. Raises SavingError on all ranks."""
    said: list[Any] = [None]
    if context.rank == 0:
        said = [_make_folder(directory, 2 * bytes_per_rank * context.world_size)]
    dist.broadcast_object_list(said, src=0, device=context.device)
    if isinstance(said[0], SavingError):
        raise said[0]
    folder = Path(said[0])
    try:
        yield folder
    finally:
        # A rank that fails alone must not wait for the others here: each removes, and the first to come does it.
        shutil.rmtree(folder, ignore_errors=True)


def _make_folder(directory: str, wanted: int) -> str | SavingError:
    try:
        free = shutil.disk_usage(directory).free
        if free < wanted:
            need = f"no space left: {wanted >> 20} MiB wanted, {free >> 20} MiB free in {directory}"
            return SavingError(need, "raised")
        _remove_abandoned(Path(directory))
        return tempfile.mkdtemp(prefix=_PREFIX, dir=directory)
    except OSError as error:
        return _refused(error, directory)


def _remove_abandoned(directory: Path) -> None:
    """What a rank left behind that was killed at its deadline: it could not clean up."""
    for old in directory.glob(f"{_PREFIX}*"):
        if time.time() - old.lstat().st_mtime > _ABANDONED_S:
            shutil.rmtree(old, ignore_errors=True)


def _refused(error: OSError, directory: str | Path) -> SavingError:
    return SavingError(f"{error.strerror or type(error).__name__}: {directory}", reason_of(error.errno or 0))


def timed_saves(context: RankContext, folder: Path, params: dict[str, Any]) -> list[Save]:
    """Save and read back so many times, each into a folder of its own that is removed before the next.

    Raises SavingError on all ranks where the filesystem refuses on one.
    """
    state = _random_state(context, params["bytes_per_rank"], params["tensor_bytes"], params["seed"])
    hashes = _everyones(hashes_of(state))
    try:
        return [_one_save(context, folder / f"save{index}", state, hashes) for index in range(params["saves"])]
    except CheckpointException as error:
        for failure in error.failures.values():
            if isinstance(failure[0], OSError):
                raise _refused(failure[0], folder.parent) from error
        raise


def _one_save(context: RankContext, folder: Path, state: State, hashes: dict[str, str]) -> Save:
    writer = TimedWriter(folder)
    dist.barrier()
    start = time.perf_counter()
    save(state, storage_writer=writer)
    dist.barrier()
    save_s = time.perf_counter() - start
    drop_cached(folder)
    source = read_from(folder)
    dist.barrier()
    loaded = _empty_like_neighbours(context, state)
    start = time.perf_counter()
    load(loaded, storage_reader=FileSystemReader(folder))
    if context.on_cuda:
        torch.cuda.synchronize(context.device)
    read_back_s = time.perf_counter() - start
    wrong = sum(hashes[name] != digest for name, digest in hashes_of(loaded).items())
    times = writer.times
    own = [save_s, times.stage_s, times.write_s, times.sync_s, times.commit_s, read_back_s]
    slowest = _over_ranks(context, own, dist.ReduceOp.MAX)
    mismatches = _over_ranks(context, [float(wrong)], dist.ReduceOp.SUM)
    if context.rank == 0:
        shutil.rmtree(folder)
    dist.barrier()
    names = ("save_s", "stage_s", "write_s", "sync_s", "commit_s", "read_back_s")
    return Save(**dict(zip(names, slowest, strict=True)), hash_mismatches=int(mismatches[0]), read_from=source)


def _random_state(context: RankContext, size: int, tensor_size: int, seed: int) -> State:
    """This rank's tensors of incompressible random bits: constants would be compressed or stored once."""
    generator = torch.Generator(device=context.device).manual_seed(seed * 1_000_003 + context.rank)
    return {
        _name(context.rank, index): torch.empty(tensor_size // 8, dtype=torch.int64, device=context.device).random_(
            -(2**63), None, generator=generator
        )
        for index in range(size // tensor_size)
    }


def _empty_like_neighbours(context: RankContext, state: State) -> State:
    neighbour = (context.rank + 1) % context.world_size
    return {_name(neighbour, index): torch.zeros_like(tensor) for index, tensor in enumerate(state.values())}


def _name(rank: int, index: int) -> str:
    return f"rank{rank}.tensor{index}"


def hashes_of(state: State) -> dict[str, str]:
    """SHA-256 of each tensor's bytes."""
    return {name: hashlib.sha256(tensor.cpu().numpy().data).hexdigest() for name, tensor in state.items()}


def _everyones(hashes: dict[str, str]) -> dict[str, str]:
    gathered: list[dict[str, str]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(gathered, hashes)
    return {name: digest for each in gathered for name, digest in each.items()}


def _over_ranks(context: RankContext, values: list[float], how: Any) -> list[float]:
    tensor = torch.tensor(values, dtype=torch.float64, device=context.device)
    dist.all_reduce(tensor, op=how)
    result: list[float] = tensor.tolist()
    return result
