"""The process of a node's worker: `python -m hwlottery.cluster.node_main`, told on stdin what to be.

It holds a Dask worker with a few threads, and no torch. When the head ends or falls silent for 30 s it kills its
ranks and ends, whatever they are doing.
"""

import asyncio
import importlib
import os
import signal
import sys
import threading
import time

import msgspec
from msgspec import Struct

from . import dask_settings
from .identity import Identity
from .node import Beside, NodeConfig, NodeKeeper, install

SILENT_FOR_S = 30.0
_ASK_EVERY_S = 5.0


class Summons(Struct, frozen=True, kw_only=True):
    """What arrives on stdin, one JSON document: where the head is, the run's identity, and which node this is."""

    scheduler: str
    identity: Identity
    host: str
    node: NodeConfig


class _LastHeard:
    """When the head last answered; a thread of its own ends the process when that is too long ago."""

    def __init__(self, keeper: NodeKeeper) -> None:
        self.at = time.monotonic()
        self._keeper = keeper

    def watch(self) -> None:
        while time.monotonic() - self.at < SILENT_FOR_S:
            time.sleep(1.0)
        end(self._keeper)


def end(keeper: NodeKeeper) -> None:
    """Kill the ranks and end. Not by returning: a rank stuck in the kernel would block Python's exit."""
    keeper.close()
    os._exit(0)


async def serve(summons: Summons, keeper: NodeKeeper) -> None:
    """Be the node's Dask worker until the head closes."""
    from distributed import Worker

    heard = _LastHeard(keeper)
    worker = await Worker(
        summons.scheduler,
        name=summons.node.name,
        nthreads=len(summons.node.ranks) + 4,
        host=summons.host,
        security=summons.identity.security(),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        local_directory=str(keeper.folder),
    )
    worker.http_server.stop()  # Dask's HTTP server has no routes here and no TLS
    threading.Thread(target=heard.watch, daemon=True).start()
    asking = asyncio.create_task(_ask_head(worker, heard))
    await worker.finished()
    asking.cancel()


async def _ask_head(worker: object, heard: _LastHeard) -> None:
    """Ask the head for a sign of life every few seconds. A refusal or a silence leaves the clock running."""
    while True:
        try:
            await asyncio.wait_for(worker.scheduler.identity(n_workers=0), timeout=_ASK_EVERY_S)  # type: ignore[attr-defined]  # distributed is untyped
            heard.at = time.monotonic()
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(_ASK_EVERY_S)


def _beside(name: str | None) -> Beside | None:
    """What watches beside the work, by its name "module:factory" within this package."""
    if name is None:
        return None
    module, _, factory = name.partition(":")
    if not module.startswith("hwlottery."):
        raise ValueError(f"not ours: {name!r}")
    made: Beside = getattr(importlib.import_module(module), factory)()
    return made


def main() -> None:
    """Read the summons from stdin and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the head is who is asked to stop
    summons = msgspec.json.decode(sys.stdin.buffer.read(), type=Summons)
    dask_settings.apply()
    keeper = NodeKeeper(summons.node)
    install(keeper)
    keeper.watch_with(_beside(summons.node.beside))
    signal.signal(signal.SIGTERM, lambda *_: end(keeper))
    try:
        asyncio.run(serve(summons, keeper))
    finally:
        end(keeper)


if __name__ == "__main__":
    main()
