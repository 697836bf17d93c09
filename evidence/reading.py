"""Reading a run directory: untrusted input, streamed, with every defect kept as a Problem.

A run may come from a provider by e-mail. Nothing in it is executed, no link is followed, nothing outside the
directory is read, and lines and files have limits. What cannot be read is a problem, never a silent gap: any problem
makes the check `evidence.complete` not measured.
"""

import contextlib
import gc
import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from .errors import RunError
from .header import FORMAT, RunHeader
from .record_file import RECORD_FILES, one_line, records_in
from .records import AnyRecord, Event, Fact, Measurement, NotMeasured, TrialPlan
from .sequence import Problem, finish_problems, sequence_problems

LARGEST_FILE = 2**30
LARGEST_HEADER = 16 * 2**20
DEEPEST_FOLDER = 8
BASELINE = "baseline"  # the folder with what scoring needs of an earlier run
FOLDERS = ("telemetry", "logs", BASELINE)


class Run(Struct, kw_only=True):
    """A run as read. `problems` is empty only for a run that is whole. Records are sorted by number.

    `measurements` and `not_measured` hold the records in force: those of a trial that a cut run began twice count
    from its last beginning.
    """

    path: Path
    header: RunHeader
    plans: list[TrialPlan]
    facts: list[Fact]
    measurements: list[Measurement]
    not_measured: list[NotMeasured]
    events: list[Event]
    problems: list[Problem]
    last_number: int
    line_counts: dict[str, int]
    baseline: "Run | None" = None  # the earlier run that it is held against, from the copy that it carries

    @property
    def complete(self) -> bool:
        """Whether the evidence is whole: nothing lost, doubled, torn, unreadable, altered or unfinished."""
        return not self.problems

    def fact(self, subject: str, key: str) -> bool | int | float | str | None:
        """The last value seen of a fact, or None."""
        found = [fact.value for fact in self.facts if fact.subject == subject and fact.key == key]
        return found[-1] if found else None

    @property
    def started(self) -> datetime | None:
        """When the first segment began (UTC)."""
        return self.header.segments[0].start if self.header.segments else None

    @property
    def ended(self) -> datetime | None:
        """When the last event happened (UTC)."""
        return self.events[-1].time if self.events else None


def read_run(path: Path) -> Run:
    """Read a run directory. Raises RunError where it is none, or of a newer format, or its run.json is unreadable."""
    with collector_paused():
        return _read(path)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic garbage collector: half a million small objects without cycles would be walked over and over,
    which doubles the time of a large run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(path: Path, *, is_copy: bool = False) -> Run:
    problems: list[Problem] = []
    header = read_header(path)
    by_file: dict[str, list[AnyRecord]] = {name: _records(path, name, problems) for name in RECORD_FILES}
    numbers = {name: sorted([record.number or 0 for record in records]) for name, records in by_file.items()}
    every = sorted(chain.from_iterable(numbers.values()))
    problems += sequence_problems(every)
    problems += finish_problems(by_file["events.jsonl"], numbers, header)
    problems += checksum_problems(path)
    current = _in_force(by_file)
    baseline = None if is_copy else _baseline_of(path, header, problems)
    return Run(
        path=path,
        header=header,
        plans=_sorted(current["plan.jsonl"], TrialPlan),
        facts=_sorted(current["facts.jsonl"], Fact),
        measurements=_sorted(current["measurements.jsonl"], Measurement),
        not_measured=_sorted(current["measurements.jsonl"], NotMeasured),
        events=_sorted(current["events.jsonl"], Event),
        problems=problems,
        last_number=every[-1] if every else 0,
        line_counts={name: len(records) for name, records in by_file.items()},
        baseline=baseline,
    )


def carried_baseline(path: Path) -> Run | None:
    """The earlier run that a run directory carries a copy of; None where it carries none that is whole. Raises
    RunError."""
    return _baseline_of(path, read_header(path), [])


def _baseline_of(path: Path, header: RunHeader, problems: list[Problem]) -> Run | None:
    """The run that this one is held against, from its copy. A copy that is not there, or is not of that run, is a
    problem."""
    if header.baseline is None:
        return None
    folder = path / BASELINE
    if folder.is_symlink() or not _is_plain_file(folder / "SHA256SUMS"):
        problems.append(Problem(kind="missing", place=BASELINE, detail="the copy of the baseline is not there"))
        return None
    try:
        found = _read(folder, is_copy=True)
    except RunError as error:
        problems.append(Problem(kind="unreadable", place=BASELINE, detail=one_line(error)))
        return None
    # Telemetry, logs and a baseline of its own were not copied: its sums name them all the same.
    left_out = tuple(f"{name}/" for name in FOLDERS)
    whole = [one for one in found.problems if one.kind != "missing" or not one.place.startswith(left_out)]
    if not whole and (found.header.run_id, sha256_of(folder / "SHA256SUMS")) != (
        header.baseline.run_id,
        header.baseline.sha256,
    ):
        whole.append(Problem(kind="checksum", place="SHA256SUMS", detail="another run than run.json names"))
    problems += [msgspec.structs.replace(problem, place=f"{BASELINE}/{problem.place}") for problem in whole]
    return None if whole else found


