"""Writing a run directory: append-only, numbered from one sequence, on disk when a trial ends."""

import contextlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from .errors import RunError
from .header import RunHeader
from .plain_words import in_plain_words
from .reading import BASELINE, FOLDERS, Run, entries_below, read_header, read_run, sha256_of
from .record_file import RECORD_FILES
from .records import AnyRecord, Event, Fact, Measurement, NotMeasured, TrialPlan

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_FILE_OF: dict[type, str] = {
    Fact: "facts.jsonl",
    Measurement: "measurements.jsonl",
    NotMeasured: "measurements.jsonl",
    Event: "events.jsonl",
    TrialPlan: "plan.jsonl",
}


class RunWriter:
    """The one writer of a run directory. Make it with `create` or `resume`; records get their numbers here."""

    def __init__(self, path: Path, header: RunHeader, last_number: int, counts: Counter[str]) -> None:
        self.path = path
        self.header = header
        self._last = last_number
        self._counts = counts
        self._encoder = msgspec.json.Encoder()
        self._files = {name: os.open(path / name, _APPEND, 0o644) for name in RECORD_FILES}

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> "RunWriter":
        """Make a new run directory. Raises RunError where it exists or cannot be made."""
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise RunError(f"{path} exists already: give another --out, or go on with --resume {path}") from None
        except OSError as error:
            raise RunError(f"cannot make {path}: {error.strerror}") from error
        for folder in ("logs", "telemetry"):
            (path / folder).mkdir()
        writer = cls(path, header, 0, Counter())
        writer.write_header(header)
        return writer

    def keep_baseline(self, baseline: Run) -> None:
        """Copy what scoring needs of the run that this one is held against, so that it can be judged again wherever it
        goes. Raises OSError."""
        folder = self.path / BASELINE
        folder.mkdir()
        for name in ("run.json", *RECORD_FILES, "SHA256SUMS"):
            shutil.copyfile(baseline.path / name, folder / name)

    @classmethod
    def join(cls, path: Path, accepted: Run, header: RunHeader) -> "RunWriter":
        """Make a new run directory that begins as a copy of an accepted run: its records, logs and telemetry.

        The accepted run stays as it is. Raises RunError where the directory exists or cannot be made, OSError where the
        copy cannot be written.
        """
        cls.create(path, header).close()
        for file in evidence_files(accepted.path):
            place = path / file.relative_to(accepted.path)
            if place.name != "run.json" or place.parent != path:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
        return cls(path, header, accepted.last_number, Counter(accepted.line_counts))

    @classmethod
    def resume(cls, path: Path) -> tuple["RunWriter", Run]:
        """Open a run that was cut short, and what it holds so far.

        A last line torn by the cut is moved to logs/ and said in an event. Raises RunError for what is no run, and for
        one that has finished (with its checksums, which come last): that one is left as it is.
        """
        read_header(path)
        _refuse_links(path)
        if (path / "SHA256SUMS").exists():
            raise RunError(f"{path} has finished: there is nothing to go on with")
        torn = [_set_torn_tail_aside(path, name) for name in RECORD_FILES]
        run = read_run(path)
        for name in ("verdict.json", "report.html"):
            (path / name).unlink(missing_ok=True)
        writer = cls(path, run.header, run.last_number, Counter(run.line_counts))
        for tail in filter(None, torn):
            writer.write([Event(time=now(), kind="torn_tail", severity="warning", detail=tail)])
        return writer, run

    def write_header(self, header: RunHeader) -> None:
        """Replace run.json in one step."""
        self.header = header
        replace_file(self.path / "run.json", msgspec.json.format(self._encoder.encode(header), indent=2) + b"\n")

    def write(self, records: Iterable[AnyRecord]) -> None:
        """Number the records and append each to its file; they are on disk when this returns.

        Written one by one in the order of their numbers: where the disk fills up, only the last line is torn, and a
        resume goes on without a gap. Raises OSError then.
        """
        touched: set[str] = set()
        for record in records:
            name = file_of(record)
            numbered = msgspec.structs.replace(in_plain_words(record), number=self._last + 1)
            _write_all(self._files[name], self._encoder.encode(numbered) + b"\n")
            self._last += 1
            self._counts[name] += 1
            touched.add(name)
        for name in touched:
            os.fsync(self._files[name])

    def log_path(self, name: str) -> Path:
        """Where a trial's log goes: what ranks and tools printed."""
        return self.path / "logs" / (re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".")[:120] or "log")

    def finish(self) -> None:
        """Write run_finished, the run's last record, and the checksums of all files."""
        counts = self._counts.copy()
        counts["events.jsonl"] += 1
        self.write([Event(time=now(), kind="run_finished", last_number=self._last + 1, counts=dict(counts))])
        self.close()
        write_checksums(self.path)

    def close(self) -> None:
        """Close the files; the run stays valid and can be resumed."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.close(file)


def file_of(record: AnyRecord) -> str:
    """The name of the file that a record goes to."""
    return _FILE_OF[type(record)]


def _refuse_links(path: Path) -> None:
    """A run that is gone on with is written to: a link in it could lead anywhere."""
    for entry in path.rglob("*"):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise RunError(f"{entry} is a link or special file: a run with one is not gone on with")


def now() -> datetime:
    """The time, UTC."""
    return datetime.now(UTC)


def write_checksums(path: Path) -> None:
    """Write SHA256SUMS over every file of the evidence, in the form `sha256sum -c` reads."""
    lines = [f"{sha256_of(file)}  {file.relative_to(path).as_posix()}\n" for file in evidence_files(path)]
    replace_file(path / "SHA256SUMS", "".join(lines).encode())


def evidence_files(path: Path) -> Iterator[Path]:
    """Each file that the checksums cover, in order: the records, run.json, telemetry, logs and a baseline's copy."""
    top = [path / name for name in ("run.json", *RECORD_FILES)]
    below = [entry for name in FOLDERS if (path / name).is_dir() for entry in entries_below(path / name)]
    yield from sorted(file for file in (*top, *below) if file.is_file() and not file.is_symlink())


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def replace_file(file: Path, content: bytes) -> None:
    """Put a file in place in one step, on disk; what stood there is replaced, and a link is not followed.

    Raises OSError, and leaves what was there.
    """
    descriptor, beside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        Path(beside).chmod(0o644)
        Path(beside).replace(file)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise


def _set_torn_tail_aside(path: Path, name: str) -> str | None:
    """Cut a last line without its line end off a record file into logs/. Returns what to say of it."""
    file = path / name
    if file.is_symlink() or not file.is_file():
        return None
    content = file.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole == len(content):
        return None
    (path / "logs").mkdir(exist_ok=True)
    with (path / "logs" / f"torn-{name}").open("ab") as kept:
        kept.write(content[whole:] + b"\n")
    with file.open("rb+") as opened:
        opened.truncate(whole)
    return f"{name}: a last line of {len(content) - whole} bytes was torn; kept as logs/torn-{name}"
