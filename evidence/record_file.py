"""One record file of a run: lines of JSON, decoded a block at a time, with every defect kept as a Problem.

A block of whole lines is decoded in one go. Where anything in it is not as it should be it is decoded again line by
line, so that each defect has its place and the next line goes on.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from .records import AnyRecord, Event, Fact, Measurement, NotMeasured, TrialPlan
from .sequence import Problem

LONGEST_LINE = 4 * 2**20
MOST_RECORDS = 2_000_000  # of a file; 512 nodes of 8 accelerators have 400,000 measurements
MOST_SAMPLES = 40_000_000  # of a run, whose short numbers in text grow to many times that in memory
MOST_UNREADABLE = 10_000  # lines of a file
_BLOCK = 2**20

RECORD_FILES = ("plan.jsonl", "facts.jsonl", "measurements.jsonl", "events.jsonl")
_TYPE_OF: dict[str, object] = {
    "plan.jsonl": TrialPlan,
    "facts.jsonl": Fact,
    "measurements.jsonl": Measurement | NotMeasured,
    "events.jsonl": Event,
}


def records_in(file: Path, problems: list[Problem]) -> list[AnyRecord]:
    """The records of a plain file, whose name says of which kind; what cannot be decoded is a problem."""
    found = _File(file.name, problems)
    with file.open("rb") as opened:
        for block in _blocks(opened):
            if not (found.take_whole(block) or found.take_lines(block)):
                break
    return found.records


def _blocks(opened: BinaryIO) -> Iterator[bytes]:
    """About a megabyte each, ended by a line's end; a line that is too long is cut, and the last one may be torn."""
    while block := opened.read(_BLOCK):
        yield block if block.endswith(b"\n") else block + opened.readline(LONGEST_LINE + 1)


class _File:
    """A record file while it is read. `place` is the number of lines that were taken."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        self.name = name
        self.records: list[AnyRecord] = []
        self._problems = problems
        self._before = len(problems)
        self._place = 0
        self._samples = 0
        self._decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(_TYPE_OF[name])

    def take_whole(self, block: bytes) -> bool:
        """Take a block in one go. False, and nothing is taken, where some line of it is not as it should be."""
        lines = block.count(b"\n")
        if not block.endswith(b"\n") or self._place + lines > MOST_RECORDS or _ends_too_long(block):
            return False
        try:
            found = self._decoder.decode_lines(block)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        samples = self._samples + _samples_in(found)
        if len(found) != lines or None in [record.number for record in found] or samples > MOST_SAMPLES:
            return False
        self.records += found
        self._place += lines
        self._samples = samples
        return True

    def take_lines(self, block: bytes) -> bool:
        """Take a block line by line, each defect with its place. False where nothing after it is read."""
        for line in BytesIO(block):
            self._place += 1
            if self._is_beyond_limits(line):
                return False
            try:
                record = self._decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                self._unreadable(one_line(error))
                continue
            if record.number is None:
                self._unreadable("no number")
                continue
            self._samples += _samples_in((record,))
            self.records.append(record)
        return True

    def _is_beyond_limits(self, line: bytes) -> bool:
        if len(line) > LONGEST_LINE:
            self._unreadable(f"over {LONGEST_LINE >> 20} MiB")
        elif self._place > MOST_RECORDS:
            self._unreadable("too many lines")
        elif not line.endswith(b"\n"):
            self._unreadable("torn: no line end")
        elif self._samples > MOST_SAMPLES:
            self._unreadable("too many samples: ended here")
        elif len(self._problems) - self._before > MOST_UNREADABLE:
            self._unreadable("too many unreadable lines: ended here")
        else:
            return False
        return True

    def _unreadable(self, detail: str) -> None:
        self._problems.append(Problem(kind="unreadable", place=f"{self.name}:{self._place}", detail=detail))


def _ends_too_long(block: bytes) -> bool:
    """Only a block's last line can be too long: the others lie in what was read of it at once."""
    return len(block) > LONGEST_LINE and len(block) - 1 - block.rfind(b"\n", 0, -1) > LONGEST_LINE


def _samples_in(records: Sequence[AnyRecord]) -> int:
    return sum([len(one.samples) for one in records if type(one) is Measurement and one.samples is not None])


def one_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