def _instead_of_a_file(file: Path) -> str:
    """What stands where a file should."""
    if file.is_symlink():
        return f"{file.name} is a symbolic link, and no link is followed out of a run directory"
    return f"{file.name} is no plain file" if file.exists() else f"it has no {file.name}"


def read_header(path: Path) -> RunHeader:
    """Read run.json. Raises RunError, in one line, where the path is no run that this version can read."""
    file = path / "run.json"
    if not path.is_dir() or not _is_plain_file(file):
        raise RunError(f"{path} is not a run directory: {_instead_of_a_file(file)}")
    if file.stat().st_size > LARGEST_HEADER:
        raise RunError(f"{file} is over {LARGEST_HEADER >> 20} MiB: not read")
    content = _bytes_of(file)
    try:
        version = msgspec.json.decode(content, type=_Version).format
        if version > FORMAT:
            raise RunError(
                f"{path} has run format {version}, this hwlottery reads up to {FORMAT}: use a newer hwlottery"
            )
        return msgspec.json.decode(content, type=RunHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RunError(f"{file} cannot be read: {one_line(error)}") from error


class _Version(Struct):
    format: int


def _records(path: Path, name: str, problems: list[Problem]) -> list[AnyRecord]:
    """The records of one file; one that is not there, is a link or too large is a problem."""
    file = path / name
    if not _is_plain_file(file):
        problems.append(Problem(kind="missing", place=name, detail="the file is not there"))
        return []
    if file.stat().st_size > LARGEST_FILE:
        problems.append(_too_large(name))
        return []
    return records_in(file, problems)


def _too_large(name: str) -> Problem:
    return Problem(kind="unreadable", place=_shown(name), detail=f"over {LARGEST_FILE >> 30} GiB: not read")


_SUM_LINE = re.compile(r"(?P<sum>[0-9a-f]{64})  (?P<name>[^\x00-\x1f\x7f]{1,400})")


def checksum_problems(path: Path) -> Iterator[Problem]:
    """What SHA256SUMS does not confirm: altered, missing, unlisted or linked files, or sums that cannot be read."""
    file = path / "SHA256SUMS"
    if not _is_plain_file(file) or file.stat().st_size > LARGEST_HEADER:
        yield Problem(kind="missing", place="SHA256SUMS", detail="no checksums: the run did not finish")
        return
    lines = _bytes_of(file).decode("utf-8", "replace").splitlines()
    matches = [_SUM_LINE.fullmatch(line) for line in lines]
    if not all(matches):
        yield Problem(kind="unreadable", place="SHA256SUMS", detail="a line is no checksum")
    listed = {found["name"]: found["sum"] for found in matches if found}
    if len(listed) != len(lines):
        yield Problem(kind="duplicate", place="SHA256SUMS", detail="a file stands more than once")
    present = {entry.relative_to(path).as_posix(): entry for entry in _entries(path)}
    for name in sorted(listed.keys() - present.keys()):
        yield Problem(kind="missing", place=_shown(name), detail="listed in SHA256SUMS, not there")
    for name, entry in sorted(present.items()):
        if entry.is_symlink() or not entry.is_file():
            yield Problem(kind="foreign", place=_shown(name), detail="a link or special file: not followed")
        elif name not in listed:
            yield Problem(kind="foreign", place=_shown(name), detail="not listed in SHA256SUMS")
        elif entry.stat().st_size > LARGEST_FILE:
            yield _too_large(name)
        elif sha256_of(entry) != listed[name]:
            yield Problem(kind="checksum", place=_shown(name), detail="differs from its SHA-256")


def _entries(path: Path) -> Iterator[Path]:
    """What the sums must cover, links included but never followed."""
    for name in ("run.json", *RECORD_FILES):
        if (path / name).exists() or (path / name).is_symlink():
            yield path / name
    for folder in (path / name for name in FOLDERS):
        if folder.is_symlink():
            yield folder
        elif folder.is_dir():
            yield from entries_below(folder)


def entries_below(folder: Path) -> Iterator[Path]:
    """What lies in a folder and its folders, links among it but not followed; a folder too deep stands for itself."""
    left = [(folder, 1)]
    while left:
        place, depth = left.pop()
        for entry in place.iterdir():
            if entry.is_symlink() or not entry.is_dir() or depth >= DEEPEST_FOLDER:
                yield entry
            else:
                left.append((entry, depth + 1))


def _in_force(by_file: dict[str, list[AnyRecord]]) -> dict[str, list[AnyRecord]]:
    """Leave out what a trial wrote before its last beginning: a cut run that went on began it again."""
    begun: dict[str, int] = {}
    for plan in by_file["plan.jsonl"]:
        if plan.trial is not None:
            begun[plan.trial] = max(begun.get(plan.trial, 0), plan.number or 0)
    since = begun.get
    return {
        name: [r for r in records if r.trial is None or (r.number or 0) >= since(r.trial, 0)]
        for name, records in by_file.items()
    }


_number = attrgetter("number")
_R = TypeVar("_R", Fact, Measurement, NotMeasured, Event, TrialPlan)


def _sorted(records: list[AnyRecord], kind: type[_R]) -> list[_R]:
    return sorted([record for record in records if isinstance(record, kind)], key=_number)


def _is_plain_file(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RunError(f"cannot read {file}: {error.strerror}") from error


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _shown(name: str) -> str:
    return name.encode("ascii", "backslashreplace").decode()[:200]
