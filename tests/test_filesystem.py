"""filesystem: fio's job of a checkpoint, and every way in which it gives no number."""

import os
import re
import shutil
import stat
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hwlottery.cluster import Cluster, Node, Rank, RankContext
from hwlottery.evidence import Missing, Observed, Reading, metric, parse_subject
from hwlottery.probes import filesystem
from hwlottery.probes.by_hand import trials_of
from hwlottery.probes.filesystem import Filesystem, FilesystemSettings, measure, rate
from hwlottery.probes.fio_job import command, judge, left_behind, make_folder, remove, remove_old, run_fio
from hwlottery.readers.fio import Job, Operation, Report
from hwlottery.sensors.access import access

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed: apt-get install fio")


def trial(scratch: Path, ranks: int = 2, **settings):
    of = tuple(Rank(subject=f"n01/slot{index}", node="n01", index=index, device="cpu") for index in range(ranks))
    cluster = Cluster(nodes=(Node(name="n01", ranks=of, scratch=str(scratch)),), device="cpu")
    (planned,) = trials_of(Filesystem(), cluster, FilesystemSettings(**settings))
    return planned


def run(scratch: Path, **settings):
    context = RankContext(subject="n01/slot0", node="n01", device_name="cpu", scratch=scratch)
    return measure(context, trial(scratch, **settings).params)


def missing(readings, name):
    (found,) = [item for item in readings if isinstance(item, Missing) and item.metric == name]
    return found


