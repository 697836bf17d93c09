"""The control plane, seen from the head: nodes join it, trials are sent out on it, outcomes come back.

It never waits without a limit: a trial's node that does not answer by its deadline is lost, and the run goes on.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..evidence import AnyReading, RunError
from .bundle import Bundle
from .bundle_main import UNLIKE
from .desk import Answer, Arrival, Desk
from .identity import Identity, new_identity
from .node import NodeConfig, abort_here, call_here, one_line, perform_here, prepare_here
from .node_main import Summons
from .orders import Part, PartResult, Prepared, RankResult, Warmth
from .outcomes import merged
from .slots import WARM_WITHIN_S
from .ssh import Ssh
from .trials import Outcome, Trial, WorkerLost
from .workers import Workers

_ANSWER_WITHIN_S = 15.0


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


class UnlikeNodes(RunError):
    """Nodes whose hwlottery, torch or Python differ from the head's."""


class ControlPlane:
    """The head's end of the control plane. Use as a context manager; leaving it ends every rank.

    It listens at `host`, which nodes must be able to reach, and `port` (0: any that is free), with a TLS identity of
    the run's own: `identity`, or a new one. Raises RunError where it cannot.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, identity: Identity | None = None) -> None:
        from . import dask_settings

        dask_settings.apply()
        from distributed import Client, Scheduler, SpecCluster

        self._host = host
        self._identity = identity or new_identity()
        security = self._identity.security()
        options = {
            "host": host,
            "port": port,
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
        self._started = Workers()
        self._lost: dict[str, str] = {}
        self._refused: dict[str, str] = {}

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
        self._started.start_local(self._summons(node, host=self._host), log)

    def start_by_ssh(
        self, node: NodeConfig, ssh: Ssh, log: Path, software: Mapping[str, str], bundle: Bundle | None = None
    ) -> None:
        """Start a node's worker by ssh to the host of its name, told over ssh's stdin.

        `software` is what the node's must be like, by name; else it does not join. With a bundle it runs from that,
        and this waits until the node has taken it in.
        """
        self._started.start_by_ssh(self._summons(node, software=dict(software)), ssh, log, bundle)

    def open_desk(self, nodes: Iterable[NodeConfig], software: Mapping[str, str]) -> Desk:
        """Open the desk where these nodes, which a launcher starts, fetch their summons. Raises RunError."""
        summons = {node.name: self._summons(node, software=dict(software)) for node in nodes}

        def answer(arrival: Arrival, _: str) -> Answer:
            if arrival.name not in summons:
                return Answer(refused=f"{arrival.name} is not a node of this run, or came too late")
            if arrival.refuses:
                self.count_out(arrival.name, arrival.refuses[:500])
            return Answer(summons=summons[arrival.name])

        return Desk(self._identity, self._host, answer)

    def count_out(self, node: str, why: str) -> None:
        """Do not wait for a node that is known not to join."""
        self._refused[node] = why

    def _summons(self, node: NodeConfig, **more: Any) -> Summons:
        return Summons(scheduler=self._cluster.scheduler_address, identity=self._identity, node=node, **more)

    def wait_joined(self, names: tuple[str, ...], within_s: float) -> tuple[str, ...]:
        """Wait until these nodes have joined, some have ended instead, or the time is up; return those here.

        Raises UnlikeNodes, which names each, where nodes have not joined for what software they have.
        """
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            here = self._workers()
            missing = [name for name in names if name not in here]
            if all(self._started.ended(name) or name in self._refused for name in missing):
                break
            time.sleep(0.05)
        here = self._workers()
        for name in names:
            if name not in here:
                said = self._refused.get(name) or self._started.last_words(name)
                self._lost[name] = f"never joined: {said}" if said else f"never joined within {within_s:.0f} s"
        self._refuse_unlike()
        return tuple(name for name in names if name in here)

    def _refuse_unlike(self) -> None:
        unlike = [f"{name} {why.partition(UNLIKE)[2]}" for name, why in self._lost.items() if UNLIKE in why]
        if unlike:
            raise UnlikeNodes(
                f"software differs from this machine's: {'; '.join(unlike)}. Make it alike, leave them out, or, where "
                "only torch or Python differ, give --allow-unlike"
            )

    def call(self, node: str, function: Callable[..., Any], *args: Any, within_s: float = 60.0) -> Any:
        """Run a function of ours in a node's worker. Raises NodeLost, or what the function raises."""
        return self._task(node, within_s, call_here, function, *args)

    def call_each(
        self, nodes: Iterable[str], function: Callable[..., Any], *args: Any, within_s: float = 60.0
    ) -> dict[str, Any]:
        """Run a function of ours in the workers of several nodes at once: what each answered, or what it raised. Nodes
        that are lost are left out."""

        def ask(node: str) -> tuple[str, Any] | None:
            try:
                return node, self.call(node, function, *args, within_s=within_s)
            except NodeLost:
                return None
            except Exception as error:  # noqa: BLE001  # whatever a driver or a library on the node raises
                return node, error

        return dict(answer for answer in _each(ask, tuple(nodes)) if answer is not None)

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
        self._started.end()

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
        prepared = self._prepare(sent, nodes)
        trouble = self._trouble(prepared.ready, nodes)
        if trouble is not None:
            return Returned(
                outcome=trouble,
                start=start,
                end=datetime.now(UTC),
                died_idle=prepared.died_idle,
                lost_nodes=self._lost_of(nodes),
            )
        meetings = (warmth.meeting for warmth in prepared.ready.values() if not isinstance(warmth, str))
        meeting = next(filter(None, meetings), None)
        start = datetime.now(UTC)
        parts = self._perform(sent, nodes, meeting)
        outcome = merged(sent.trial, [part for part in parts if part], self._lost_of(nodes))
        return Returned(
            outcome=outcome,
            start=start,
            end=datetime.now(UTC),
            beside=tuple(reading for part in parts if part for reading in part.beside),
            replaced=tuple(subject for part in parts if part for subject in part.replaced),
            died_idle=prepared.died_idle,
            lost_nodes=self._lost_of(nodes),
            logs={rank.subject: rank.log for part in parts if part for rank in part.ranks if rank.log},
        )

    def _lost_of(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in nodes if node in self._lost)

    def _prepare(self, sent: Sent, nodes: tuple[str, ...]) -> Prepared:
        """Have all ranks of a trial ready, of all nodes together. The first rank leads several nodes."""
        leader = sent.trial.ranks[0].subject if sent.trial.collective and len(nodes) > 1 else None
        env = tuple(sorted(sent.trial.env.items()))
        within = WARM_WITHIN_S + _ANSWER_WITHIN_S

        def prepare(node: str) -> Prepared:
            subjects = tuple(rank.subject for rank in sent.trial.ranks if rank.node == node)
            try:
                prepared: Prepared = self._task(node, within, prepare_here, subjects, env, leader)
            except NodeLost as error:
                return Prepared(ready=dict.fromkeys(subjects, str(error)))
            except Exception as error:  # noqa: BLE001  # a full /dev/shm, say: it costs this trial, not the run
                return Prepared(ready=dict.fromkeys(subjects, one_line(error)))
            return prepared

        parts: list[Prepared] = _each(prepare, nodes)
        return Prepared(
            ready={subject: found for part in parts for subject, found in part.ready.items()},
            died_idle=tuple(subject for part in parts for subject in part.died_idle),
        )

    def _trouble(self, ready: Mapping[str, Warmth | str], nodes: tuple[str, ...]) -> Outcome | None:
        """The outcome of a trial whose ranks are not all ready; None where they are."""
        trouble = {subject: found for subject, found in ready.items() if isinstance(found, str)}
        if not trouble:
            return None
        lost = self._lost_of(nodes)
        why = next(iter(trouble.values()))
        return WorkerLost(subjects=lost or tuple(trouble), message=why if lost else f"did not start: {why}")

    def _perform(self, sent: Sent, nodes: tuple[str, ...], meeting: str | None) -> list[PartResult | None]:
        """Send each node its part; None for a node that was lost. When one fails a collective the others are told."""
        within = sent.trial.deadline_s + _ANSWER_WITHIN_S

        def perform(node: str) -> PartResult | None:
            try:
                result: PartResult = self._task(node, within, perform_here, _part(sent, node, meeting))
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
        others = tuple(node for node in nodes if node != failed and node not in self._lost)
        if not sent.trial.collective or not others:
            return

        def abort(node: str) -> None:
            with contextlib.suppress(NodeLost):
                self._task(node, _ANSWER_WITHIN_S, abort_here, sent.id)

        _each(abort, others)


def _each(function: Callable[[str], Any], nodes: tuple[str, ...]) -> list[Any]:
    if len(nodes) < 2:
        return [function(node) for node in nodes]
    with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
        return list(pool.map(function, nodes))


def _part(sent: Sent, node: str, meeting: str | None) -> Part:
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
        meeting=meeting,
    )


def _all_raised(sent: Sent, node: str, message: str) -> PartResult:
    """The part of a node whose worker raised before or after its ranks did their work."""
    mine = [rank.subject for rank in sent.trial.ranks if rank.node == node]
    ranks = tuple(RankResult(subject=subject, fate="raised", message=message) for subject in mine)
    return PartResult(node=node, ranks=ranks)


async def _stop_http(server: Any) -> None:
    """Dask's HTTP server has no routes here and no TLS: it stops listening."""
    server.http_server.stop()
