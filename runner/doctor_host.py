"""doctor's look at the host: scratch, shared memory, limits, clock, network, CPUs, who else is here, what is closed."""

import contextlib
import mmap
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..sensors.accelerators import foreign_processes
from ..sensors.access import Access
from ..sensors.files import Found, Unreadable
from ..sensors.nvml import Nvml
from .advice import Advice, note, ok, problem

_LEAST_FREE = 2 << 30  # the smoke profile writes less on a node without accelerators
_LEAST_SHM = 1 << 30  # NCCL and data loaders share memory there; Docker's default is 64 MiB
_SHM = "/dev/shm"  # noqa: S108  # named, not written
_LEAST_FILES = 1024
_SLOW_FSYNC_S = 1.0
_FOREIGN_SHARE = 0.1  # of the CPUs: more bends figures


def scratch_checks(scratch: Path) -> Iterator[Advice]:
    """The scratch directory can be written, synced and has room."""
    remedy = "give a directory that can be written with --scratch"
    try:
        free = shutil.disk_usage(scratch).free
        with tempfile.NamedTemporaryFile(prefix="hwlottery-doctor-", dir=scratch) as file:
            took = _write_synced(file.fileno())
            direct = _opens_directly(file.name)
    except OSError as error:
        yield problem("scratch", f"{scratch}: {error.strerror}", remedy)
        return
    yield space(scratch, free)
    slow = took > _SLOW_FSYNC_S
    timing = f"1 MiB written and synced in {took * 1000:.0f} ms"
    yield note("fsync", timing, "a checkpoint will wait for this filesystem") if slow else ok("fsync", timing)
    missing = f"{scratch} refuses O_DIRECT: direct rates are not measured there"
    yield ok("direct I/O", "supported") if direct else note("direct I/O", missing, "use a filesystem on a device")


def space(scratch: Path, free: int) -> Advice:
    """Enough room for the probes."""
    detail = f"{free / 1e9:.1f} GB free on {scratch}"
    if free < _LEAST_FREE:
        return problem("scratch", detail, f"free {_LEAST_FREE / 1e9:.1f} GB there, or give another --scratch")
    return ok("scratch", detail)


def _write_synced(descriptor: int) -> float:
    begun = time.perf_counter()
    os.write(descriptor, os.urandom(1 << 20))
    os.fsync(descriptor)
    return time.perf_counter() - begun


def _opens_directly(name: str) -> bool:
    """Whether a page can be read past the page cache."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False
    with contextlib.closing(mmap.mmap(-1, 4096)) as page:  # O_DIRECT wants a buffer that begins on a page
        try:
            return os.preadv(descriptor, [page], 0) == 4096
        except OSError:
            return False
        finally:
            os.close(descriptor)


def shm_size(size: object) -> Advice:
    """Shared memory is large enough."""
    if not isinstance(size, int):
        return problem("shared memory", "not there or not readable", f"mount a tmpfs on {_SHM}")
    detail = f"{size / 1e9:.2f} GB on {_SHM}"
    if size < _LEAST_SHM:
        return problem(
            "shared memory", f"{detail}: NCCL and data loaders fail there", "docker run --shm-size=16g, or remount"
        )
    return ok("shared memory", detail)


def limit_checks(limits: Mapping[str, Found], rdma: bool) -> Iterator[Advice]:
    """Locked memory, which RDMA needs, and open files."""
    memlock, files = limits["limit.memlock"], limits["limit.nofile"]
    if rdma and memlock != "unlimited":
        yield problem("memlock", f"{_size(memlock)}: RDMA cannot register its buffers", "ulimit -l unlimited")
    else:
        yield ok("memlock", _size(memlock))
    if isinstance(files, int) and files < _LEAST_FILES:
        yield problem("open files", f"{files} at most", f"ulimit -n {_LEAST_FILES * 64}")
    else:
        yield ok("open files", str(files))


def _size(limit: Found) -> str:
    """A limit in bytes as people say it; 'unlimited', or why it is not known, as it is."""
    return f"{limit / 2**20:,.0f} MiB" if isinstance(limit, int) else str(limit)


def clock(synchronised: bool | Unreadable) -> Advice:
    """Whether a time service keeps the clock: the times of several nodes are compared."""
    if isinstance(synchronised, Unreadable):
        return note("clock", f"not known whether it is kept: {synchronised.why}")
    if synchronised:
        return ok("clock", "kept by a time service")
    return note("clock", "no time service keeps it (so the kernel says)", "run chrony or systemd-timesyncd")


def loopback() -> Advice:
    """A port can be listened on and reached."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(5)
            with socket.create_connection(server.getsockname()[:2], timeout=5):
                server.accept()[0].close()
    except OSError as error:
        return problem(
            "loopback", f"no connection to 127.0.0.1: {error}", "bring the interface lo up; look at firewalls"
        )
    return ok("loopback", "listens and connects")


def hostname(name: str) -> Advice:
    """The hostname has an address: gloo looks for its interface by it."""
    remedy = f"add '127.0.1.1 {name}' to /etc/hosts, or set GLOO_SOCKET_IFNAME"
    try:
        address = socket.gethostbyname(name)
    except OSError as error:
        return note("hostname", f"{name} does not resolve ({error}): gloo may choose the wrong interface", remedy)
    return ok("hostname", f"{name} is {address}")


def cpus(allowed: int, limit: float | Unreadable) -> Advice:
    """Whether a cgroup allows as much CPU time as there are CPUs."""
    if isinstance(limit, Unreadable) or limit >= allowed:
        return ok("CPUs", f"{allowed}, without a tighter limit")
    detail = f"{allowed} CPUs are shown, a cgroup allows {limit:.1f}: threads will be paused in mid-work"
    return note("CPUs", detail, "raise the container's CPU limit, or lower OMP_NUM_THREADS")


def foreign_cpu(found: Mapping[str, Found], count: int) -> Advice:
    """CPU use of processes that are not ours."""
    busy = found["foreign.busy_cores"]
    assert isinstance(busy, float), "the host's own counters are always readable"
    named = found.get("foreign.busiest", "by processes that are not visible from here")
    if busy > _FOREIGN_SHARE * count:
        return note("other load", f"{busy:.1f} of {count} CPUs are busy: {named}", "measure on an idle machine")
    return ok("other load", f"{busy:.1f} of {count} CPUs are busy")


def foreign_gpus(nvml: Nvml | Unreadable | None, own: Collection[int]) -> Iterator[Advice]:
    """GPUs that others hold."""
    if not isinstance(nvml, Nvml):
        return
    for index in range(nvml.count):
        found = foreign_processes(nvml.gpu(index, "nvmlDeviceGetComputeRunningProcesses"), own)
        others = found["accelerator.foreign_processes"]
        if isinstance(others, int) and others:
            yield problem(f"gpu{index}", f"{others} other processes hold it", "end them: nvidia-smi shows their ids")


def tier(seen: Access) -> Advice:
    """How far a tenant sees from here."""
    closed = [
        word
        for word, open_here in (
            ("kernel log", seen.kernel_log),
            ("PCI tree", seen.pci_tree),
            ("mounting", seen.may_mount),
        )
        if not open_here
    ]
    return ok("access", f"{seen.tier}" + (f"; closed: {', '.join(closed)}" if closed else ""))
