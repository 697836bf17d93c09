"""The control plane, seen from the head: nodes join it, trials are sent out on it, outcomes come back.

It never waits without a limit: a trial's node that does not answer by its deadline is lost, and the run goes on.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..evidence import AnyReading, RunError
from .identity import Identity, new_identity
from .node import NodeConfig, abort_here, call_here, one_line, perform_here, prepare_here
from .node_main import Summons
from .orders import Part, PartResult, Prepared, RankResult
from .outcomes import merged
from .slots import WARM_WITHIN_S
from .trials import Outcome, Trial, WorkerLost

_ANSWER_WITHIN_S = 15.0
_END_WITHIN_S = 8.0
# A node's worker ends without Python's own shutdown; its resource tracker would complain of that in the log.
_QUIET = "ignore:resource_tracker:UserWarning"


class Sent(Struct, frozen=True, kw_only=True):
    """A trial as it is sent out: with its id and the run's seed."""

    id: str
    trial: Trial
    seed: int


class Returned(Struct, frozen=True, kw_only=True):
    """What came back of a trial: its outcome, when it ran, what was read beside it, and what its ranks printed."""

    outcome: Outcome
    start: datetime
    end: datetime
    beside: tuple[AnyReading, ...] = ()
    replaced: tuple[str, ...] = ()
    died_idle: tuple[str, ...] = ()  # ranks whose process had ended before the trial, while nothing was asked of it
    lost_nodes: tuple[str, ...] = ()
    logs: dict[str, str] = {}


class NodeLost(Exception):
    """A node's worker is gone or does not answer; the message is one line."""