@pytest.fixture
def fake_fio(tmp_path, monkeypatch):
    """Put a shell script in fio's place."""

    def make(script: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "fio").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "fio").chmod((folder / "fio").stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return make


def test_the_plan_fills_every_metric_of_the_probe_on_the_nodes_filesystem(tmp_path):
    planned = trial(tmp_path)
    assert [fill.metric for fill in planned.fills] == list(Filesystem.metrics)
    assert {fill.subject for fill in planned.fills} == {f"n01/fs:{tmp_path}"}
    assert all("filesystem" in metric(name).subjects for name in Filesystem.metrics)
    assert parse_subject(planned.fills[0].subject).kind == "filesystem"


def test_fio_ends_before_its_trial_does(tmp_path):
    planned = trial(tmp_path)
    assert planned.params["limit_s"] < planned.deadline_s
    assert planned.expected_s < planned.deadline_s


def test_the_write_job_is_that_of_a_checkpoint(tmp_path):
    words = command("write", Path("/scratch/a:b"), trial(tmp_path).params)
    for word in ("--ioengine=psync", "--rw=write", "--bs=16M", "--numjobs=2", "--direct=0", "--end_fsync=1",
                 "--fallocate=none", "--randrepeat=0", "--refill_buffers", "--directory=/scratch/a\\:b"):  # fmt: skip
        assert word in words


def test_reading_reads_the_files_that_were_written_and_past_the_page_cache(tmp_path):
    params = trial(tmp_path).params
    write, read = command("write", tmp_path, params), command("read", tmp_path, params)
    same = ("--name", "--directory", "--numjobs", "--size", "--bs")
    assert [word for word in write if word.startswith(same)] == [word for word in read if word.startswith(same)]
    assert {"--direct=1", "--rw=read"} <= set(read)


@needs_fio
def test_a_real_disk_gives_rates_and_nothing_is_left_behind(tmp_path):
    readings = run(tmp_path, mib_per_rank=32, repeats=2)
    assert list(tmp_path.iterdir()) == []
    write = next(item for item in readings if isinstance(item, Reading) and item.metric == "filesystem.write_rate")
    assert len(write.samples) == 2
    assert all(0.001 < sample < 1000 for sample in write.samples)
    answered = [item.metric for item in readings if not isinstance(item, Observed)]
    assert sorted(answered) == sorted(Filesystem.metrics)


@needs_fio
def test_memory_has_no_device_to_write_directly_to():
    scratch = make_folder(Path("/dev/shm"), "test", 10)
    readings = run(scratch, mib_per_rank=16)
    assert remove(scratch)
    for name in ("filesystem.direct_write_rate", "filesystem.read_rate"):
        assert (missing(readings, name).reason, "tmpfs" in missing(readings, name).detail) == ("unsupported", True)


@needs_fio
def test_a_99th_percentile_needs_a_hundred_calls(tmp_path):
    few = missing(run(tmp_path, mib_per_rank=16), "filesystem.write_p99")
    assert (few.reason, few.detail) == ("skipped_by_profile", "1 calls a job: a 99th percentile needs 100")
    many = run(tmp_path, ranks=1, mib_per_rank=100, block_mib=1)
    (tail,) = [item for item in many if isinstance(item, Reading) and item.metric == "filesystem.write_p99"]
    assert 0 < tail.samples[0] < 10


def test_without_fio_each_metric_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    readings = run(tmp_path)
    assert [item.reason for item in readings] == ["tool_missing"] * len(Filesystem.metrics)
    assert "apt-get install fio" in readings[0].detail


@needs_fio
def test_too_little_space_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(filesystem.shutil, "disk_usage", lambda path: SimpleNamespace(free=10 << 20))
    readings = run(tmp_path, mib_per_rank=64)
    assert {type(item) for item in readings} == {Missing}
    assert readings[0].detail == f"no space left: 256 MiB wanted, 10 MiB free on {tmp_path}"


@needs_fio
@pytest.mark.root
def test_a_disk_that_fills_up_gives_no_number(tmp_path):
    if not access().may_mount:
        pytest.skip("mounting is not allowed here")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", tmp_path], check=True)
    try:
        words = command("write", tmp_path, trial(tmp_path, mib_per_rank=32).params)
        answer = judge(run_fio(words, 20), "write", 2)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert answer[0] == "raised"
    assert "No space left on device" in answer[1]


@needs_fio
@pytest.mark.root
def test_a_read_only_filesystem_is_closed(tmp_path):
    if not access().may_mount:
        pytest.skip("mounting is not allowed here")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,ro", "tmpfs", tmp_path], check=True)
    try:
        readings = run(tmp_path, mib_per_rank=16)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert {(type(item), item.reason) for item in readings} == {(Missing, "closed_to_tenant")}
    assert "Read-only" in readings[0].detail


@pytest.fixture
def disk(tmp_path):
    """A small ext4 of its own on a loop device, thawed and unmounted at the end."""
    if not access().may_mount:
        pytest.skip("mounting is not allowed here")
    image, mounted = tmp_path / "image", tmp_path / "disk"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    yield mounted
    subprocess.run(["fsfreeze", "-u", mounted], check=False, capture_output=True)
    for _ in range(50):  # what hung ends now, and lets go
        if subprocess.run(["umount", mounted], check=False, capture_output=True).returncode == 0:
            break
        time.sleep(0.1)


@needs_fio
@pytest.mark.root
def test_a_filesystem_that_froze_holds_the_tool_and_not_the_rank(disk):
    folder = make_folder(disk, "n01", 10)
    assert not isinstance(run_fio(command("write", folder, trial(disk, mib_per_rank=16).params), 20), tuple)
    subprocess.run(["fsfreeze", "-f", disk], check=True)
    began = time.monotonic()
    reason, detail = run_fio(command("direct_write", folder, trial(disk, mib_per_rank=16).params), 1)
    assert (reason, "sits in the kernel" in detail) == ("timeout", True)
    assert make_folder(disk, "n01", 0.5)[0] == "timeout"
    assert not remove(folder, 0.5)
    assert time.monotonic() - began < 20
    subprocess.run(["fsfreeze", "-u", disk], check=True)
    for process in left_behind:  # once the filesystem goes on, so do they, and rm ends its work
        process.wait(20)
    assert len(left_behind) == 3
    assert not folder.exists()


def test_a_scratch_that_is_not_there_is_said(tmp_path):
    readings = run(tmp_path / "none")
    assert {type(item) for item in readings} == {Missing}
    assert "none" in readings[0].detail or "fio" in readings[0].detail


def test_a_fio_that_hangs_is_ended_and_is_no_number(fake_fio, tmp_path):
    fake_fio("exec sleep 60")
    began = time.monotonic()
    reason, detail = run_fio(["fio"], 0.5)
    assert time.monotonic() - began < 5
    assert (reason, detail) == ("timeout", "fio did not end within 0 s")


def test_no_tool_is_started_when_the_time_is_up():
    assert run_fio(["no-such-tool"], -1.0) == ("timeout", "no time was left for no-such-tool")


def test_a_failed_job_is_a_reason_with_fios_own_words(fake_fio, tmp_path, recorded):
    shutil.copy(recorded / "fio_json/09_fio333_enospc_stderr_mixed.txt", tmp_path / "said")
    fake_fio(f"cat {tmp_path}/said; exit 1")
    found = missing(run(tmp_path), "filesystem.write_rate")
    assert found.reason == "raised"
    assert "No space left on device" in found.detail


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("fio: engine libaio not loadable", "tool_missing"),
        ("fio: pid=0, err=13/file: Permission denied", "closed_to_tenant"),
        ("Segmentation fault", "parse_error"),
        ("", "parse_error"),
    ],
)
def test_a_fio_that_never_began_is_a_reason(said, reason):
    assert judge(said, "write", 2)[0] == reason


