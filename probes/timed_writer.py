"""torch's own checkpoint writer, with the time of its parts. The system calls and their order stay as they are."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter


class TimedFile:
    """A file opened for writing that adds up its write() calls."""

    def __init__(self, opened: Any, times: PartTimes) -> None:
        self._opened = opened
        self._times = times

    def write(self, content: Any) -> int:
        """Write, and keep an error: torch's zip writer turns it into one that does not say what happened."""
        start = time.perf_counter()
        try:
            written: int = self._opened.write(content)
        except OSError as error:
            self._times.refused = error
            raise
        self._times.write_s += time.perf_counter() - start
        return written

    def close(self) -> None:
        """Closing is left to the stream's context, which syncs first."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)


class PartTimes:
    """Seconds of a save's parts on this rank."""

    def __init__(self) -> None:
        self.write_s = 0.0
        self.sync_s = 0.0
        self.data_s = 0.0  # the whole of writing this rank's data file
        self.commit_s = 0.0
        self.refused: OSError | None = None  # what the filesystem said to a write

    @property
    def stage_s(self) -> float:
        """What writing the data file took beside write and fsync: device to host copy and serialisation, as far as
        they were not hidden behind the writing."""
        return max(0.0, self.data_s - self.write_s - self.sync_s)


class _TimedFileSystem(FileSystem):
    def __init__(self, times: PartTimes) -> None:
        self._times = times

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Generator[Any, None, None]:
        with Path(path).open(mode) as opened:
            yield TimedFile(opened, self._times)
            start = time.perf_counter()
            opened.flush()
            self._times.write_s += time.perf_counter() - start
            start = time.perf_counter()
            os.fsync(opened.fileno())
            self._times.sync_s += time.perf_counter() - start


class TimedWriter(FileSystemWriter):
    """A FileSystemWriter whose `times` say where a save's time went.

    Its fsync is made here rather than by torch, at the same place, so that it can be timed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, sync_files=False)
        self.times = PartTimes()
        self.fs = _TimedFileSystem(self.times)

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Write this rank's data file, with its fsync. Raises OSError where the filesystem refuses."""
        start = time.perf_counter()
        try:
            done = super().write_data(plan, planner)
        except RuntimeError as error:
            if self.times.refused is None:
                raise
            raise self.times.refused from error
        self.times.data_s = time.perf_counter() - start
        return done

    def finish(self, metadata: Any, results: Any) -> None:
        """Commit, on the first rank: write, sync and rename the metadata, and sync the directory, which torch does
        not and without which the new names may not outlive a crash."""
        write_s, sync_s = self.times.write_s, self.times.sync_s
        start = time.perf_counter()
        super().finish(metadata, results)
        sync_directory(Path(self.path))
        self.times.commit_s = time.perf_counter() - start
        self.times.write_s, self.times.sync_s = write_s, sync_s  # the metadata's belong to the commit


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
