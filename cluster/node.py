"""A node's worker: it keeps the node's ranks, and does the node's part of each trial under a deadline."""

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from pebble import ProcessExpired

from ..evidence import AnyReading, Device
from . import stacks
from .bounded_log import GrowingLog
from .orders import Order, Part, PartResult, Prepared, RankResult, RankSpec, Warmth
from .slots import RankDidNotStart, Slot

# When one rank of a collective has failed the others can only wait; those that fail with it do so at once.
_GRACE_S = 0.5
# What a process was doing when its deadline passed, by the kernel's letter for it.
_STATES = {"R": "running", "S": "waiting", "D": "in the kernel", "T": "stopped", "t": "stopped", "Z": "gone"}


class NodeConfig(Struct, frozen=True, kw_only=True):
    """What a node's worker is told when it starts. `beside` names a factory "module:name" of what watches the work."""

    name: str
    run_id: str
    device: Device
    ranks: tuple[str, ...]  # short names: gpu0, slot1
    scratch: str
    beside: str | None = None


class Beside(Protocol):
    """What is read beside running work; it never raises into the measuring path."""

    def begin(self) -> Any:
        """Mark the start of a trial."""

    def end(self, token: Any) -> list[AnyReading]:
        """What was read since then."""


class NodeKeeper:
    """The ranks of this node. One a process; Dask tasks call it from several threads."""

    def __init__(self, config: NodeConfig, *, address: str = "127.0.0.1", interface: str = "lo") -> None:
        """`address` and `interface` are where ranks of other nodes find those of this one."""
        self.config = config
        self._address = address
        self.folder = Path(tempfile.mkdtemp(prefix="hwlottery-node-"))
        self._mark = f"hwlottery-{config.run_id}-{config.name}-"
        self._remove_left_behind()
        self._beside: Beside | None = None
        self._ended_early: set[str] = set()
        self._logs: dict[Path, GrowingLog] = {}
        # Ranks die with the thread that started them: this one lives as long as the worker.
        keeper = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rank-keeper")
        slots = len(config.ranks) if config.device == "cpu" else 1
        self._slots = {
            f"{config.name}/{short}": Slot(
                RankSpec(
                    subject=f"{config.name}/{short}",
                    node=config.name,
                    index=index,
                    device=config.device,
                    slots=slots,
                    interface=interface,
                ),
                self.folder,
                keeper,
            )
            for index, short in enumerate(config.ranks)
        }
        self._starting = threading.Lock()

    def watch_with(self, beside: Beside | None) -> None:
        """Have this watch beside each trial from now on."""
        self._beside = beside

    def pids(self) -> set[int]:
        """The processes of the ranks that are up."""
        return {slot.warmth.pid for slot in self._slots.values() if slot.warmth}

    def prepare(
        self, subjects: tuple[str, ...], env: tuple[tuple[str, str], ...], leader: str | None = None
    ) -> Prepared:
        """Have these ranks ready with this environment: the warmth of each, or why it did not start.

        `leader`, where it is one of them, opens the store where ranks of several nodes meet. Waits for other ranks of
        the node that are just starting, too: they would disturb what is measured next.
        """
        with self._starting:
            died = tuple(subject for subject in subjects if self._slots[subject].begin(env))
        for slot in self._slots.values():
            slot.settle()
        ready = {subject: self._warmth_or_why(subject, opens=subject == leader) for subject in subjects}
        return Prepared(ready=ready, died_idle=died)

    def _warmth_or_why(self, subject: str, *, opens: bool) -> Warmth | str:
        slot = self._slots[subject]
        try:
            warmth = slot.ready()
            return slot.open(self._address) if opens else warmth
        except RankDidNotStart as error:
            return str(error)

    def died_idle(self) -> tuple[str, ...]:
        """The ranks whose process has died since their last trial."""
        return tuple(subject for subject, slot in self._slots.items() if slot.dead)

    def perform(self, part: Part) -> PartResult:
        """Do this node's part of a trial: every local rank, under the deadline. Ranks must be prepared."""
        token = self._beside.begin() if self._beside else None
        subjects = [part.ranks[place] for place in part.local]
        running = {
            subject: self._slots[subject].submit(self._order(part, place, local))
            for local, (place, subject) in enumerate(zip(part.local, subjects, strict=True))
        }
        self._wait(part, list(running.values()))
        results = tuple(self._result(part, subject, future) for subject, future in running.items())
        replaced = tuple(result.subject for result in results if result.fate != "returned")
        beside = self._beside.end(token) if self._beside else []
        return PartResult(node=self.config.name, ranks=results, beside=tuple(beside), replaced=replaced)

    def abort(self, trial: str) -> None:
        """End a trial's ranks here: it has failed elsewhere and these could only wait."""
        self._ended_early.add(trial)

    def close(self) -> list[str]:
        """End all ranks, and remove the worker's own folder and what killed ranks left in scratch. Returns the subjects
        that the kernel would not end."""
        stuck = [subject for subject, slot in self._slots.items() if slot.end()]
        _without_waiting(lambda: shutil.rmtree(self.folder))
        self._remove_left_behind()
        return stuck

    def _remove_left_behind(self) -> None:
        """Remove this run's own files in this node's scratch: a rank that is killed cannot."""

        def remove() -> None:
            for entry in Path(self.config.scratch).iterdir():
                if entry.name.startswith(self._mark) and entry.is_file():
                    entry.unlink(missing_ok=True)

        _without_waiting(remove)

    def _order(self, part: Part, place: int, local: int) -> Order:
        log = self._log(part, part.ranks[place])
        self._logs[log] = GrowingLog(log)
        store = self.folder / f"store-{part.trial}" if part.collective and part.meeting is None else None
        return Order(
            part=part,
            rank=place,
            local_rank=local,
            scratch=self.config.scratch,
            mark=self._mark,
            log=str(log),
            store=str(store) if store else None,
        )

    def _log(self, part: Part, subject: str) -> Path:
        return self.folder / f"{part.trial}-{subject.rpartition('/')[2]}.log"

    def _wait(self, part: Part, futures: list["Future[list[AnyReading]]"]) -> None:
        """Until all are done, the deadline passes, or one rank of a collective has failed."""
        until = time.monotonic() + part.deadline_s
        pending = set(futures)
        logs = [self._logs[self._log(part, part.ranks[place])] for place in part.local]
        while pending and time.monotonic() < until and part.trial not in self._ended_early:
            done, pending = wait(pending, timeout=min(0.25, until - time.monotonic()), return_when=FIRST_COMPLETED)
            for log in logs:
                log.watch()
            if part.collective and any(future.exception() for future in done):
                wait(pending, timeout=_GRACE_S)
                self._ended_early.add(part.trial)
                return

    def _result(self, part: Part, subject: str, future: "Future[list[AnyReading]]") -> RankResult:
        slot = self._slots[subject]
        if not future.done():
            fate = "ended" if part.trial in self._ended_early else "timed_out"
            doing = self._doing(part, slot)
            stuck = slot.end()
            self._begin_again(slot)
            return self._told(part, subject, fate=fate, stuck=stuck, message=doing)
        error = future.exception()
        if error is None:
            return self._told(part, subject, fate="returned", readings=tuple(future.result()))
        slot.end()
        self._begin_again(slot)
        died = isinstance(error, ProcessExpired | BrokenProcessPool)
        message = f"exit code {error.exitcode}" if isinstance(error, ProcessExpired) else one_line(error)
        follows = stacks.IN_COLLECTIVE in getattr(error, "__notes__", ())
        return self._told(part, subject, fate="died" if died else "raised", message=message, follows=follows)

    def _doing(self, part: Part, slot: Slot) -> str:
        """What a late rank was doing: by its stack where it can answer, else by the kernel's word for its state."""
        state = slot.state() or ""
        stack = ""
        if state in ("R", "S") and slot.warmth is not None:
            stack = stacks.where(slot.warmth.pid, self._log(part, slot.spec.subject))
        return stack or _STATES.get(state, "gone")

    def _begin_again(self, slot: Slot) -> None:
        """Fill the slot with a fresh process in the background: its process group was spoilt, or it is gone."""
        with self._starting:
            slot.begin(slot.spec.env)

    def _told(self, part: Part, subject: str, **rest: Any) -> RankResult:
        return RankResult(subject=subject, log=self._logs.pop(self._log(part, subject)).take(), **rest)


def _without_waiting(remove: Callable[[], None], within_s: float = 5.0) -> None:
    """Remove something in a thread: a hanging mount must not keep the worker from starting or ending."""

    def suppressed() -> None:
        with contextlib.suppress(OSError):
            remove()

    thread = threading.Thread(target=suppressed, daemon=True)
    thread.start()
    thread.join(within_s)


def one_line(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
