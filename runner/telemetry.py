"""Telemetry of nodes: sampled beside the work on each node, kept in closed parquet parts by the head."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..cluster.node_tasks import here
from ..evidence import AnyReading
from ..sensors.sampler import Sampler, Window

_sampler: Sampler | None = None


class _Beside:
    """The sampler as the node's keeper uses it: around each trial."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def begin(self) -> Any:
        return self._sampler.begin()

    def end(self, token: Any) -> list[AnyReading]:
        return self._sampler.end(token)


def watch() -> _Beside:
    """Start the sensors of this node's worker. The factory that cluster.node_main calls by name."""
    global _sampler  # noqa: PLW0603  # a process is one node's worker for its whole life
    keeper = here()
    _sampler = Sampler(node=keeper.config.name, own_pids=lambda: {os.getpid(), *keeper.pids()})
    _sampler.start()
    return _Beside(_sampler)


def take_windows_here() -> list[Window]:
    """Task: the closed one-minute windows of the node that runs it, since the last time."""
    return _sampler.take_windows() if _sampler else []


class TelemetryFiles:
    """Writes windows to telemetry/NODE/NNNN.parquet, each part closed at once: one without its footer is lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writing = threading.Lock()

    def add(self, node: str, windows: Sequence[Window]) -> None:
        """Write one closed part; nothing for no windows."""
        if not windows:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {name: [getattr(window, name) for window in windows] for name in Window.__struct_fields__}
        with self._writing:
            place = self._folder / node
            place.mkdir(parents=True, exist_ok=True)
            part = place / f"{len(list(place.glob('*.parquet'))):04d}.parquet"
            pq.write_table(pa.table(columns), part, compression="zstd")
