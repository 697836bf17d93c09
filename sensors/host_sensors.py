"""What is sampled of the host beside running work: load, CPU time stolen or used by others, clocks, temperature."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from msgspec import Struct

from .files import ROOT, content_or_empty, entries
from .windows import Sample

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_SHORTEST_S = 0.5  # /proc counts CPU time in ticks of 10 ms: shares over less are noise
_LEAST_LOAD = 0.5  # cores
_MOST_CLOCKS = 8  # each costs an interrupt of the CPU it asks
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower")


class CpuTimes(Struct, frozen=True, kw_only=True):
    """Seconds of CPU time since boot, over all CPUs, and when they were read (monotonic)."""

    at: float
    busy: float
    stolen: float
    total: float
    own: float


def parse_stat(stat: str) -> tuple[float, float, float] | None:
    """Busy, stolen and all CPU seconds in the first line of /proc/stat, or None.

    "cpu  user nice system idle iowait irq softirq steal guest guest_nice" (proc(5)); user contains guest.
    """
    words = stat.split("\n", 1)[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    user, nice, system, idle, waiting, irq, softirq, stolen = (int(word) * _TICK_S for word in words[1:9])
    busy = user + nice + system + irq + softirq
    return busy, stolen, busy + idle + waiting + stolen


def stolen_share(before: CpuTimes, after: CpuTimes) -> float | None:
    """Share of CPU time that the hypervisor took. None over too short a time."""
    total = after.total - before.total
    return (after.stolen - before.stolen) / total if after.at - before.at >= _SHORTEST_S and total > 0 else None


def foreign_cores(before: CpuTimes, after: CpuTimes) -> float | None:
    """CPU cores busy with what is not ours. None over too short a time."""
    seconds = after.at - before.at
    if seconds < _SHORTEST_S:
        return None
    return max(0.0, (after.busy - before.busy) - (after.own - before.own)) / seconds


class OwnCpu:
    """CPU seconds of our processes, counted on as they come and go.

    A process that ends takes its count out of /proc: what it used up to the reading before is kept. Tools that a rank
    starts and waits for (fio) are in the rank's own count of its children.
    """

    def __init__(self, pids: Callable[[], Collection[int]], root: Path = ROOT) -> None:
        self._pids = pids
        self._root = root
        self._last: dict[tuple[int, int], float] = {}
        self._read_at: float | None = None
        self.seconds = 0.0

    def update(self) -> float:
        """Read our processes again. The seconds used since the first reading."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        rows = [row for pid in self._pids() if (row := parse_process(pid, self._stat(pid)))]
        parents = {row.parent for row in rows}
        for row in rows:
            used = row.own + (0.0 if row.pid in parents else row.children)
            before = self._last.get((row.pid, row.start), None if self._is_old(row.start) else 0.0)
            self.seconds += max(0.0, used - before) if before is not None else 0.0
            self._last[row.pid, row.start] = used
        self._last = {key: self._last[key] for key in {(row.pid, row.start) for row in rows}}
        self._read_at = now
        return self.seconds

    def _stat(self, pid: int) -> str:
        return content_or_empty(self._root / f"proc/{pid}/stat")

    def _is_old(self, start_ticks: int) -> bool:
        """Whether a process began before the last reading: its past is then not counted."""
        return self._read_at is None or start_ticks * _TICK_S < self._read_at - 2 * _TICK_S


class ProcessRow(Struct, frozen=True, kw_only=True):
    """What /proc/PID/stat tells: CPU seconds of a process and of its children that have ended."""

    pid: int
    parent: int
    start: int
    own: float
    children: float


def parse_process(pid: int, stat: str) -> ProcessRow | None:
    """A process's row. Its name, in parentheses, may hold blanks and parentheses: fields are counted after the last."""
    fields = stat.rpartition(")")[2].split()
    if len(fields) < 20 or not all(fields[place].isdecimal() for place in (1, 11, 12, 13, 14, 19)):
        return None
    own, children = (int(fields[11]) + int(fields[12])) * _TICK_S, (int(fields[13]) + int(fields[14])) * _TICK_S
    return ProcessRow(pid=pid, parent=int(fields[1]), start=int(fields[19]), own=own, children=children)


class HostSensors:
    """The sensors of one node. Files that are not there are found out once and not asked again."""

    def __init__(self, node: str, own_pids: Callable[[], Collection[int]], root: Path = ROOT) -> None:
        self._node = node
        self._root = root
        self._own = OwnCpu(own_pids, root)
        self._clocks = _some(list(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")))
        self._temperatures = list(_cpu_temperatures(root))
        self._before: CpuTimes | None = None  # long enough ago for a share
        self._last: CpuTimes | None = None

    def cpu_times(self) -> CpuTimes | None:
        """The CPU times now, ours among them."""
        read = parse_stat(content_or_empty(self._root / "proc/stat"))
        if read is None:
            return None
        busy, stolen, total = read
        return CpuTimes(at=time.monotonic(), busy=busy, stolen=stolen, total=total, own=self._own.update())

    def sample(self, now: CpuTimes | None) -> Iterator[Sample]:
        """Each sensor that answers. Clocks in MHz, temperatures in C, memory in bytes."""
        load = content_or_empty(self._root / "proc/loadavg").split()
        if load:
            yield Sample(self._node, "load", float(load[0]))
        available = _available(content_or_empty(self._root / "proc/meminfo"))
        if available is not None:
            yield Sample(self._node, "memory_available", available)
        idle = self._was_idle(now)
        if clocks := _numbers(self._clocks):  # the busiest CPU's: the others may sleep
            yield Sample(self._node, "clock", max(clocks) / 1000, idle=idle)
        if temperatures := _numbers(self._temperatures):
            yield Sample(self._node, "temperature", max(temperatures) / 1000)
        yield from self._shares(now)

    def _was_idle(self, now: CpuTimes | None) -> bool:
        """Whether less than half a CPU was busy since the last sample, or it is not known."""
        before, self._last = self._last, now
        if now is None or before is None or now.at <= before.at:
            return True
        return (now.busy - before.busy) / (now.at - before.at) < _LEAST_LOAD

    def _shares(self, now: CpuTimes | None) -> Iterator[Sample]:
        """Shares since the last sample that was long enough ago."""
        if now is None or (self._before and now.at - self._before.at < _SHORTEST_S):
            return
        before, self._before = self._before, now
        if before:
            for quantity, share in (("cpu_steal", stolen_share), ("foreign_cpu", foreign_cores)):
                value = share(before, now)
                if value is not None:
                    yield Sample(self._node, quantity, value)


def _some(files: list[Path]) -> list[Path]:
    """At most eight of them, spread over all."""
    return files[:: max(1, len(files) // _MOST_CLOCKS)][:_MOST_CLOCKS]


def _cpu_temperatures(root: Path) -> Iterator[Path]:
    for monitor in entries(root / "sys/class/hwmon"):
        if content_or_empty(monitor / "name") in _CPU_SENSORS:
            yield from list(monitor.glob("temp*_input"))[:_MOST_CLOCKS]


def _numbers(files: list[Path]) -> list[float]:
    """What the files hold, or nothing where one cannot be read: a minimum over the rest would mislead."""
    read = [content_or_empty(file) for file in files]
    return [float(value) for value in read] if all(value.lstrip("-").isdecimal() for value in read) else []


def _available(meminfo: str) -> float | None:
    place = meminfo.find("MemAvailable:")
    return float(meminfo[place:].split(maxsplit=2)[1]) * 1024 if place >= 0 else None
