"""filesystem: what a checkpoint meets. fio writes as torch.distributed.checkpoint does, on every node at once.

The job is a checkpoint's: few large buffered writes a rank, one fsync at the end, incompressible data, nothing
preallocated (torch 2.13 filesystem.py: one file a rank, one write a tensor, one fsync a file). fio counts the final
fsync in its run time. Then the same files are read past the page cache, and other files are written directly, 16 deep,
which is the ceiling of the device.
"""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..cluster import Cluster, Node, RankContext, Trial
from ..evidence import AnyReading, Fill, Missing, Noticed, Observed, reading
from ..evidence.records import Reason
from ..readers.fio import Report
from ..sensors.files import content_or_empty
from ..sensors.storage import mount_of, parse_mountinfo
from .fio_job import (
    Answer,
    Phase,
    Trouble,
    command,
    judge,
    make_folder,
    operations,
    reason_of,
    remove,
    remove_old,
    run_fio,
)
from .protocol import Plan
from .retests import Watched, with_retests

RATES: dict[Phase, str] = {
    "write": "filesystem.write_rate",
    "read": "filesystem.read_rate",
    "direct_write": "filesystem.direct_write_rate",
}
# Storage varies far more than silicon does.
_WATCHED = tuple(Watched(metric=metric, effect=0.25) for metric in (RATES["write"], RATES["read"]))
P99 = "filesystem.write_p99"
FEWEST_CALLS_FOR_P99 = 100  # a 99th percentile of fewer is their maximum under another name
NO_DEVICE = ("tmpfs", "ramfs")  # newer kernels let O_DIRECT through there, and measure memory
_MARGIN_S = 30  # after fio's time is up: 3 s until it is given up, 20 s to remove its files


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesystemSettings:
    """`mib_per_rank` are written buffered and again directly; `block_mib` is one call. `repeats` makes samples.
    `slowest_mb_per_s` of a node sets the deadline."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  # read by pydantic from the class, never changed

    mib_per_rank: int = 64
    block_mib: int = 16
    depth: int = 16
    repeats: int = 1
    slowest_mb_per_s: float = 10.0


class Filesystem:
    """fio on the first rank of each node, with as many jobs as the node has ranks, all nodes in one round."""

    name: ClassVar[str] = "filesystem"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (*RATES.values(), P99)
    retests: ClassVar[tuple[str, ...]] = tuple(one.metric for one in _WATCHED)
    settings: ClassVar[type] = FilesystemSettings

    def plan(self, cluster: Cluster, settings: FilesystemSettings, seed: int) -> Plan:
        """One round, and where somebody was slow all of it again. The nodes contend where they share a filesystem: so
        they will when they train."""
        trials = [_trial(node, settings) for node in cluster.nodes if node.ranks]
        yield from with_retests(cluster, [trials], _WATCHED, all_again=True)


def _trial(node: Node, settings: FilesystemSettings) -> Trial:
    moved = 3 * settings.repeats * settings.mib_per_rank * len(node.ranks) * 1.048576  # MB
    limit_s = 15 + moved / settings.slowest_mb_per_s
    params: dict[str, Any] = {
        "subject": node.filesystem,
        "jobs": len(node.ranks),
        "mib_per_rank": settings.mib_per_rank,
        "block_mib": settings.block_mib,
        "depth": settings.depth,
        "repeats": settings.repeats,
        "limit_s": limit_s,
    }
    return Trial(
        function="filesystem:measure",
        ranks=node.ranks[:1],
        params=params,
        expected_s=2 + moved / (10 * settings.slowest_mb_per_s),
        deadline_s=limit_s + _MARGIN_S,
        fills=tuple(Fill(metric=metric, subject=node.filesystem) for metric in Filesystem.metrics),
    )


def measure(context: RankContext, params: Mapping[str, Any]) -> list[AnyReading]:
    """Write, read back and write directly below the node's scratch directory; everything written is removed."""
    subject = params["subject"]
    if trouble := _not_possible(context.scratch, params):
        return [_missing(metric, subject, *trouble) for metric in Filesystem.metrics]
    ends = time.monotonic() + float(params["limit_s"])
    remove_old(context.scratch, context.node)
    samples: dict[Phase, list[Answer]] = {phase: [] for phase in RATES}
    left: list[AnyReading] = []
    for _ in range(int(params["repeats"])):
        folder = make_folder(context.scratch, context.node, ends - time.monotonic())
        answers = _one_pass(folder, params, ends) if isinstance(folder, Path) else dict.fromkeys(RATES, folder)
        if isinstance(folder, Path) and not remove(folder):
            left.append(Noticed(kind="note", subject=subject, severity="warning", detail=f"files are left in {folder}"))
        for phase in RATES:
            samples[phase].append(answers[phase])
    return _readings(subject, samples) + left


