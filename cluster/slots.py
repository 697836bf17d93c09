"""A node's ranks as child processes: kept warm, replaced when they die or do not end.

Each rank is a pebble pool of one spawned process. Ending a rank is our own: SIGKILL at once (a stopped process, one
that holds the GIL and one that hangs in a collective all obey it), and a process that the kernel will not end is left
behind with its pool, named, and never waited for.
"""

import contextlib
import multiprocessing
import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from pebble import ProcessPool

from ..evidence import AnyReading
from .orders import Order, RankSpec, Warmth
from .rank_process import perform, warm

WARM_WITHIN_S = 180.0
_GONE_WITHIN_S = 2.0
_SETTLE_WITHIN_S = 30.0
_ENDED = (None, "Z", "X")


class RankDidNotStart(Exception):
    """A rank's process did not become ready; the message is one line."""


class Slot:
    """The place of one rank on this node, and the process that fills it now."""

    def __init__(self, spec: RankSpec, folder: Path, keeper: ThreadPoolExecutor) -> None:
        """`keeper` is one thread that lives as long as the node's worker: ranks die with the thread that made them."""
        self.spec = spec
        self.warmth: Warmth | None = None
        self._folder = folder
        self._keeper = keeper
        self._pool: ProcessPool | None = None
        self._warming: Future[Warmth] | None = None

    def begin(self, env: tuple[tuple[str, str], ...]) -> bool:
        """Start the process, unless one with this environment is there and lives. Does not wait.

        Returns whether a process that was ready had died while nothing was asked of it.
        """
        died_idle = self.dead
        if self._warming is not None and self.spec.env == env and not died_idle:
            return False
        self.end()
        self.spec = RankSpec(
            subject=self.spec.subject,
            node=self.spec.node,
            index=self.spec.index,
            device=self.spec.device,
            slots=self.spec.slots,
            env=env,
        )
        log = str(self._folder / f"rank-{self.spec.index}.log")
        pool = self._keeper.submit(_started_pool).result()
        self._pool = pool
        self._warming = pool.schedule(warm, args=(self.spec, log))
        return died_idle

    @property
    def dead(self) -> bool:
        """Whether the process was ready once and is no more, though nobody here ended it."""
        return self.warmth is not None and process_state(self.warmth.pid) in _ENDED

    def ready(self) -> Warmth:
        """Wait until the process is ready. Raises RankDidNotStart, and leaves no process behind then."""
        assert self._warming is not None
        try:
            self.warmth = self._warming.result(timeout=WARM_WITHIN_S)
        except FutureTimeout:
            self.end()
            raise RankDidNotStart(f"not ready within {WARM_WITHIN_S:.0f} s") from None
        except Exception as error:  # noqa: BLE001  # whatever starting raises in the child comes through here
            self.end()
            raise RankDidNotStart(f"{type(error).__name__}: {error}") from None
        return self.warmth

    def settle(self) -> None:
        """Wait a while for a process that is starting, whatever comes of it."""
        if self._warming is not None:
            wait([self._warming], timeout=_SETTLE_WITHIN_S)

    def submit(self, order: Order) -> "Future[list[AnyReading]]":
        """Hand the rank its part of a trial."""
        assert self._pool is not None
        try:
            future: Future[list[AnyReading]] = self._pool.schedule(perform, args=(order,))
        except RuntimeError as error:  # its process died a moment ago, and the pool with it
            future = Future()
            future.set_exception(BrokenProcessPool(str(error)))
        return future

    def state(self) -> str | None:
        """The kernel's letter for what the process is doing, or None where there is none."""
        return process_state(self.warmth.pid) if self.warmth else None

    def end(self) -> bool:
        """End the process, if there is one, and leave its pool. Returns whether the kernel would not end it."""
        pool, self._pool = self._pool, None
        warmth, self.warmth = self.warmth, None
        self._warming = None
        if pool is None:
            return False
        pool.stop()  # its threads see this and leave; nobody joins them
        pids = {*_children_of(pool), *([warmth.pid] if warmth else [])}
        _kill(pids)
        gone = all(_gone(pid) for pid in pids)
        _kill(set(_children_of(pool)) - pids)  # one that pebble started in place of the killed before it saw the stop
        return not gone


def _started_pool() -> ProcessPool:
    """A pool whose process is started by the calling thread."""
    pool = ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn"))
    pool._start_pool()  # pebble starts the process at the first schedule otherwise, from whichever thread that is
    return pool


def _children_of(pool: ProcessPool) -> list[int]:
    return list(pool._pool_manager.worker_manager.workers)


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _gone(pid: int) -> bool:
    """Whether a killed process has ended (a zombie has). Waits at most _GONE_WITHIN_S."""
    until = time.monotonic() + _GONE_WITHIN_S
    while time.monotonic() < until:
        if process_state(pid) in _ENDED:
            return True
        time.sleep(0.02)
    return False


def process_state(pid: int) -> str | None:
    """The kernel's letter for a process's state (D: in the kernel, Z: zombie), or None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None
