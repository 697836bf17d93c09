"""The process of a node's worker: `python -m hwlottery.cluster.node_main`, told on stdin what to be.

It holds a Dask worker with a few threads, and no torch. When the head ends or falls silent for 30 s it kills its
ranks and ends, whatever they are doing.
"""

import asyncio
import importlib
import importlib.metadata
import os
import platform
import signal
import sys
import threading
import time

import msgspec
from msgspec import Struct

from .. import __version__
from . import dask_settings
from .bundle_main import UNLIKE
from .identity import Identity
from .network import address_towards, host_and_port, interface_of
from .node import Beside, NodeConfig, NodeKeeper
from .node_tasks import install

SILENT_FOR_S = 30.0
_ASK_EVERY_S = 5.0
# Slurm and others that end a job signal all its processes at once. A node that ended before its head was stopped would
# be lost, in the record, and blamed for it: it gives the head this long, which ends it as soon as it stops itself.
_HEAD_FIRST_S = 6.0


class Summons(Struct, frozen=True, kw_only=True):
    """What arrives on stdin, one JSON document: where the head is, the run's identity, and which node this is.

    `host` is the address to listen at; None for this node's own on the route to the head. `env` is added to the
    environment. `software` is what this node's must be like, by name.
    """

    scheduler: str
    identity: Identity
    node: NodeConfig
    host: str | None = None
    env: dict[str, str] = {}
    software: dict[str, str] = {}


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


def own_software() -> dict[str, str]:
    """What must be alike on head and nodes: versions of hwlottery, torch and Python."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "absent"
    return {"hwlottery": __version__, "torch": torch, "python": platform.python_version()}


def unlike(wanted: dict[str, str], own: dict[str, str]) -> str:
    """How this node's software differs from what is wanted, in one line; empty where it does not."""
    return ", ".join(
        f"has {name} {own.get(name, 'absent')}, not {version}"
        for name, version in wanted.items()
        if own.get(name) != version
    )


async def serve(summons: Summons, keeper: NodeKeeper, host: str) -> None:
    """Be the node's Dask worker until the head closes."""
    from .silent import SilentWorker

    heard = _LastHeard(keeper)
    worker = await SilentWorker(
        summons.scheduler,
        name=summons.node.name,
        nthreads=1,  # of Dask's own tasks, of which there are none
        host=host,
        security=summons.identity.security(),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        local_directory=str(keeper.folder),
    )
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
    different = unlike(summons.software, own_software())
    if different:
        sys.exit(UNLIKE + different)
    os.environ.update(summons.env)
    dask_settings.apply()
    host = summons.host or address_towards(*host_and_port(summons.scheduler))
    keeper = NodeKeeper(summons.node, address=host, interface=interface_of(host) or "lo")
    install(keeper)
    keeper.watch_with(_beside(summons.node.beside))
    signal.signal(signal.SIGTERM, lambda *_: threading.Timer(_HEAD_FIRST_S, end, (keeper,)).start())
    try:
        asyncio.run(serve(summons, keeper, host))
    finally:
        end(keeper)


if __name__ == "__main__":
    main()
