"""Processors, memory and NUMA nodes of this host, and how much of them a cgroup lets us use."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from .files import ROOT, Found, Unreadable, content_or_empty, entries, text

# Instructions that multiply bf16 in hardware; without them a CPU takes minutes for what fp32 does in seconds.
_BF16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16", "asimdbf16")
_NO_LIMIT = 1 << 60  # cgroup 1 says "no limit" as a page-aligned number near 2**63


def host_facts(root: Path = ROOT) -> dict[str, Found]:
    """CPU, memory and operating system. Memory in bytes."""
    return {
        **parse_cpuinfo(content_or_empty(root / "proc/cpuinfo")),
        **affinity(),
        "cpu.cgroup_limit": cpu_limit(root),
        **memory_facts(content_or_empty(root / "proc/meminfo")),
        "memory.cgroup_limit": memory_limit(root),
        "os.name": parse_os_release(content_or_empty(root / "etc/os-release")),
        "os.kernel": text(root / "proc/sys/kernel/osrelease"),
        "os.hostname": text(root / "proc/sys/kernel/hostname"),
        "os.uptime": _uptime(content_or_empty(root / "proc/uptime")),
        "numa.nodes": len(numa_nodes(root)) or Unreadable(f"no NUMA nodes shown: {root}sys/devices/system/node"),
    }


def parse_cpuinfo(cpuinfo: str) -> dict[str, Found]:
    """Model, sockets, physical cores and hardware threads from /proc/cpuinfo.

    ARM lists no sockets or cores there; what is not listed is Unreadable, never counted as one.
    """
    blocks = [_fields(block) for block in re.split(r"\n\s*\n", cpuinfo) if "processor" in block]
    why = Unreadable("/proc/cpuinfo does not list it")
    first = blocks[0] if blocks else {}
    sockets = {block["physical id"] for block in blocks if "physical id" in block}
    cores = {(block["physical id"], block["core id"]) for block in blocks if {"physical id", "core id"} <= block.keys()}
    flags = set((first.get("flags") or first.get("Features") or "").split())
    return {
        "cpu.model": first.get("model name") or why,
        "cpu.sockets": len(sockets) or why,
        "cpu.cores": len(cores) or why,
        "cpu.threads": len(blocks) or why,
        "cpu.microcode": first.get("microcode") or why,
        "cpu.bf16": bool(flags & set(_BF16_FLAGS)) if flags else why,
    }


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def affinity() -> dict[str, Found]:
    """The CPUs this process may run on."""
    allowed = os.sched_getaffinity(0)
    return {"cpu.allowed": len(allowed), "cpu.allowed_list": as_ranges(allowed)}


def as_ranges(numbers: Iterable[int]) -> str:
    """0-3,8 of {0, 1, 2, 3, 8}, as the kernel writes CPU lists."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def from_ranges(listed: str) -> tuple[int, ...]:
    """The numbers of a CPU list such as 0-3,8. Raises ValueError for text that is none."""
    parts = [part.partition("-") for part in listed.split(",") if part]
    return tuple(number for low, _, high in parts for number in range(int(low), int(high or low) + 1))


def memory_facts(meminfo: str) -> dict[str, Found]:
    """Total and available memory, swap and huge pages."""
    numbers = parse_meminfo(meminfo)
    why = Unreadable("/proc/meminfo does not list it")
    return {
        "memory.total": numbers.get("MemTotal", why),
        "memory.available": numbers.get("MemAvailable", why),
        "memory.swap": numbers.get("SwapTotal", why),
        "memory.huge_pages": numbers.get("HugePages_Total", why),
    }


def parse_meminfo(meminfo: str) -> dict[str, int]:
    """Each line of /proc/meminfo in bytes ("MemTotal:  24684096 kB"), counts as they are."""
    found = re.findall(r"^(?:Node \d+ )?(\w[\w()]*):\s+(\d+)( kB)?$", meminfo, re.MULTILINE)
    return {name: int(value) * (1024 if unit else 1) for name, value, unit in found}


def parse_os_release(os_release: str) -> str | Unreadable:
    """The PRETTY_NAME of /etc/os-release."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', os_release, re.MULTILINE)
    return found[1] if found else Unreadable("/etc/os-release has no PRETTY_NAME")


def _uptime(uptime: str) -> float | Unreadable:
    return float(uptime.split(maxsplit=1)[0]) if uptime else Unreadable("/proc/uptime is not readable")


def numa_nodes(root: Path = ROOT) -> dict[str, dict[str, Found]]:
    """Each NUMA node's CPUs and memory, by name (numa0)."""
    folders = entries(root / "sys/devices/system/node")
    return {
        f"numa{folder.name[4:]}": {
            "numa.cpus": text(folder / "cpulist"),
            "numa.memory": parse_meminfo(content_or_empty(folder / "meminfo")).get(
                "MemTotal", Unreadable(f"not listed: {folder / 'meminfo'}")
            ),
            "numa.distances": text(folder / "distance"),
        }
        for folder in folders
        if re.fullmatch(r"node\d+", folder.name)
    }


def cpu_limit(root: Path = ROOT) -> float | Unreadable:
    """CPU cores that the cgroup allows: the least of all its ancestors'."""
    limits = [limit for folder in _cgroups(root, "cpu") if (limit := _cpu_quota(folder)) is not None]
    return min(limits) if limits else Unreadable("no limit is set, or it is not shown")


def _cpu_quota(folder: Path) -> float | None:
    quota, _, period = content_or_empty(folder / "cpu.max").partition(" ")
    if not quota:
        quota = content_or_empty(folder / "cpu.cfs_quota_us")
        period = content_or_empty(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def memory_limit(root: Path = ROOT) -> int | Unreadable:
    """Bytes that the cgroup allows: the least of all its ancestors'."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    read = [content_or_empty(folder / name) for folder in _cgroups(root, "memory") for name in names]
    limits = [int(value) for value in read if value.isdecimal() and int(value) < _NO_LIMIT]
    return min(limits) if limits else Unreadable("no limit is set, or it is not shown")


def _cgroups(root: Path, controller: str) -> list[Path]:
    """The folders of our cgroup and its ancestors for a controller, in cgroup 2 or 1. Inside a container the path in
    /proc may lie outside of what is mounted: the mount's own root is always among them."""
    mount = root / "sys/fs/cgroup"
    path = _cgroup_path(content_or_empty(root / "proc/self/cgroup"), controller)
    base = mount / controller if (mount / controller).is_dir() else mount
    if not (mount / controller).is_dir() and (mount / "unified").is_dir():
        base = mount / "unified"
    below = [base.joinpath(*path[:depth]) for depth in range(len(path), 0, -1)]
    return [*below, base]


def _cgroup_path(listing: str, controller: str) -> tuple[str, ...]:
    """Our path below the controller's mount: of cgroup 1 where it is listed so, else of cgroup 2 ("0::/a/b")."""
    rows = [line.split(":", 2) for line in listing.splitlines() if line.count(":") >= 2]
    paths = [row[2] for row in rows if controller in row[1].split(",")] or [row[2] for row in rows if not row[1]]
    return tuple(part for part in paths[0].split("/") if part not in ("", "..")) if paths else ()
