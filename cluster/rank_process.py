"""Inside a rank's child process: made ready once, then one trial after another.

The process ends with its parent whatever it is doing (it may hold the GIL or hang in a collective): the kernel sees
to that. What it prints goes to a file, never to an inherited pipe that somebody would have to read.
"""

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..evidence import AnyReading
from . import stacks
from .context import RankContext
from .network import host_and_port
from .orders import Order, RankSpec, Warmth

_PR_SET_PDEATHSIG = 1
# A collective's own timeout is longer than any deadline, so that the deadline is what ends it.
_BEYOND_DEADLINE_S = 120.0
_PROBES = "hwlottery.probes"

_spec: RankSpec | None = None
_cpus: tuple[int, ...] = ()
_gloo_interface: str | None = None  # what the user has set
_meeting: Any = None  # the store that this process has opened, for its whole life


def warm(spec: RankSpec, log: str) -> Warmth:
    """Make this process the rank: environment, cores, torch, device. Raises what importing torch raises."""
    global _spec, _cpus, _gloo_interface  # noqa: PLW0603  # a process is one rank for its whole life
    die_with_parent()
    leave_stopping_to_the_node()
    print_to(Path(log))
    stacks.answer_in_log()
    os.environ.update(spec.env)
    _gloo_interface = os.environ.get("GLOO_SOCKET_IFNAME")
    if spec.interface != "lo":
        os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={spec.interface}")  # NCCL takes a bare name for a prefix
    _cpus = _take_cores(spec)
    threads = len(_cpus) if spec.device == "cpu" else max(1, len(_cpus) // 8)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)
    if spec.device == "cuda":
        torch.cuda.set_device(spec.index)
        torch.empty(1, device="cuda")  # makes the context now, not inside a measurement
        _cpus = _bind_near_gpu(spec.index)
    _spec = spec
    return Warmth(pid=os.getpid(), threads=threads, cpus=_cpus)


def perform(order: Order) -> list[AnyReading]:
    """Do this rank's part of a trial. Raises whatever its function raises."""
    assert _spec is not None
    print_to(Path(order.log))
    part = order.part
    import torch

    context = RankContext(
        subject=_spec.subject,
        node=_spec.node,
        device_name=f"cuda:{_spec.index}" if _spec.device == "cuda" else "cpu",
        rank=order.rank,
        local_rank=order.local_rank,
        subjects=part.ranks,
        nodes=part.nodes,
        threads=torch.get_num_threads(),
        scratch=Path(order.scratch),
        mark=order.mark,
        seed=part.seed,
    )
    function = rank_function(part.function)
    with _collective_noted(), _process_group(order, _spec), _printing_flushed():
        return function(context, dict(part.params))


@contextlib.contextmanager
def _collective_noted() -> Iterator[None]:
    """Note on an exception whether a collective raised it."""
    try:
        yield
    except Exception as error:
        if stacks.in_collective(error):
            error.add_note(stacks.IN_COLLECTIVE)
        raise


def open_meeting(address: str) -> int:
    """Open a store on one of this machine's addresses, where ranks of several nodes meet; returns its port.

    Opened once: each trial has its own prefix in it.
    """
    global _meeting  # noqa: PLW0603  # a process is one rank for its whole life
    if _meeting is None:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]  # there, but not in __all__

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, 0), family=family, backlog=4096)
        port = listening.getsockname()[1]
        _meeting = TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach())
    return int(_meeting.port)


def rank_function(name: str) -> Callable[[RankContext, dict[str, Any]], list[AnyReading]]:
    """The rank function "module:name", of a module below hwlottery.probes, or anywhere where it has a dotted path.

    Raises ValueError for what is no such name, ImportError or AttributeError where nothing stands there.
    """
    module, _, attribute = name.partition(":")
    if not module.replace(".", "_").isidentifier() or not attribute.isidentifier():
        raise ValueError(f"not a rank function: {name!r}")
    path = module if "." in module else f"{_PROBES}.{module}"
    function: Callable[[RankContext, dict[str, Any]], list[AnyReading]] = getattr(
        importlib.import_module(path), attribute
    )
    return function


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends (prctl PR_SET_PDEATHSIG)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended just before
        os._exit(1)


def leave_stopping_to_the_node() -> None:
    """Ignore what asks a whole job to stop: a rank that ended so would be told as one that died. Its node ends it."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)


def print_to(file: Path) -> None:
    """Send this process's stdout and stderr, of Python and of C libraries, to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


@contextlib.contextmanager
def _printing_flushed() -> Iterator[None]:
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@contextlib.contextmanager
def _process_group(order: Order, spec: RankSpec) -> Iterator[None]:
    """Join the trial's process group and leave it. A rank that raised in it is replaced, so it need not leave."""
    if not order.part.collective:
        yield
        return
    import torch
    import torch.distributed as dist

    # All ranks of a node-local gang meet on the loopback: no hostname has to resolve, nothing listens outside.
    alone = order.part.meeting is None
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if alone else _gloo_interface or spec.interface
    world = len(order.part.ranks)
    patience = timedelta(seconds=order.part.deadline_s + _BEYOND_DEADLINE_S)
    dist.init_process_group(
        "nccl" if spec.device == "cuda" else "gloo",
        store=_store(order, world, patience),
        rank=order.rank,
        world_size=world,
        timeout=patience,
        device_id=torch.device("cuda", spec.index) if spec.device == "cuda" else None,
    )
    yield
    dist.destroy_process_group()


def _store(order: Order, world: int, patience: timedelta) -> Any:
    """Where the ranks of a trial meet: a file of the node, or the store that the first rank has opened."""
    from torch.distributed import FileStore, PrefixStore, TCPStore  # type: ignore[attr-defined]  # there, not in __all__

    if order.part.meeting is None:
        assert order.store is not None
        return FileStore(order.store, world)
    store = _meeting
    if order.rank != 0:
        host, port = host_and_port(order.part.meeting)
        store = TCPStore(host, port, is_master=False, timeout=patience)
    store.set_timeout(patience)
    return PrefixStore(order.part.trial, store)


def _take_cores(spec: RankSpec) -> tuple[int, ...]:
    """A CPU rank takes its share of the cores it may use, so that ranks do not push each other about."""
    allowed = sorted(os.sched_getaffinity(0))
    if spec.device == "cuda" or len(allowed) < spec.slots:
        return tuple(allowed)
    share = len(allowed) // spec.slots
    mine = allowed[spec.index * share : (spec.index + 1) * share]
    os.sched_setaffinity(0, mine)
    return tuple(mine)


def _bind_near_gpu(index: int) -> tuple[int, ...]:
    """Bind to the CPUs that NVML names as nearest to the GPU; where it cannot say, stay as started."""
    import pynvml
    import torch

    with contextlib.suppress(pynvml.NVMLError, AttributeError):
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(index).uuid}"
        pynvml.nvmlDeviceSetCpuAffinity(pynvml.nvmlDeviceGetHandleByUUID(uuid))
    return tuple(sorted(os.sched_getaffinity(0)))
