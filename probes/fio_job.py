"""Running fio: its folder, its command line, one run under a limit, and whether what came back is a result.

`command` and `judge` are pure. What fio printed is read by readers/fio.py.
"""

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..evidence.records import Reason
from ..readers.fio import FioError, Operation, Report, parse

Phase = Literal["write", "read", "direct_write"]
Trouble = tuple[Reason, str]
Answer = Report | Trouble
# Tools that sit in the kernel, kept so that they are reaped when they come out: nobody waits for them.
left_behind: list[subprocess.Popen[bytes]] = []
_PREFIX = "hwlottery-fio"
_OLD_S = 3600  # a folder this old was left behind by a run that was killed
_REASONS: dict[int, Reason] = {
    errno.EPERM: "closed_to_tenant",
    errno.EACCES: "closed_to_tenant",
    errno.EROFS: "closed_to_tenant",
    errno.EINVAL: "unsupported",
    errno.EOPNOTSUPP: "unsupported",
}


def command(phase: Phase, folder: Path, params: Mapping[str, Any]) -> list[str]:
    """fio's command line for a phase; the job is that of a checkpoint, but for `thread`: one kill ends them all."""
    direct = ["--direct=1"]
    how: dict[Phase, list[str]] = {
        "write": ["--name=ckpt", "--rw=write", "--ioengine=psync", "--iodepth=1", "--direct=0", "--end_fsync=1"],
        "read": ["--name=ckpt", "--rw=read", "--ioengine=psync", "--iodepth=1", *direct],
        "direct_write": ["--name=ceiling", "--rw=write", "--ioengine=libaio", f"--iodepth={params['depth']}", *direct],
    }
    return [
        "fio",
        *how[phase],
        f"--directory={str(folder).replace(':', chr(92) + ':')}",  # fio splits directories at colons
        f"--bs={params['block_mib']}M",
        f"--size={params['mib_per_rank']}M",
        f"--numjobs={params['jobs']}",
        "--fallocate=none",
        "--randrepeat=0",
        "--refill_buffers",
        "--unlink=0",
        "--group_reporting=0",
        "--thread",
        "--output-format=json",
    ]


def run_fio(words: list[str], limit_s: float) -> str | Trouble:
    """fio's report and what it complained of, as text."""
    # The report goes to memory: a full disk must not cost the report that says so.
    with os.fdopen(os.memfd_create("fio-report"), "r+") as report:
        ran = run_tool([*words, f"--output=/proc/self/fd/{report.fileno()}"], limit_s, report.fileno())
        if not isinstance(ran, Ran):
            return ran
        report.seek(0)
        return ran.said + report.read()


class Ran(NamedTuple):
    """A tool that ended: its exit status, and what it printed on either stream."""

    status: int
    said: str


def run_tool(words: list[str], limit_s: float, *handed_on: int) -> Ran | Trouble:
    """Run a tool that may touch a broken filesystem. One that does not end in time is killed; one that sits in the
    kernel is left behind, for nothing can end it and nothing may wait for it."""
    if limit_s <= 0:
        return "timeout", f"no time was left for {words[0]}"
    left_behind[:] = [process for process in left_behind if process.poll() is None]
    ender = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []  # the tool dies with its rank
    with os.fdopen(os.memfd_create("said"), "r+", errors="replace") as said:
        process = subprocess.Popen(
            [*ender, *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=handed_on
        )
        if trouble := _wait(process, limit_s, words[0]):
            return trouble
        said.seek(0)
        return Ran(process.returncode, said.read())


def _wait(process: subprocess.Popen[bytes], limit_s: float, name: str) -> Trouble | None:
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            left_behind.append(process)
            return "timeout", f"{name} sits in the kernel after {limit_s:.0f} s and cannot be ended"
        return "timeout", f"{name} did not end within {limit_s:.0f} s"
    return None


def judge(output: str, phase: Phase, jobs: int) -> Answer:
    """fio's report where every job did all its work, else why it is none."""
    try:
        report = parse(output)
    except FioError as error:
        return _without_report(str(error), output)
    if failed := report.failed:
        said = next((line for line in report.messages if "error=" in line), "")
        return reason_of(failed.error), f"fio: {os.strerror(failed.error)} ({phase}) {said}"[:1000].rstrip()
    if len(operations(report, phase)) != jobs:
        return "parse_error", f"fio reports {len(operations(report, phase))} of {jobs} jobs with a rate ({phase})"
    return report


def _without_report(why: str, output: str) -> Trouble:
    """No JSON: fio did not begin. It says so in words."""
    if "engine" in output and "not loadable" in output:
        return "tool_missing", f"this fio lacks an I/O engine: {output.strip()[:300]}"
    if "Permission denied" in output:
        return "closed_to_tenant", output.strip()[:300]
    return "parse_error", why


def operations(report: Report, phase: Phase) -> list[Operation]:
    """What each job moved in a phase; a job that moved nothing is not among them."""
    moved = [job.read if phase == "read" else job.write for job in report.jobs]
    return [operation for operation in moved if operation is not None]


def reason_of(code: int) -> Reason:
    """Why there is no figure, by the errno. A full disk is none of the named reasons: its detail says so."""
    return _REASONS.get(code, "raised")


def make_folder(scratch: Path, node: str, limit_s: float) -> Path | Trouble:
    """A folder of this node's own on the scratch filesystem. Made by a tool: a filesystem that hangs then holds the
    tool and not the rank."""
    ran = run_tool(["mktemp", "-d", "-p", str(scratch), f"{_PREFIX}-{node}-XXXXXX"], limit_s)
    if not isinstance(ran, Ran):
        return ran
    said = ran.said.strip()
    if ran.status:
        closed = any(os.strerror(code) in said for code, reason in _REASONS.items() if reason == "closed_to_tenant")
        return "closed_to_tenant" if closed else "raised", said[-1000:] or f"mktemp failed ({ran.status})"
    return Path(said)


def remove(folder: Path, limit_s: float = 20.0) -> bool:
    """Remove a folder with all in it. Whether it is gone: where the filesystem hangs, `rm` stays in the kernel, and
    goes on when the filesystem does, though its rank may be gone by then."""
    process = subprocess.Popen(
        ["rm", "-rf", "--", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        left_behind.append(process)
    return process.returncode == 0 and not folder.exists()


def remove_old(scratch: Path, node: str) -> None:
    """Remove what a run of this node that was killed left behind."""
    for old in scratch.glob(f"{_PREFIX}-{node}-*"):
        if time.time() - old.lstat().st_mtime > _OLD_S:
            remove(old)
