"""One way to time work on a CPU and on a GPU: marks in the stream of work, and the seconds between them.

On CUDA a mark is an event recorded on the current stream, so that the host's own time is never measured; on a CPU,
where work is done when its call returns, a mark is the monotonic clock.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..cluster import RankContext


class Clock(Protocol):
    """Marks along a rank's work. A mark belongs to the clock that made it."""

    def mark(self) -> Any:
        """Set a mark after all work issued so far."""
        ...

    def wait(self, mark: Any) -> None:
        """Return once the work before the mark is done."""
        ...

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two marks, both of which were reached."""
        ...


class HostClock:
    """Marks on the host's monotonic clock."""

    def mark(self) -> float:
        """The time now, in seconds."""
        return time.perf_counter()

    def wait(self, mark: float) -> None:
        """Nothing to wait for: CPU work is done when its call returns."""

    def seconds(self, start: float, end: float) -> float:
        """Seconds between two marks."""
        return end - start


class CudaClock:
    """Marks as CUDA events on the current stream."""

    def mark(self) -> Any:
        """Record an event behind the work queued so far."""
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self, mark: Any) -> None:
        """Block until the device has reached the event."""
        mark.synchronize()

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two events."""
        return float(start.elapsed_time(end)) / 1e3


def clock_of(context: RankContext) -> Clock:
    """The clock for the rank's device."""
    return CudaClock() if context.on_cuda else HostClock()


def timed_each(
    clock: Clock, work: Callable[[], Any], times: int, before: Callable[[], Any] | None = None
) -> list[float]:
    """Seconds of each of `times` calls of `work`; `before` runs ahead of each, untimed. One wait, at the end."""
    marks = []
    for _ in range(times):
        if before is not None:
            before()
        start = clock.mark()
        work()
        marks.append((start, clock.mark()))
    clock.wait(marks[-1][1])
    return [clock.seconds(start, end) for start, end in marks]


def back_to_back(clock: Clock, work: Callable[[], Any], seconds: float, calls: int) -> list[float]:
    """Seconds a call, one sample for every `calls` calls, issued without a gap for `seconds`.

    The host runs at most two samples ahead of the device, so that the device is never idle and the queue never full.
    """
    marks = [clock.mark()]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(marks) < 3:
        for _ in range(calls):
            work()
        marks.append(clock.mark())
        clock.wait(marks[-2])
    clock.wait(marks[-1])
    return [clock.seconds(a, b) / calls for a, b in itertools.pairwise(marks)]


def warm_up(clock: Clock, work: Callable[[], Any], seconds: float) -> float:
    """Run `work` for `seconds`, at least twice. Returns the seconds of the last call."""
    end = time.perf_counter() + seconds
    while True:
        last = timed_each(clock, work, 2)[-1]
        if time.perf_counter() >= end:
            return last
