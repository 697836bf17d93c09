"""Many nodes on one machine: an ssh that starts nothing, and processes that hold hundreds of real Dask workers each.

The head is the real one, from `--hosts` to the records; nodes join, answer and die as others do, over real TLS. Only
their ranks are not there: a keeper for all of a process answers at once what a plan asked for. So what a run takes is
what its head does.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hwlottery.cluster import dask_settings, node_main
from hwlottery.cluster.node_main import Summons, serve
from hwlottery.cluster.node_tasks import install
from hwlottery.cluster.orders import Part, PartResult, Prepared, RankResult, Warmth
from hwlottery.cluster.ssh import Ssh
from hwlottery.evidence import AnyReading, reading

PROCESSES = 2
_AT_ONCE = 4  # nodes started every tenth of a second: a process has one CPU for all of its nodes
BUSBW = 47.5  # GB/s, of every pair

# Saves what comes on its stdin under the host's name, then stays as long as the node holds its gate open.
_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
mkfifo "{folder}/$2.gate"
cat > "{folder}/$2.part" && mv "{folder}/$2.part" "{folder}/$2.json" && exec cat "{folder}/$2.gate"
"""


class IdleKeeper:
    """The keeper of all nodes of a process: it has every rank ready and every trial done at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(
        self, subjects: tuple[str, ...], env: tuple[tuple[str, str], ...], leader: str | None = None
    ) -> Prepared:
        """As ready as can be."""
        meeting = "192.0.2.1:1" if leader in subjects else None
        return Prepared(ready={one: Warmth(pid=0, threads=1, cpus=(), meeting=meeting) for one in subjects})

    def perform(self, part: Part) -> PartResult:
        """What the trial was to bring, from its first rank."""
        ranks = tuple(
            RankResult(subject=part.ranks[place], fate="returned", readings=tuple(_readings(part, place)))
            for place in part.local
        )
        return PartResult(node=part.nodes[part.local[0]], ranks=ranks)

    def died_idle(self) -> tuple[str, ...]:
        """None has."""
        return ()

    def abort(self, trial: str) -> None:
        """Nothing is under way."""

    def close(self) -> list[str]:
        """Nothing to end."""
        return []


def _readings(part: Part, place: int) -> Iterator[AnyReading]:
    if place or part.function != "pairs:reduce_together":
        return
    params = part.params
    for size in params["sizes"]:
        for metric, value in (("busbw", BUSBW), ("skew", 1e-6), ("wrong_elements", 0.0)):
            yield reading(f"all_reduce.{metric}", params["subject"], [value] * 20, bytes=size, **params["key"])
    for metric, value in (("latency", 1e-5), ("stalls", 0.0), ("wrong_elements", 0.0)):
        yield reading(
            f"all_reduce.{metric}", params["subject"], [value], bytes=params["latency_bytes"], **params["key"]
        )


@contextlib.contextmanager
def many_nodes() -> Iterator[Ssh]:
    """An ssh for `--hosts` of any names: a run's nodes are then workers in a few processes of this machine."""
    with tempfile.TemporaryDirectory(prefix="hwlottery-many-") as folder, contextlib.ExitStack() as stack:
        ssh = Path(folder) / "ssh"
        ssh.write_text(_SSH.format(folder=folder))
        ssh.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
        stack.callback(os.environ.__setitem__, "PATH", before)
        for index in range(PROCESSES):
            stack.enter_context(_process(folder, index))
        yield Ssh(python=("unused",))


@contextlib.contextmanager
def _process(folder: str, index: int) -> Iterator[None]:
    command = [sys.executable, "-m", "drills.many_nodes", folder, str(index)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.kill()


async def _serve_all(folder: Path, index: int, keeper: Any) -> None:
    """Serve the nodes whose summonses come, each PROCESSES-th of them."""
    running: dict[str, asyncio.Task[None]] = {}
    while True:
        new = [file for file in sorted(folder.glob("*.json")) if file.name not in running and _mine(file, index)]
        for file in new[:_AT_ONCE]:
            summons = msgspec.json.decode(file.read_bytes(), type=Summons)
            running[file.name] = asyncio.create_task(_be(summons, keeper, file.with_suffix(".gate")))
        await asyncio.sleep(0.1)


def _mine(file: Path, index: int) -> bool:
    return sum(file.name.encode()) % PROCESSES == index


async def _be(summons: Summons, keeper: Any, gate: Path) -> None:
    """Be one node, and end its ssh when the head is done with it."""
    held = os.open(gate, os.O_RDWR)
    try:
        await serve(summons, keeper, "127.0.0.1")
    finally:
        os.close(held)


def main(folder: str, index: str) -> None:
    """Be one of the processes."""
    dask_settings.apply()
    node_main.SILENT_FOR_S = 3600.0  # it would end all nodes of this process with the first that waits for the CPU
    keeper: Any = IdleKeeper(Path(folder))
    install(keeper)
    asyncio.run(_serve_all(Path(folder), int(index), keeper))


if __name__ == "__main__":
    main(*sys.argv[1:])
