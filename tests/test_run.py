"""Runs as a user starts them: the real command, real ranks, and every way in which a run can be ended early."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hwlottery.evidence import read_run

VERDICTS = (0, 3, 4, 5)
PROFILE = Path(__file__).parent / "profiles" / "tiny.yaml"


def hwlottery(*arguments, cwd=None, timeout=150):
    """Run the command and wait; returns what it printed and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )


def started(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "hwlottery", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        start_new_session=True,
    )


def assert_one_line(result, code, *words):
    """The error is one line on stderr that names these, and no traceback."""
    assert result.returncode == code, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A finished run of the tiny profile, shared by the tests that only read it."""
    folder = tmp_path_factory.mktemp("whole")
    out = folder / "run"
    result = hwlottery(
        "run",
        "--profile",
        PROFILE,
        "--policy",
        "prolog",
        "--out",
        out,
        "--scratch",
        folder,
        "--provider",
        "P&L",
        cwd=folder,
    )
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    return out, result


def test_a_run_ends_with_a_verdict_a_report_and_whole_evidence(whole_run):
    out, result = whole_run
    run = read_run(out)
    assert run.problems == []
    assert run.measurements, "something was measured"
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["run_id"] == run.header.run_id
    assert verdict["verdict"].replace("_", "-") in result.stdout
    assert "report.html" in result.stdout


def test_every_trial_fills_all_that_it_announced(whole_run):
    run = read_run(whole_run[0])
    missing = [record for record in run.not_measured if record.reason in ("not_returned", "raised", "died", "timeout")]
    assert missing == []
    assert all(event.severity != "error" for event in run.events)


def test_verify_finds_a_whole_run_whole_and_an_altered_one_altered(whole_run, tmp_path):
    out, _ = whole_run
    assert hwlottery("verify", out).returncode == 0
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    facts = copy / "facts.jsonl"
    facts.write_text(facts.read_text().replace('"cpu', '"gpu', 1))
    result = hwlottery("verify", copy, "--json")
    assert result.returncode == 6
    assert {problem["kind"] for problem in json.loads(result.stdout)["problems"]} == {"checksum"}


def test_score_and_report_need_nothing_but_the_directory(whole_run, tmp_path):
    out, ran = whole_run
    copy = tmp_path / "by-mail"
    shutil.copytree(out, copy)
    for derived in ("verdict.json", "report.html"):
        (copy / derived).unlink()
    scored = hwlottery("score", copy, "--json")
    assert scored.returncode == ran.returncode
    assert scored.stdout.encode() == (copy / "verdict.json").read_bytes() == (out / "verdict.json").read_bytes()
    page = tmp_path / "page.html"
    assert hwlottery("report", copy, "-o", page).returncode == 0
    assert page.read_text() == (out / "report.html").read_text()


def test_exports_are_written_for_scripts(whole_run):
    out, _ = whole_run
    table = hwlottery("export", out, "--format", "csv")
    assert table.returncode == 0
    assert "matmul.tflops" in table.stdout
    suite = hwlottery("export", out, "--format", "junit")
    assert suite.returncode == 0
    assert "<testsuite" in suite.stdout


def test_a_run_directory_that_exists_is_left_alone(whole_run):
    out, _ = whole_run
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    assert_one_line(hwlottery("run", "--profile", PROFILE, "--out", out), 2, "exists already", "--resume")
    assert before == {file: file.stat().st_mtime_ns for file in out.rglob("*")}


def test_a_finished_run_has_nothing_to_resume(whole_run):
    assert_one_line(hwlottery("run", "--resume", whole_run[0]), 2, "has finished")
    assert read_run(whole_run[0]).problems == []


def test_a_run_of_a_newer_format_is_refused_in_one_line(whole_run, tmp_path):
    copy = tmp_path / "newer"
    shutil.copytree(whole_run[0], copy)
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**header, "format": 99}))
    for command in ("score", "report", "verify"):
        assert_one_line(hwlottery(command, copy), 2, "format 99", "newer hwlottery")


def test_what_is_no_run_directory_is_said_in_one_line(tmp_path):
    assert_one_line(hwlottery("score", tmp_path), 2, "not a run directory")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "smok"], ["smok", "smoke"]),
        (["--policy", "smok"], ["smok", "smoke"]),
        (["--only", "matmull"], ["matmull", "matmul"]),
        (["--scratch", "/nowhere/at/all"], ["/nowhere/at/all"]),
        (["--out", "/proc/cannot/be/made"], ["/proc/cannot/be/made"]),
        (["--profile", "missing.yaml"], ["missing.yaml"]),
    ],
)
def test_what_a_user_can_mend_is_one_line_that_names_it(arguments, words, tmp_path):
    assert_one_line(hwlottery("run", *arguments, cwd=tmp_path), 2, *words)


@pytest.mark.parametrize(("kind", "file"), [("--profile", "profile.yaml"), ("--policy", "policy.yaml")])
def test_an_unknown_key_is_named_with_its_file_and_the_choices(kind, file, tmp_path):
    (tmp_path / file).write_text("name: mine\nsingable: true\n")
    assert_one_line(hwlottery("run", kind, tmp_path / file, cwd=tmp_path), 2, file, "singable", "name")


def test_a_dry_run_says_time_and_money_and_makes_nothing(tmp_path):
    result = hwlottery("run", "--dry-run", "--profile", "acceptance", "--price", "2", "--json", cwd=tmp_path)
    assert result.returncode == 0
    plan = json.loads(result.stdout)
    assert plan["expected_s"] > 3600
    assert {part["probe"] for part in plan["probes"]} >= {"matmul", "burn_in"}
    assert "node-hours" in result.stderr
    assert list(tmp_path.iterdir()) == []


def until_begun(out, process, function):
    """Wait until the run's plan has a trial of this function: it is written as the trial begins."""
    plan = out / "plan.jsonl"
    while not (plan.exists() and f'"{function}"' in plan.read_text()):
        assert process.poll() is None, f"the run ended before {function}"
        time.sleep(0.02)


