"""The control plane, seen from the head: nodes join it, trials are sent out on it, outcomes come back.

It never waits without a limit: a trial's node that does not answer by its deadline is lost, and the run goes on.
"""

import asyncio
import contextlib
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..evidence import RunError
from .asking import Asking, NodeLost
from .bundle import Bundle
from .bundle_main import UNLIKE
from .desk import Answer, Arrival, Desk
from .gang import Gang, Returned, Sent
from .identity import Identity, new_identity
from .node import NodeConfig
from .node_main import Summons
from .ssh import Ssh
from .workers import Workers

_LEAVE_WITHIN_S = 3.0

__all__ = ["ControlPlane", "NodeLost", "Returned", "Sent", "UnlikeNodes"]


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
        from distributed import SpecCluster

        from .silent import SilentScheduler

        self._open_files = _allow_open_files()
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
                workers={},
                scheduler={"cls": SilentScheduler, "options": options},
                security=security,
                silence_logs=False,
            )
        except (OSError, RuntimeError) as error:
            raise RunError(f"the control plane cannot start on {host}: {error} (hwlottery doctor may know)") from error
        self._started = Workers(self._open_files)
        self._asking = Asking(self._cluster, self._started.ending)
        self._refused: dict[str, str] = {}

    def __enter__(self) -> "ControlPlane":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def lost(self) -> dict[str, str]:
        """The nodes lost so far, and why."""
        return dict(self._asking.lost)

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

    def wait_joined(
        self, names: tuple[str, ...], within_s: float, tell: Callable[[int], None] = lambda _: None
    ) -> tuple[str, ...]:
        """Wait until these nodes have joined, some have ended instead, or the time is up; return those here. `tell` is
        called again and again with how many that are.

        Raises UnlikeNodes, which names each, where nodes have not joined for what software they have.
        """
        until = time.monotonic() + within_s
        missing = [name for name in names if not self._asking.here(name)]
        while missing and time.monotonic() < until and not all(map(self._will_not_come, missing)):
            tell(len(names) - len(missing))
            time.sleep(0.05)
            missing = [name for name in missing if not self._asking.here(name)]
        tell(len(names) - len(missing))
        for name in missing:
            said = self._refused.get(name) or self._started.last_words(name)
            self._asking.lose(name, f"never joined: {said}" if said else f"never joined within {within_s:.0f} s")
        self._refuse_unlike()
        return tuple(name for name in names if name not in missing)

    def _will_not_come(self, name: str) -> bool:
        return self._started.ended(name) or name in self._refused

    def _refuse_unlike(self) -> None:
        unlike = [f"{name} {why.partition(UNLIKE)[2]}" for name, why in self._asking.lost.items() if UNLIKE in why]
        if unlike:
            raise UnlikeNodes(
                f"software differs from this machine's: {'; '.join(unlike)}. Make it alike, leave them out, or, where "
                "only torch or Python differ, give --allow-unlike"
            )

    def call(self, node: str, function: Callable[..., Any], *args: Any, within_s: float = 60.0) -> Any:
        """Run a function of ours in a node's worker. Raises NodeLost, or what the function raises."""
        return self._asking.wait(lambda: self._asking.ask(node, within_s, function, *args))

    def call_each(
        self, nodes: Iterable[str], function: Callable[..., Any], *args: Any, within_s: float = 60.0
    ) -> dict[str, Any]:
        """Run a function of ours in the workers of several nodes at once: what each answered, or what it raised. Nodes
        that are lost are left out."""

        async def ask_each() -> dict[str, Any]:
            asked = {node: self._asking.ask(node, within_s, function, *args) for node in nodes}
            answers = await asyncio.gather(*asked.values(), return_exceptions=True)
            return {node: one for node, one in zip(asked, answers, strict=True) if not isinstance(one, NodeLost)}

        return self._asking.wait(ask_each)

    def run_round(self, sent: list[Sent]) -> list[Returned]:
        """Run trials on disjoint ranks at once; what came back, in their order."""

        async def run_each() -> list[Returned]:
            return await asyncio.gather(*(Gang(one, self._asking).run() for one in sent))

        return self._asking.wait(run_each)

    def close(self) -> None:
        """End every node worker and its ranks, and the scheduler. Waits a few seconds at most."""
        with contextlib.suppress(Exception):
            self._asking.wait(lambda: asyncio.wait_for(self._asking.dismiss(), _LEAVE_WITHIN_S))
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=4)
        self._started.end()
        resource.setrlimit(resource.RLIMIT_NOFILE, self._open_files)


def _allow_open_files() -> tuple[int, int]:
    """Have as many open files as this process may: the head holds several connections to each node. What was allowed
    before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    return before