class ControlPlane:
    """The head's end of the control plane. Use as a context manager; leaving it ends every rank."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        from . import dask_settings

        dask_settings.apply()
        from distributed import Client, Scheduler, SpecCluster

        self._host = host
        self._identity: Identity = new_identity()
        security = self._identity.security()
        options = {
            "host": host,
            "protocol": "tls",
            "security": security,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
        }
        try:
            self._cluster = SpecCluster(
                workers={}, scheduler={"cls": Scheduler, "options": options}, security=security, silence_logs=False
            )
            self._cluster.sync(_stop_http, self._cluster.scheduler)
            self._client = Client(self._cluster, security=security, set_as_default=False)
        except (OSError, RuntimeError) as error:
            raise RunError(f"the control plane cannot start on {host}: {error} (hwlottery doctor may know)") from error
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, Path] = {}
        self._lost: dict[str, str] = {}

    def __enter__(self) -> "ControlPlane":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def lost(self) -> dict[str, str]:
        """The nodes lost so far, and why."""
        return dict(self._lost)

    def start_local(self, node: NodeConfig, log: Path) -> None:
        """Start this machine's node worker. It is told over stdin what to be, and prints to `log`."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "hwlottery.cluster.node_main"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONWARNINGS": _QUIET},
                start_new_session=True,  # a Ctrl-C at the terminal is for the head, which ends the nodes in order
            )
        summons = Summons(
            scheduler=self._cluster.scheduler_address, identity=self._identity, host=self._host, node=node
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(msgspec.json.encode(summons))
        self._processes[node.name] = process
        self._logs[node.name] = log

    def wait_joined(self, names: tuple[str, ...], within_s: float) -> tuple[str, ...]:
        """Wait until these nodes have joined, some have ended instead, or the time is up; return those here."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            here = self._workers()
            missing = [name for name in names if name not in here]
            ended = [name for name in missing if name in self._processes and self._processes[name].poll() is not None]
            if len(ended) == len(missing):
                break
            time.sleep(0.05)
        here = self._workers()
        for name in names:
            if name not in here:
                self._lost[name] = f"never joined{self._last_words(name)}"
        return tuple(name for name in names if name in here)

    def call(self, node: str, function: Callable[..., Any], *args: Any, within_s: float = 60.0) -> Any:
        """Run a function of ours in a node's worker. Raises NodeLost, or what the function raises."""
        return self._task(node, within_s, call_here, function, *args)

    def run_round(self, sent: list[Sent]) -> list[Returned]:
        """Run trials on disjoint ranks at once; what came back, in their order."""
        if len(sent) == 1:
            return [self._run(sent[0])]
        pool = ThreadPoolExecutor(max_workers=len(sent), thread_name_prefix="trial")
        try:
            return list(pool.map(self._run, sent))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End every node worker and its ranks, and the scheduler. Waits a few seconds at most."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=4)
        until = time.monotonic() + _END_WITHIN_S
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, until - time.monotonic()))
                continue
            process.kill()  # its ranks die with it

    def _last_words(self, name: str) -> str:
        """The last line that a node worker of ours printed, where it has ended."""
        log = self._logs.get(name)
        if log is None or self._processes[name].poll() is None:
            return ""
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ": its worker ended at once"

    def _workers(self) -> dict[str, str]:
        """Names of the nodes here, with their workers' addresses."""
        scheduler: Any = self._cluster.scheduler
        workers = scheduler.workers.copy()
        return {str(state.name): address for address, state in workers.items()}

    def _task(self, node: str, within_s: float, function: Callable[..., Any], *args: Any) -> Any:
        from distributed import KilledWorker
        from distributed import TimeoutError as DaskTimeout
        from distributed.client import FutureCancelledError

        address = self._workers().get(node)
        if address is None or node in self._lost:
            raise NodeLost(self._lose(node, "its worker ended"))
        key = f"{node}-{os.urandom(8).hex()}"
        future = self._client.submit(function, *args, workers=[address], pure=False, key=key)
        try:
            return future.result(timeout=within_s)
        except (KilledWorker, FutureCancelledError):
            raise NodeLost(self._lose(node, "its worker ended")) from None
        except (DaskTimeout, TimeoutError):
            raise NodeLost(self._lose(node, f"no answer within {within_s:.0f} s")) from None
        finally:
            future.release()

    def _lose(self, node: str, why: str) -> str:
        return self._lost.setdefault(node, why)

    def _run(self, sent: Sent) -> Returned:
        start = datetime.now(UTC)
        nodes = tuple(dict.fromkeys(rank.node for rank in sent.trial.ranks))
        trouble, died_idle = self._prepare(sent, nodes)
        if trouble is not None:
            return Returned(
                outcome=trouble,
                start=start,
                end=datetime.now(UTC),
                died_idle=died_idle,
                lost_nodes=self._lost_of(nodes),
            )
        start = datetime.now(UTC)
        parts = self._perform(sent, nodes)
        outcome = merged(sent.trial, [part for part in parts if part], self._lost_of(nodes))
        return Returned(
            outcome=outcome,
            start=start,
            end=datetime.now(UTC),
            beside=tuple(reading for part in parts if part for reading in part.beside),
            replaced=tuple(subject for part in parts if part for subject in part.replaced),
            died_idle=died_idle,
            lost_nodes=self._lost_of(nodes),
            logs={rank.subject: rank.log for part in parts if part for rank in part.ranks if rank.log},
        )

    def _lost_of(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in nodes if node in self._lost)

    def _prepare(self, sent: Sent, nodes: tuple[str, ...]) -> tuple[Outcome | None, tuple[str, ...]]:
        """Have all ranks of a trial ready. Returns an outcome where some are not, and those that had died idle."""
        env = tuple(sorted(sent.trial.env.items()))
        within = WARM_WITHIN_S + _ANSWER_WITHIN_S

        def prepare(node: str) -> Prepared:
            subjects = tuple(rank.subject for rank in sent.trial.ranks if rank.node == node)
            try:
                prepared: Prepared = self._task(node, within, prepare_here, subjects, env)
            except NodeLost as error:
                return Prepared(ready=dict.fromkeys(subjects, str(error)))
            except Exception as error:  # noqa: BLE001  # a full /dev/shm, say: it costs this trial, not the run
                return Prepared(ready=dict.fromkeys(subjects, one_line(error)))
            return prepared

        prepared: list[Prepared] = _each(prepare, nodes)
        died = tuple(subject for part in prepared for subject in part.died_idle)
        ready = {subject: found for part in prepared for subject, found in part.ready.items()}
        trouble = {subject: found for subject, found in ready.items() if isinstance(found, str)}
        if not trouble:
            return None, died
        lost = self._lost_of(nodes)
        why = next(iter(trouble.values()))
        outcome = WorkerLost(subjects=lost or tuple(trouble), message=why if lost else f"did not start: {why}")
        return outcome, died

    def _perform(self, sent: Sent, nodes: tuple[str, ...]) -> list[PartResult | None]:
        """Send each node its part; None for a node that was lost. When one fails a collective the others are told."""
        within = sent.trial.deadline_s + _ANSWER_WITHIN_S

        def perform(node: str) -> PartResult | None:
            try:
                result: PartResult = self._task(node, within, perform_here, _part(sent, node))
            except NodeLost:
                self._abort(sent, nodes, node)
                return None
            except Exception as error:  # noqa: BLE001  # a full disk on the node, say: it costs this trial, not the run
                self._abort(sent, nodes, node)
                return _all_raised(sent, node, one_line(error))
            if sent.trial.collective and any(rank.fate != "returned" for rank in result.ranks):
                self._abort(sent, nodes, node)
            return result

        return _each(perform, nodes)

    def _abort(self, sent: Sent, nodes: tuple[str, ...], failed: str) -> None:
        for node in nodes:
            if node != failed and sent.trial.collective:
                with contextlib.suppress(NodeLost):
                    self._task(node, _ANSWER_WITHIN_S, abort_here, sent.id)


def _each(function: Callable[[str], Any], nodes: tuple[str, ...]) -> list[Any]:
    if len(nodes) == 1:
        return [function(nodes[0])]
    with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
        return list(pool.map(function, nodes))


def _part(sent: Sent, node: str) -> Part:
    ranks = sent.trial.ranks
    return Part(
        trial=sent.id,
        function=sent.trial.function,
        params=dict(sent.trial.params),
        env=tuple(sorted(sent.trial.env.items())),
        collective=sent.trial.collective,
        deadline_s=sent.trial.deadline_s,
        ranks=tuple(rank.subject for rank in ranks),
        nodes=tuple(rank.node for rank in ranks),
        local=tuple(place for place, rank in enumerate(ranks) if rank.node == node),
        seed=sent.seed,
    )


def _all_raised(sent: Sent, node: str, message: str) -> PartResult:
    """The part of a node whose worker raised before or after its ranks did their work."""
    mine = [rank.subject for rank in sent.trial.ranks if rank.node == node]
    ranks = tuple(RankResult(subject=subject, fate="raised", message=message) for subject in mine)
    return PartResult(node=node, ranks=ranks)


async def _stop_http(server: Any) -> None:
    """Dask's HTTP server has no routes here and no TLS: it stops listening."""
    server.http_server.stop()
