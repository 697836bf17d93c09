"""Settings and limits of the host that training feels: governor, NUMA balancing, huge pages, locked memory, clocks."""

import ctypes
import os
import re
import resource
from pathlib import Path

from .files import ROOT, Found, Unreadable, content_or_empty, entries, number, text
from .pci import acs_redirecting

# What GPUDirect, InfiniBand and GPU management need in the kernel.
MODULES = ("nvidia", "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "gdrdrv", "mlx5_core", "mlx5_ib", "ib_umad", "efa")
_LIMITS = {
    "limit.memlock": resource.RLIMIT_MEMLOCK,
    "limit.nofile": resource.RLIMIT_NOFILE,
    "limit.nproc": resource.RLIMIT_NPROC,
    "limit.stack": resource.RLIMIT_STACK,
    "limit.core": resource.RLIMIT_CORE,
}
_TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
_TIMEX_BYTES = 512  # more than struct timex has on any platform (208 on 64 bit)


def settings_facts(root: Path = ROOT) -> dict[str, Found]:
    """All settings that are looked at."""
    return {
        "cpu.governor": governor(root),
        "cpu.smt": text(root / "sys/devices/system/cpu/smt/control"),
        "numa.balancing": _switch(text(root / "proc/sys/kernel/numa_balancing")),
        "memory.transparent_huge_pages": parse_choice(text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "memory.swappiness": number(root / "proc/sys/vm/swappiness"),
        "memory.overcommit": number(root / "proc/sys/vm/overcommit_memory"),
        "clock.source": text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "clock.synchronised": clock_synchronised(),
        "kernel.command_line": text(root / "proc/cmdline"),
        **iommu(root),
        "pci.acs_redirecting": acs_redirecting(root),
        **modules(root),
        **limits(),
    }


def governor(root: Path = ROOT) -> str | Unreadable:
    """The frequency governor of all CPUs; several names where they differ."""
    files = [folder / "cpufreq/scaling_governor" for folder in entries(root / "sys/devices/system/cpu")]
    seen = sorted({content_or_empty(file) for file in files if file.exists()} - {""})
    return ", ".join(seen) or Unreadable("this kernel shows no cpufreq: a virtual machine, or firmware sets the clock")


def parse_choice(choices: str | Unreadable) -> str | Unreadable:
    """The chosen word of "always [madvise] never"."""
    if isinstance(choices, Unreadable):
        return choices
    found = re.search(r"\[(\w+)\]", choices)
    return found[1] if found else Unreadable(f"no choice is marked: {choices[:60]}")


def _switch(value: str | Unreadable) -> bool | Unreadable:
    return value if isinstance(value, Unreadable) else value != "0"


def clock_synchronised() -> bool | Unreadable:
    """Whether the kernel says that a time service keeps its clock (adjtimex in reading mode; needs no permission)."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError) as error:
        return Unreadable(f"adjtimex: {error}")
    return Unreadable(f"adjtimex: {os.strerror(ctypes.get_errno())}") if state < 0 else state != _TIME_ERROR


def iommu(root: Path = ROOT) -> dict[str, Found]:
    """Whether an IOMMU stands between devices, and in which modes: `DMA` translates, `identity` passes through."""
    kinds = sorted({content_or_empty(group / "type") for group in entries(root / "sys/kernel/iommu_groups")} - {""})
    if not entries(root / "sys/devices"):
        return {"iommu.active": Unreadable(f"not shown: {root}sys")}
    found: dict[str, Found] = {"iommu.active": bool(entries(root / "sys/class/iommu"))}
    return found | ({"iommu.modes": ", ".join(kinds)} if kinds else {})


def modules(root: Path = ROOT) -> dict[str, Found]:
    """Which of the kernel modules are loaded or built in, as module.NAME. A missing folder says nothing."""
    folder = root / "sys/module"
    if not entries(folder):
        return {"module.nvidia": Unreadable(f"not shown: {folder}")}
    return {f"module.{name}": (folder / name).is_dir() for name in MODULES}


def limits() -> dict[str, Found]:
    """Soft limits of this process; "unlimited" where there is none."""
    soft = {key: resource.getrlimit(which)[0] for key, which in _LIMITS.items()}
    return {key: "unlimited" if value == resource.RLIM_INFINITY else value for key, value in soft.items()}