def _not_possible(scratch: Path, params: Mapping[str, Any]) -> Trouble | None:
    """What forbids a start, seen before anything is written."""
    if shutil.which("fio") is None:
        return "tool_missing", "fio is not installed: apt-get install fio"
    wanted = 2 * int(params["jobs"]) * int(params["mib_per_rank"]) << 20
    try:
        free = shutil.disk_usage(scratch).free
    except OSError as error:
        return reason_of(error.errno or 0), f"{error.strerror}: {scratch}"
    if wanted > free:
        return "raised", f"no space left: {wanted >> 20} MiB wanted, {free >> 20} MiB free on {scratch}"
    return None


def _one_pass(folder: Path, params: Mapping[str, Any], ends: float) -> dict[Phase, Answer]:
    """Write, read what was written, write directly. What was not written cannot be read."""
    answers: dict[Phase, Answer] = {"write": _answer("write", folder, params, ends)}
    written = answers["write"]
    no_device = _no_device(folder)
    answers["read"] = (written if isinstance(written, tuple) else no_device) or _answer("read", folder, params, ends)
    answers["direct_write"] = no_device or _answer("direct_write", folder, params, ends)
    return answers


def _answer(phase: Phase, folder: Path, params: Mapping[str, Any], ends: float) -> Answer:
    output = run_fio(command(phase, folder, params), ends - time.monotonic())
    return output if isinstance(output, tuple) else judge(output, phase, int(params["jobs"]))


def _no_device(folder: Path) -> Trouble | None:
    mount = mount_of(folder, parse_mountinfo(content_or_empty(Path("/proc/self/mountinfo"))))
    if mount is None or mount.kind not in NO_DEVICE:
        return None
    return "unsupported", f"{mount.kind} has no device below it that O_DIRECT could reach"


def _readings(subject: str, samples: dict[Phase, list[Answer]]) -> list[AnyReading]:
    readings: list[AnyReading] = []
    for phase, metric in RATES.items():
        troubles = [answer for answer in samples[phase] if isinstance(answer, tuple)]
        reports = [answer for answer in samples[phase] if isinstance(answer, Report)]
        # One failed repeat spoils the metric: the rest would hide it.
        rates = [rate(report, phase) for report in reports]
        readings.append(_missing(metric, subject, *troubles[0]) if troubles else reading(metric, subject, rates))
    readings.append(_tail(subject, samples["write"]))
    versions = {report.version for answers in samples.values() for report in answers if isinstance(report, Report)}
    return readings + [Observed(subject=subject, key="fio.version", value=version) for version in versions if version]


def rate(report: Report, phase: Phase) -> float:
    """GB/s of all jobs together: their bytes over the slowest job's time, as a checkpoint is done when the last rank
    is (MLPerf Storage's rule)."""
    moved = operations(report, phase)
    return sum(one.bytes for one in moved) / max(one.runtime_s for one in moved) / 1e9


def _tail(subject: str, answers: list[Answer]) -> AnyReading:
    """The slowest job's 99th percentile of one write call, a sample a repeat."""
    tails: list[float] = []
    for answer in answers:
        if isinstance(answer, tuple):
            return _missing(P99, subject, *answer)
        moved = operations(answer, "write")
        if (calls := min(one.calls for one in moved)) < FEWEST_CALLS_FOR_P99:
            few = f"{calls} calls a job: a 99th percentile needs {FEWEST_CALLS_FOR_P99}"
            return _missing(P99, subject, "skipped_by_profile", few)
        percentiles = [(one.percentiles_s or {}).get(99.0) for one in moved]
        if None in percentiles:
            return _missing(P99, subject, "not_returned", "fio kept no percentiles")
        tails.append(max(filter(None, percentiles)))
    return reading(P99, subject, tails)


def _missing(metric: str, subject: str, reason: Reason, detail: str) -> Missing:
    return Missing(metric=metric, subject=subject, reason=reason, detail=detail)