def cut(tmp_path, end, *, at="matmul:sustained"):
    """Start a run, end it in the middle with a signal, and return its directory, exit code and last words."""
    out = tmp_path / "run"
    process = started(
        "run", "--profile", PROFILE, "--policy", "prolog", "--out", out, "--scratch", tmp_path, cwd=tmp_path
    )
    try:
        until_begun(out, process, at)
        process.send_signal(end)
        words = process.stdout.read()
        return out, process.wait(timeout=60), words
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_run_ended_by_a_signal_resumes_without_running_again_what_had_ended(tmp_path, end, code):
    out, ended_with, words = cut(tmp_path, end)
    assert ended_with == code
    if end != signal.SIGKILL:
        assert f"--resume {out}" in words.strip().splitlines()[-1]
        assert "Traceback" not in words
    before = read_run(out)
    assert [problem.kind for problem in before.problems if problem.kind != "missing"] == ["unfinished"]
    assert hwlottery("score", out).returncode in (3, 4), "a run cut short cannot be signed"
    done = {event.trial for event in before.events if event.kind == "trial_ended"}
    assert done

    result = hwlottery("run", "--resume", out, cwd=tmp_path)
    assert result.returncode in VERDICTS, result.stderr
    after = read_run(out)
    assert after.problems == []
    began = [plan["trial"] for plan in lines_of(out, "plan.jsonl")]
    assert all(began.count(trial) == 1 for trial in done), "what had ended was not begun again"
    assert len(after.header.segments) == 2


@pytest.mark.slow
def test_a_resume_refuses_to_mix_figures_of_unlike_software(tmp_path):
    out, _, _ = cut(tmp_path, signal.SIGINT)
    header = json.loads((out / "run.json").read_text())
    (software,) = header["segments"][0]["software"].values()
    software["torch"] = "1.0.0"
    (out / "run.json").write_text(json.dumps(header))
    refused = hwlottery("run", "--resume", out, cwd=tmp_path)
    assert refused.returncode == 2
    assert "torch was 1.0.0" in refused.stderr
    assert "--rerun-changed" in refused.stderr
    result = hwlottery("run", "--resume", out, "--rerun-changed", cwd=tmp_path)
    assert result.returncode in VERDICTS, result.stderr
    assert read_run(out).problems == []
    began = [plan["function"] for plan in lines_of(out, "plan.jsonl")]
    assert began.count("inventory:look") == 2, "everything was measured again"
    assert len([fact for fact in read_run(out).facts if fact.key == "node.tier"]) == 1, "only the last counts"


def test_a_resume_takes_profile_policy_and_seed_from_the_run(whole_run):
    result = hwlottery("run", "--resume", whole_run[0], "--profile", "smoke", "--seed", "3")
    assert_one_line(result, 2, "--profile, --seed", "--resume")


def lines_of(out, name):
    """Every line of a record file, also those that a later one replaces."""
    return [json.loads(line) for line in (out / name).read_text().splitlines()]


@pytest.fixture(params=["32k", "64k"], ids=["room for the beginning", "room for all but the page"])
def small_disk(tmp_path, request):
    """A real filesystem with little room; grown on request."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    mount = tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", str(mount)], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.mark.root
@pytest.mark.slow
def test_a_full_disk_is_said_in_one_line_and_nothing_is_lost(small_disk, tmp_path):
    out = small_disk / "run"
    result = hwlottery(
        "run", "--profile", PROFILE, "--policy", "prolog", "--out", out, "--scratch", tmp_path, cwd=tmp_path
    )
    assert result.returncode == 6, result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert "No space left" in last
    assert str(out) in last
    assert "Traceback" not in result.stderr
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    if "--resume" in last:
        resumed = hwlottery("run", "--resume", out, cwd=tmp_path)
        assert resumed.returncode in VERDICTS, resumed.stderr
    assert read_run(out).problems == []
    assert hwlottery("report", out).returncode == 0


@pytest.mark.slow
def test_no_process_is_left_behind_by_a_run_that_was_stopped(tmp_path):
    cut(tmp_path, signal.SIGINT)
    until = time.monotonic() + 10
    while time.monotonic() < until and _ours(tmp_path):
        time.sleep(0.2)
    assert _ours(tmp_path) == []


def _ours(folder):
    """Processes whose working directory is this test's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if (entry / "cwd").resolve() == folder.resolve():
                    found.append(entry.name)
    return found