def job(seconds: float) -> Job:
    moved = Operation(bytes=10**9, bytes_per_s=1, iops=1, runtime_s=seconds, calls=1)
    return Job(name="ckpt", error=0, read=moved, write=moved)


def test_a_checkpoint_is_as_slow_as_its_slowest_rank():
    assert rate(Report(version="3.33", jobs=(job(1.0), job(4.0))), "write") == pytest.approx(0.5)


def test_a_job_that_is_missing_from_the_report_is_no_result(recorded):
    output = (recorded / "fio_json/03_fio326dev_write_only.json").read_text()
    assert isinstance(judge(output, "write", 1), Report)
    assert judge(output, "write", 2)[0] == "parse_error"
    assert judge(output, "read", 1)[0] == "parse_error"


def test_one_failed_repeat_is_not_hidden_by_the_others(tmp_path, monkeypatch):
    good = Report(version="3.33", jobs=(job(1.0), job(1.0)))
    answers = iter([good, ("raised", "fio: Input/output error")])
    monkeypatch.setattr(filesystem, "_not_possible", lambda *_: None)
    monkeypatch.setattr(filesystem, "_one_pass", lambda *_: dict.fromkeys(filesystem.RATES, next(answers)))
    assert missing(run(tmp_path, repeats=2), "filesystem.write_rate").detail == "fio: Input/output error"


def test_what_a_killed_run_left_is_removed_once_it_is_old_and_only_this_nodes(tmp_path):
    old, fresh, other = (
        tmp_path / name for name in ("hwlottery-fio-n01-a", "hwlottery-fio-n01-b", "hwlottery-fio-n02-a")
    )
    for folder in (old, fresh, other):
        folder.mkdir()
        (folder / "ckpt.0.0").write_text("x")
    for folder in (old, other):
        os.utime(folder, (time.time() - 7200,) * 2)
    remove_old(tmp_path, "n01")
    assert not old.exists()
    assert fresh.exists()
    assert other.exists()


def test_every_number_of_the_profile_reaches_fio(tmp_path):
    words = " ".join(command("direct_write", tmp_path, trial(tmp_path, mib_per_rank=7, block_mib=3, depth=5).params))
    assert re.search(r"--iodepth=5 .*--bs=3M --size=7M", words)
