"""Logs of what hosts and processes print, however much that is: the beginning and the end are kept, and it is said how
much was left out between them."""

import contextlib
import os
import selectors
import threading
import time
from pathlib import Path

BEGINNING = 2 << 20
END = 256 << 10  # in memory until the process ends, of each that prints more than the beginning holds
_CHUNK = 64 << 10
_DRAINED = 64  # chunks: what a pipe holds, and no more of what never ends
_PAUSE_S = 0.005  # after a round in which somebody printed too much: 13 MB/s of it are taken, and cost little
_LOOK_S = 0.5
_OF_A_RANK = 32 << 10  # each of beginning and end
_CUT_FROM = 4 << 20
_LINE = 4096


def cut(left_out: int) -> str:
    """The line that stands where something was left out."""
    return f"\n[cut here: {left_out / 1e6:.2f} MB left out]\n"


def shortened(text: str, most: int = 128 << 10) -> str:
    """A text of at most so many characters, and the line that says what is missing from its middle."""
    half = most // 2
    return text if len(text) <= most else text[:half] + cut(len(text) - 2 * half) + text[-half:]


class BoundedLog:
    """A log's file. What cannot be written, on a full disk, is dropped: a log costs no run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._out = file.open("ab", buffering=0)
        self._room = BEGINNING
        self._end = bytearray()
        self._left_out = 0

    @property
    def full(self) -> bool:
        """Whether the beginning is written, and only the end is still kept."""
        return self._room == 0

    def write(self, content: bytes) -> None:
        """Add what was printed."""
        now = content[: self._room]
        self._room -= len(now)
        if now:
            with contextlib.suppress(OSError):
                self._out.write(now)
        self._end += content[len(now) :]
        if len(self._end) > 2 * END:
            self._trim()

    def last_line(self) -> str:
        """The last line that was printed so far."""
        content = bytes(self._end[-_LINE:])
        if not content:
            with self._file.open("rb") as opened:
                opened.seek(max(0, opened.seek(0, os.SEEK_END) - _LINE))
                content = opened.read()
        lines = content.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Write the end."""
        self._trim()
        with contextlib.suppress(OSError):
            if self._left_out:
                self._out.write(cut(self._left_out).encode())
            self._out.write(self._end)
        self._out.close()

    def _trim(self) -> None:
        over = max(0, len(self._end) - END)
        self._left_out += over
        del self._end[:over]


class Logs:
    """Copies what processes print into their logs, in one thread for all. Close it when they have ended."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._open: dict[BoundedLog, int] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, file: Path) -> tuple[BoundedLog, int]:
        """A log, and the descriptor that a process is to print to; close it here once the process has it."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        log = BoundedLog(file)
        with self._lock:
            self._open[log] = reading
            self._selector.register(reading, selectors.EVENT_READ, log)
            if self._thread is None:
                self._thread = threading.Thread(target=self._copy, daemon=True, name="logs")
                self._thread.start()
        return log, writing

    def last_line(self, log: BoundedLog) -> str:
        """The last line of a process that has ended: what still stands in its pipe is taken first."""
        self._drain(log)
        return log.last_line()

    def close(self) -> None:
        """Take what there is, and write the end of each log. Whoever still prints is cut off."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        for log in [*self._open]:
            self._drain(log)
            with self._lock:
                self._finish(log)
        self._selector.close()

    def _copy(self) -> None:
        while not self._ended.is_set():
            ready = [key.data for key, _ in self._selector.select(_LOOK_S)]
            for log in ready:
                self._take(log)
            if any(log.full for log in ready):
                time.sleep(_PAUSE_S)

    def _drain(self, log: BoundedLog) -> None:
        for _ in range(_DRAINED):
            if not self._take(log):
                return

    def _take(self, log: BoundedLog) -> bool:
        """Take one chunk; False where there is none now."""
        with self._lock:
            if log not in self._open:
                return False
            try:
                content = os.read(self._open[log], _CHUNK)
            except BlockingIOError:
                return False
            if content:
                log.write(content)
            else:
                self._finish(log)
            return bool(content)

    def _finish(self, log: BoundedLog) -> None:
        reading = self._open.pop(log, None)
        if reading is not None:
            self._selector.unregister(reading)
            os.close(reading)
            log.close()


class GrowingLog:
    """The log of a rank, which appends to the file itself: while it grows beyond measure its middle is taken out."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._left_out = 0
        self._end = b""

    def watch(self) -> None:
        """Cut the file where it has become large. What is appended next stands behind its beginning."""
        with contextlib.suppress(OSError):
            size = self._file.stat().st_size
            if size > _CUT_FROM:
                self._end = self._from(max(_OF_A_RANK, size - _OF_A_RANK))
                os.truncate(self._file, _OF_A_RANK)
                self._left_out += size - _OF_A_RANK

    def take(self) -> str:
        """What is kept of it; the file is removed."""
        try:
            size = self._file.stat().st_size
            with self._file.open("rb") as opened:
                beginning = opened.read(_OF_A_RANK)
            end = (self._end + self._from(max(_OF_A_RANK, size - _OF_A_RANK)))[-_OF_A_RANK:]
        except OSError:
            return ""
        self._file.unlink(missing_ok=True)
        left_out = max(0, self._left_out + size - len(beginning) - len(end))
        return (
            beginning.decode("utf-8", "replace") + (cut(left_out) if left_out else "") + end.decode("utf-8", "replace")
        )

    def _from(self, start: int) -> bytes:
        with self._file.open("rb") as opened:
            opened.seek(start)
            return opened.read(_OF_A_RANK)
