"""Asking nodes: a function of ours is run in a node's worker, and a node that does not answer in time is lost.

A question is one message to the worker and one back, on a connection that is kept. (As Dask tasks the same cost the
head ten messages and four times the CPU time, which with hundreds of nodes is what a round takes.)
"""

import asyncio
import contextlib
import pickle
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .losses import Ending, why_lost
from .node_tasks import answer

_T = TypeVar("_T")
_LOOK_EVERY_S = 0.02


class NodeLost(Exception):
    """A node's worker is gone or does not answer; the message is one line."""


class Asking:
    """The head's end of the connections to nodes' workers. `lost` says of each node that is lost why."""

    def __init__(self, cluster: Any, ending: Callable[[str], Ending | None] = lambda _: None) -> None:
        """`cluster` is the SpecCluster whose scheduler the workers join; `ending` tells how a node's worker ended."""
        self._cluster = cluster
        self._ending = ending
        self._heard: dict[str, float] = {}  # when each node last answered; heartbeats are rarer
        self.lost: dict[str, str] = {}

    def here(self, node: str) -> bool:
        """Whether a node's worker is there."""
        return node in self._cluster.scheduler.aliases

    def lose(self, node: str, why: str) -> str:
        """Note that a node is lost; what was said of it first."""
        return self.lost.setdefault(node, why)

    def wait(self, answers: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run questions from a thread that may wait for their answers."""
        answered: _T = self._cluster.sync(answers)
        return answered

    async def dismiss(self) -> None:
        """Tell each worker to end, and wait until all that are not lost have left. A head that closed first would cut
        off whoever is just then connecting to it."""
        scheduler = self._cluster.scheduler
        leaving = {at for node, at in scheduler.aliases.items() if node not in self.lost and at in scheduler.workers}
        for address in leaving & scheduler.stream_comms.keys():
            with contextlib.suppress(OSError):  # it has just gone by itself
                scheduler.stream_comms[address].send({"op": "close", "reason": "the run has ended"})
        while not leaving.isdisjoint(scheduler.workers.keys()):
            await asyncio.sleep(_LOOK_EVERY_S)

    async def ask(self, node: str, within_s: float, function: Callable[..., Any], *args: Any) -> Any:
        """What the function answers on a node. Raises NodeLost, or what the function raises."""
        from distributed.protocol.serialize import deserialize

        scheduler = self._cluster.scheduler
        address = scheduler.aliases.get(node)
        if node in self.lost:
            raise NodeLost(self.lost[node])
        if address is None:
            raise NodeLost(await self._lose(node))
        question = pickle.dumps(answer), pickle.dumps((function, *args))
        try:
            said = await asyncio.wait_for(scheduler.rpc(address).run(function=question[0], args=question[1]), within_s)
        except TimeoutError:
            raise NodeLost(await self._lose(node, f"no answer within {within_s:.0f} s")) from None
        except OSError:  # Dask's CommClosedError is one
            raise NodeLost(await self._lose(node)) from None
        self._heard[node] = time.time()
        returned, value = pickle.loads(deserialize(said["result"].header, said["result"].frames))  # noqa: S301  # a node's own
        if not returned:
            raise value
        return value

    async def _lose(self, node: str, seen: str = "") -> str:
        """Find out why a node does not answer, and note it."""
        departed = self._cluster.scheduler.last_heard(node, self._heard.get(node, 0.0))
        return self.lose(node, await why_lost(departed, lambda: self._ending(node), seen))
