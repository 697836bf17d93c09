"""The sampler: a thread in the node's own process that reads the sensors about once a second beside the work.

Only this thread touches NVML and the kernel log, so that a driver that hangs stalls the sensors and not the work:
`begin` waits for nothing and `end` for a second at most. Nothing raises into the caller; a sensor that cannot be read
gives no value. What the sampler costs is counted in its own thread's CPU time.
"""

import threading
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

from ..evidence import AnyReading, Observed
from .files import ROOT, Unreadable, facts
from .gpu_sensors import GpuCounters, GpuSensors
from .health import Marks, Watched, readings_of
from .host_sensors import CpuTimes, HostSensors
from .kernel_log import KernelLog, Xid
from .links import falls_so_far
from .nvml import Nvml, open_nvml
from .processes import callers
from .windows import Sample, Window, WindowBook, fold

_PATIENCE_S = 1.0

__all__ = ["Sampler", "Token", "Window"]


class Token:
    """One stretch of work under watch, from `begin` to `end`."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.lock = threading.Lock()  # held for moments, never while a driver is asked
        self.ending = False
        self.done = threading.Event()


class Sampler:
    """Watches a node. `own_pids` gives the processes that are ours; those above us that run hwlottery count too.

    `gpus` opens NVML; it is called in the sampler's thread.
    """

    def __init__(
        self,
        *,
        node: str,
        own_pids: Callable[[], Collection[int]],
        period_s: float = 1.0,
        root: Path = ROOT,
        gpus: Callable[[], Nvml | Unreadable | None] = open_nvml,
    ) -> None:
        self._node = node
        self._period_s = period_s
        self._root = root
        self._open_gpus = gpus
        above = callers()
        self._host = HostSensors(node, lambda: {*above, *own_pids()}, root)
        self._book = WindowBook(node)
        self._gpus: GpuSensors | None = None
        self._log: KernelLog | Unreadable = Unreadable("the sensors have not looked yet")
        self._told: Observed | None = None
        self._between: list[tuple[str, Xid]] = []  # Xids that came while no work was under watch
        self._tokens: list[Token] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="hwlottery-sensors", daemon=True)

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling and close the last window. A thread that hangs in the driver is left behind."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2 * _PATIENCE_S)
        self._book.close()

    def begin(self) -> Token:
        """The work starts now."""
        token = Token()
        with self._lock:
            self._tokens.append(token)
        self._wake.set()
        return token

    def end(self, token: Token) -> list[AnyReading]:
        """The work is over: what the sensors saw meanwhile, as readings of health.* and what was noticed.

        Xids from the time since the work before are told too: they belong to no work, and to this node.
        """
        token.ending = True
        self._wake.set()
        answered = token.done.wait(_PATIENCE_S)
        with self._lock:
            self._tokens = [other for other in self._tokens if other is not token]
            between, self._between = self._between, []
        with token.lock:
            token.watched.xids[:0] = between
            return [*readings_of(self._node, token.watched, answered), *self._log_watched(answered)]

    def _log_watched(self, answered: bool) -> list[Observed]:
        """Whether the kernel log is watched, said at first and whenever it changes: no Xid seen means something only
        where somebody looked."""
        log = self._log if answered else Unreadable("the sensors do not answer")
        found = log if isinstance(log, Unreadable) else not log.lost
        (fact,) = facts(self._node, {"kernel_log.watched": found})
        told, self._told = self._told, fact
        return [] if fact == told else [fact]

    def take_windows(self) -> list[Window]:
        """The one-minute windows that were closed since the last call."""
        return self._book.take()

    def _run(self) -> None:
        try:
            opened = self._open_gpus()
            self._gpus = GpuSensors(self._node, opened) if isinstance(opened, Nvml) else None
            self._log = KernelLog.open(self._root)
        except Exception as error:  # noqa: BLE001  # whatever a driver's library does, the work goes on
            self._failed(error)
        while not self._stopping:
            begun = time.monotonic()
            self._wake.clear()  # before the look: who wakes us during it is seen in the next
            try:
                self._tick()
            except Exception as error:  # noqa: BLE001  # as above; the tokens say what happened
                self._failed(error)
            self._wake.wait(max(0.0, self._period_s - (time.monotonic() - begun)))

    def _tick(self) -> None:
        """One look at everything. Tokens that are new get their first marks, those that end their last."""
        with self._lock:
            tokens = list(self._tokens)
        ending = [token for token in tokens if token.ending]
        times = self._host.cpu_times()
        samples = [*self._host.sample(times), *(self._gpus.sample() if self._gpus else ())]
        self._book.add(datetime.now(UTC), samples)
        xids = self._new_xids()
        edges = [token for token in tokens if token.watched.first is None or token in ending]
        marks = self._marks(times) if edges else None
        under_load = [sample for sample in samples if not sample.idle]
        at_work = [token for token in tokens if token.watched.first]
        for token in tokens:
            with token.lock:
                _note(token, under_load, xids, marks)
        if not at_work:
            with self._lock:
                self._between += xids
        for token in ending:
            token.done.set()

    def _new_xids(self) -> list[tuple[str, Xid]]:
        """New Xids, each with the GPU it names, or the node."""
        found = self._log if isinstance(self._log, Unreadable) else self._log.new_xids()
        if isinstance(found, Unreadable):
            self._log = found  # once it cannot be read, what was missed is never known
            return []
        return [((self._gpus.at(xid.pci) if self._gpus else None) or self._node, xid) for xid in found]

    def _marks(self, times: CpuTimes | None) -> Marks:
        gpus: dict[str, GpuCounters] = self._gpus.counters() if self._gpus else {}
        links = falls_so_far(self._root)
        return Marks(at=time.monotonic(), cost_s=time.thread_time(), cpu=times, gpus=gpus, links=links)

    def _failed(self, error: Exception) -> None:
        """Say it to all that is under watch. The log may have been missed, and nobody knows how much of it."""
        trouble = f"{type(error).__name__}: {error}"
        self._log = Unreadable(f"the sensors failed: {trouble}")
        with self._lock:
            for token in self._tokens:
                token.watched.trouble = trouble
                if token.ending:
                    token.done.set()


def _note(token: Token, samples: list[Sample], xids: list[tuple[str, Xid]], marks: Marks | None) -> None:
    """One look goes into a token: what was logged before its first look came before its work."""
    watched = token.watched
    if watched.first is None:
        watched.first = marks
    else:
        watched.xids += xids
    fold(watched.tallies, samples)
    if token.ending:
        watched.last = marks
