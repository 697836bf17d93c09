"""retention: is a checkpoint that was left behind still there, as it was left?

The first node looks for what an earlier run left below the place that the user named, file by file, by the hashes in
that run's own records. Where nothing was left, or something of it is lost, it leaves a checkpoint of random bytes for
the next run. It never removes anything, and follows no link in that place.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..cluster import Cluster, RankContext, Trial
from ..evidence import AnyReading, Fill, LeftCheckpoint, LeftFile, Missing, Noticed, Observed, Params, reading
from .protocol import Plan

METRICS = ("retention.gone", "retention.altered", "retention.age")
LEFT = "retention.left"
MIB = 1 << 20
_USUAL, _SLOWEST = 3e8, 2e7  # bytes/s, for the plan's times alone


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionSettings:
    """So many `files` of `mib_per_file` are left."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    mib_per_file: int = 16
    files: int = 4


class Retention:
    """One trial on the first rank; none where the user named no place."""

    name: ClassVar[str] = "retention"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = METRICS
    settings: ClassVar[type] = RetentionSettings

    def plan(self, cluster: Cluster, settings: RetentionSettings, seed: int) -> Plan:
        """Look for what was left, and leave a checkpoint where nothing whole is there."""
        if cluster.keep is None or not cluster.ranks:
            return
        earlier = cluster.keep.earlier
        moved = settings.files * settings.mib_per_file * MIB + sum(
            file.size for file in (earlier.files if earlier else ())
        )
        yield [
            Trial(
                function="retention:look_and_leave",
                ranks=cluster.ranks[:1],
                params={
                    "directory": cluster.keep.directory,
                    "earlier": msgspec.json.encode(earlier).decode() if earlier else "",
                    "files": settings.files,
                    "bytes_per_file": settings.mib_per_file * MIB,
                },
                expected_s=1 + moved / _USUAL,
                deadline_s=60 + moved / _SLOWEST,
                fills=_fills(cluster.keep.directory, earlier) if earlier else (),
            )
        ]


def _fills(directory: str, left: LeftCheckpoint) -> tuple[Fill, ...]:
    return tuple(Fill(metric=metric, subject="cluster", params=_key(directory, left)) for metric in METRICS)


def _key(directory: str, left: LeftCheckpoint) -> Params:
    return {"path": f"{directory}/{left.folder}", "left": f"{left.time:%Y-%m-%d}"}


# On the rank ------------------------------------------------------------------------------------------------------


def look_and_leave(_context: RankContext, params: Mapping[str, Any]) -> list[AnyReading]:
    """What of the earlier checkpoint is gone or altered; and the record of the one that is there for the next run."""
    place = Path(params["directory"])
    earlier = msgspec.json.decode(params["earlier"], type=LeftCheckpoint) if params["earlier"] else None
    found: list[AnyReading] = []
    whole = False
    if earlier is not None:
        found, whole = _looked_for(place, earlier)
    if whole and earlier is not None:
        return [*found, Observed(subject="cluster", key=LEFT, value=msgspec.json.encode(earlier).decode())]
    return [*found, *_leave(place, int(params["files"]), int(params["bytes_per_file"]))]


def _looked_for(place: Path, left: LeftCheckpoint) -> tuple[list[AnyReading], bool]:
    """How many files are gone or altered; not measured where that cannot be seen."""
    key, gone, altered = _key(str(place), left), 0, 0
    age = (datetime.now(UTC) - left.time).total_seconds()
    try:
        for file in left.files:
            same = _as_left(place / left.folder, file)
            gone += same is None
            altered += same is False
    except OSError as error:
        why = f"{error.strerror}: {key['path']}"
        return [Missing(metric=m, subject="cluster", reason="raised", detail=why, params=key) for m in METRICS], False
    numbers = dict(zip(METRICS, (gone, altered, max(age, 1e-9)), strict=True))
    found: list[AnyReading] = [reading(metric, "cluster", number, **key) for metric, number in numbers.items()]
    if gone or altered:
        said = f"the checkpoint left on {key['left']} at {key['path']} is {'gone' if gone else 'altered'}"
        found.append(Noticed(kind="note", subject="cluster", severity="warning", detail=said))
    return found, not gone and not altered


def _as_left(folder: Path, file: LeftFile) -> bool | None:
    """Whether a file is as it was left; None where it is gone, or a link or something else stands in its place."""
    try:
        within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    try:
        descriptor = os.open(file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    finally:
        os.close(within)
    with os.fdopen(descriptor, "rb") as opened:
        seen = os.fstat(opened.fileno())
        if not stat.S_ISREG(seen.st_mode):
            return None
        if (seen.st_size, seen.st_mtime_ns) != (file.size, file.mtime_ns):
            return False
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def _leave(place: Path, files: int, size: int) -> list[AnyReading]:
    """Leave a checkpoint of random bytes, and the record of it. What cannot be left is said, and taken back."""
    now = datetime.now(UTC)
    folder = place / f"hwlottery-kept-{now:%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
    try:
        folder.mkdir()
        try:
            left = tuple(_written(folder / f"part-{number}.bin", size) for number in range(files))
            _to_disk(folder)
            _to_disk(place)
        except OSError:
            _take_back(folder, files)
            raise
    except OSError as error:
        said = f"no checkpoint was left in {place}: {error.strerror}"
        return [Noticed(kind="note", subject="cluster", severity="warning", detail=said)]
    told = LeftCheckpoint(folder=folder.name, time=now, files=left)
    return [Observed(subject="cluster", key=LEFT, value=msgspec.json.encode(told).decode())]


def _written(file: Path, size: int) -> LeftFile:
    """Write so many random bytes, hashed as they are written."""
    hashed = hashlib.sha256()
    with file.open("xb") as opened:
        for start in range(0, size, MIB):
            chunk = os.urandom(min(MIB, size - start))
            hashed.update(chunk)
            opened.write(chunk)
        opened.flush()
        os.fsync(opened.fileno())
    return LeftFile(name=file.name, size=size, mtime_ns=file.stat().st_mtime_ns, sha256=hashed.hexdigest())


def _to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_back(folder: Path, files: int) -> None:
    """Remove what this trial itself has just written."""
    for number in range(files):
        (folder / f"part-{number}.bin").unlink(missing_ok=True)
    folder.rmdir()
