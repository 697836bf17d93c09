"""Who uses the CPUs besides us: processes that are not ours, and how many cores they keep busy."""

import time
from collections.abc import Collection, Set

import psutil

from .files import Found

_BUSY = 0.1  # cores: below this a process is no disturbance worth a name
_NAMED = 5
_OURS = "hwlottery"


def own_pids() -> frozenset[int]:
    """Our processes: the topmost one above us that runs hwlottery with all below it, and those above it, which wait
    for it. Called by hand (no hwlottery above), it is our parent's tree."""
    me = psutil.Process()
    above = me.parents()
    ours = [process for process in above if _runs_us(process)] or above[:1] or [me]
    try:
        tree = [ours[-1], *ours[-1].children(recursive=True)]
    except psutil.Error:
        tree = [me]
    return frozenset(process.pid for process in [me, *above, *tree])


def callers() -> frozenset[int]:
    """The processes above this one that run hwlottery: the head, where it is on this machine."""
    return frozenset(process.pid for process in psutil.Process().parents() if _runs_us(process))


def _runs_us(process: psutil.Process) -> bool:
    try:
        return any(_OURS in word for word in process.cmdline())
    except psutil.Error:
        return False


def foreign_facts(own: Set[int], interval_s: float = 0.5) -> dict[str, Found]:
    """How many cores processes that are not ours keep busy, measured over an interval, and the busiest by name.

    The total is the whole kernel's, so that in a container the load of other tenants counts, though it has no name.
    """
    own_before, busy_before, processes_before, start = (
        cpu_seconds(own),
        _busy_seconds(),
        _by_process(own),
        time.perf_counter(),
    )
    time.sleep(interval_s)
    took = time.perf_counter() - start
    total = (_busy_seconds() - busy_before - (cpu_seconds(own) - own_before)) / took
    used = {
        name: seconds / took - processes_before[pid, name] / took
        for (pid, name), seconds in _by_process(own).items()
        if (pid, name) in processes_before
    }
    busiest = sorted(((cores, name) for name, cores in used.items() if cores >= _BUSY), reverse=True)
    found: dict[str, Found] = {
        "foreign.busy_cores": round(max(0.0, total), 2),
        "foreign.busy_processes": len(busiest),
    }
    if busiest:
        found["foreign.busiest"] = ", ".join(f"{name} ({cores:.1f} cores)" for cores, name in busiest[:_NAMED])
    return found


def cpu_seconds(pids: Collection[int]) -> float:
    """CPU seconds that these processes have used so far; those that are gone count for nothing."""
    return sum(seconds for pid in pids if (seconds := _used(pid)) is not None)


def _used(pid: int) -> float | None:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def _by_process(own: Set[int]) -> dict[tuple[int, str], float]:
    seen: dict[tuple[int, str], float] = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if process.pid not in own and times is not None:
            seen[process.pid, process.info["name"] or "unnamed"] = times.user + times.system
    return seen


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
