"""fio's JSON output (`--output-format=json` and `json+`, fio 2 and 3): text in, jobs out.

fio prints error lines before, and sometimes after, its JSON, and gives numbers for jobs that failed: those are no
figures. `bw` is KiB/s and `bw_bytes` B/s; latencies are in clat_ns, or, with lat_percentiles=1, in lat_ns; fio 2 had
clat and lat in microseconds. Where fio kept no percentiles there are none here.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_LATENCIES = (("clat_ns", 1e-9), ("lat_ns", 1e-9), ("clat", 1e-6), ("lat", 1e-6))
_MOST_STARTS = 200  # braces tried as the beginning of the JSON: error lines hold few


class FioError(ValueError):
    """The text holds no readable fio report. One line says why."""


class Operation(Struct, frozen=True, kw_only=True):
    """What one job read, or wrote. `percentiles_s` are of one call, by percent (99.0), or None where fio kept none."""

    bytes: int
    bytes_per_s: float
    iops: float
    runtime_s: float
    calls: int
    percentiles_s: dict[float, float] | None = None


class Job(Struct, frozen=True, kw_only=True):
    """One job. `error` is an errno: with anything but 0 the job failed and `read` and `write` are None, as they are
    where nothing was moved."""

    name: str
    error: int
    read: Operation | None = None
    write: Operation | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What fio said. `messages` are the lines around the JSON: its complaints."""

    version: str | None
    jobs: tuple[Job, ...]
    messages: tuple[str, ...] = ()

    @property
    def failed(self) -> Job | None:
        """The first job with an error."""
        return next((job for job in self.jobs if job.error), None)


def parse(text: str) -> Report:
    """Read fio's output. Raises FioError for text without a whole report, or with a number that is none."""
    document, before, after = _document(text)
    try:
        jobs = tuple(_job(job) for job in document["jobs"])
        version = document.get("fio version")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FioError(f"fio's report lacks {error}") from error
    if not jobs:
        raise FioError("fio's report has no job")
    return Report(version=version and str(version).removeprefix("fio-"), jobs=jobs, messages=_lines(before, after))


def _lines(*texts: str) -> tuple[str, ...]:
    return tuple(line.strip() for text in texts for line in text.splitlines() if line.strip())


def _document(text: str) -> tuple[dict[str, Any], str, str]:
    """The JSON object with jobs in it, and the text before and after."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    reason = "no JSON in fio's output"
    for start in _starts(text):
        try:
            document, end = decoder.raw_decode(text, start)
        except ValueError as error:
            reason = f"fio's JSON is not whole: {error}"
            continue
        except RecursionError:
            raise FioError("fio's JSON is nested too deep") from None
        if isinstance(document, dict) and "jobs" in document:
            return document, text[:start], text[end:]
    tail = _lines(text)[-1:]
    raise FioError(reason + (f" ({tail[0][:200]})" if tail else ""))


def _starts(text: str) -> Iterator[int]:
    start = text.find("{")
    for _ in range(_MOST_STARTS):
        if start < 0:
            return
        yield start
        start = text.find("{", start + 1)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _job(job: dict[str, Any]) -> Job:
    error = int(job["error"])
    return Job(
        name=str(job["jobname"]),
        error=error,
        read=None if error else _operation(job.get("read")),
        write=None if error else _operation(job.get("write")),
    )


def _operation(found: dict[str, Any] | None) -> Operation | None:
    """None where nothing was moved, or fio timed nothing: a rate of 0 is then no measurement."""
    if not found:
        return None
    moved = int(found["io_bytes"]) if "io_bytes" in found else int(found["io_kbytes"]) * 1024
    runtime_s = float(found["runtime"]) / 1000
    if moved <= 0 or runtime_s <= 0:
        return None
    return Operation(
        bytes=moved,
        bytes_per_s=float(found["bw_bytes"] if "bw_bytes" in found else found["bw"] * 1024),
        iops=float(found["iops"]),
        runtime_s=runtime_s,
        calls=int(found["total_ios"]),
        percentiles_s=_percentiles(found),
    )


def _percentiles(found: dict[str, Any]) -> dict[float, float] | None:
    for key, unit in _LATENCIES:
        percentiles = found.get(key, {}).get("percentile")
        if percentiles:
            return {float(percent): value * unit for percent, value in percentiles.items()}
    return None