@pytest.mark.parametrize("name", ["verdict.json", "report.html"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_stands_in_the_way_of_a_derived_file_is_replaced_and_never_followed(whole_run, tmp_path, name, kind):
    copy, victim = tmp_path / "copy", tmp_path / "victim"
    shutil.copytree(whole_run[0], copy)
    victim.write_text("untouched")
    (copy / name).unlink()
    if kind == "link":
        (copy / name).symlink_to(victim)
    else:
        os.mkfifo(copy / name)
    command = "score" if name == "verdict.json" else "report"
    assert hwlottery(command, copy, timeout=60).returncode in VERDICTS
    assert victim.read_text() == "untouched"
    assert (copy / name).is_file()
    assert not (copy / name).is_symlink()


@pytest.mark.parametrize("place", ["events.jsonl", "run.json", "logs", "telemetry/n"])
def test_a_run_with_a_link_in_it_is_not_gone_on_with(whole_run, tmp_path, place):
    copy, victim = tmp_path / "copy", tmp_path / "victim"
    shutil.copytree(whole_run[0], copy)
    (copy / "SHA256SUMS").unlink()
    victim.write_text("untouched")
    if (copy / place).is_dir():
        shutil.rmtree(copy / place)
    (copy / place).unlink(missing_ok=True)
    (copy / place).symlink_to(victim)
    assert_one_line(hwlottery("run", "--resume", copy), 2, str(copy))
    assert victim.read_text() == "untouched"


def test_a_reader_that_leaves_does_not_end_a_run(tmp_path):
    out = tmp_path / "run"
    command = f"{sys.executable} -m hwlottery run --profile {PROFILE} --policy prolog --out {out} --scratch {tmp_path}"
    result = subprocess.run(
        ["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    assert result.returncode in VERDICTS, result.stderr
    assert "Traceback" not in result.stderr
    assert read_run(out).problems == []


@pytest.mark.parametrize("how", [">&-", "2>&-", ">&- 2>&-"], ids=["no stdout", "no stderr", "neither"])
def test_closed_streams_are_no_reason_to_fail(whole_run, how):
    command = f"{sys.executable} -m hwlottery score {whole_run[0]} {how}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode == whole_run[1].returncode
    assert result.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_a_small_character_set_shows_what_it_can(whole_run, encoding):
    result = subprocess.run(
        [sys.executable, "-m", "hwlottery", "score", whole_run[0]],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert result.returncode == whole_run[1].returncode
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("price", ["nan", "inf", "-1", "0"])
def test_a_price_is_a_number_of_dollars(price, tmp_path):
    result = hwlottery("run", "--dry-run", "--price", price, cwd=tmp_path)
    assert result.returncode == 2
    assert "--price" in result.stderr


@pytest.mark.slow
def test_a_rank_that_dies_between_trials_is_evidence_and_not_the_end(tmp_path):
    out = tmp_path / "run"
    process = started(
        "run", "--profile", PROFILE, "--policy", "prolog", "--out", out, "--scratch", tmp_path, cwd=tmp_path
    )
    try:
        until_begun(out, process, "matmul:sustained")
        time.sleep(0.3)
        os.kill(_rank_of(tmp_path), signal.SIGKILL)
        process.stdout.read()
        assert process.wait(timeout=60) in (3, 4)
    finally:
        process.stdout.close()
        process.kill()
        process.wait()
    run = read_run(out)
    assert run.problems == []
    lost = [event for event in run.events if event.kind == "worker_lost"]
    assert lost
    assert {event.subject.rpartition("/")[2] for event in lost} <= {"slot0", "slot1"}


def _rank_of(folder):
    """One rank's process: a spawned child whose working directory is this test's."""
    for pid in _ours(folder):
        if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    raise AssertionError("no rank is up")


def test_a_run_that_names_no_filesystem_is_not_gone_on_with(whole_run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(whole_run[0], copy)
    (copy / "SHA256SUMS").unlink()
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**header, "filesystems": []}))
    result = hwlottery("run", "--resume", copy)
    assert result.returncode == 2
    assert result.stderr.strip().splitlines()[-1].endswith("it cannot be gone on with")
    assert "Traceback" not in result.stderr
