"""What hosts and processes print without end: beginning and end are kept, and nobody waits for it or dies of it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hwlottery.cluster.bounded_log import BEGINNING, END, BoundedLog, GrowingLog, Logs, shortened
from hwlottery.cluster.ssh import make_ssh
from hwlottery.runner.doctor_hosts import examine_hosts
from hwlottery.runner.joining import Reach

NOISE = "\x1b]0;evil\x07 <script>alert(1)</script>"


def test_a_log_within_its_bounds_is_kept_as_it_is(tmp_path):
    log = BoundedLog(tmp_path / "log")
    for part in (b"one\n", b"two\n"):
        log.write(part)
    assert log.last_line() == "two"
    log.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_a_log_a_little_over_its_beginning_is_kept_whole(tmp_path):
    log = BoundedLog(tmp_path / "log")
    log.write(b"x" * (BEGINNING + END))
    log.close()
    assert (tmp_path / "log").read_bytes() == b"x" * (BEGINNING + END)


def test_of_a_long_log_beginning_and_end_are_kept_and_what_is_missing_is_said(tmp_path):
    log = BoundedLog(tmp_path / "log")
    log.write(b"first\n")
    for _ in range(300):
        log.write(b"y" * 99_999 + b"\n")
    log.write(b"last\n")
    assert log.last_line() == "last"
    log.close()
    content = (tmp_path / "log").read_bytes()
    assert content.startswith(b"first\n")
    assert content.endswith(b"\nlast\n")
    left_out = 300 * 100_000 + 11 - BEGINNING - END
    assert f"\n[cut here: {left_out / 1e6:.2f} MB left out]\n".encode() in content
    assert len(content) < BEGINNING + END + 100


def test_a_full_disk_costs_a_log_and_nothing_else():
    log = BoundedLog(Path("/dev/full"))
    log.write(b"x")
    log.close()


def started(logs: Logs, place: Path, *words: str) -> tuple[BoundedLog, subprocess.Popen[bytes]]:
    log, out = logs.open(place)
    process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    os.close(out)
    return log, process


def test_one_endless_process_neither_fills_the_disk_nor_keeps_others_from_being_heard(tmp_path):
    logs = Logs()
    _, noisy = started(logs, tmp_path / "noisy", "yes", NOISE)
    began = time.process_time()
    time.sleep(1.0)
    quiet, other = started(logs, tmp_path / "quiet", "sh", "-c", "echo first; echo its last words >&2")
    assert other.wait(10) == 0
    assert logs.last_line(quiet) == "its last words"
    time.sleep(1.0)
    assert noisy.poll() is None
    assert (tmp_path / "noisy").stat().st_size == BEGINNING
    assert time.process_time() - began < 1.0
    noisy.kill()
    noisy.wait()
    logs.close()
    content = (tmp_path / "noisy").read_bytes()
    assert b"MB left out]\n" in content
    assert len(content) < BEGINNING + END + 100
    assert (tmp_path / "quiet").read_text() == "first\nits last words\n"


def test_the_last_words_of_a_process_that_ended_are_there_at_once_though_a_child_holds_its_output(tmp_path):
    logs = Logs()
    log, process = started(logs, tmp_path / "log", "sh", "-c", "sleep 30 & echo $!; echo no route")
    process.wait(10)
    before = time.monotonic()
    assert logs.last_line(log) == "no route"
    logs.close()
    assert time.monotonic() - before < 5
    subprocess.run(["kill", (tmp_path / "log").read_text().split()[0]], check=True)


def test_what_still_prints_when_the_logs_are_closed_is_cut_off(tmp_path):
    logs = Logs()
    _, noisy = started(logs, tmp_path / "noisy", "yes", NOISE)
    time.sleep(0.3)
    logs.close()
    assert noisy.wait(10) != 0


def test_a_ranks_log_is_cut_while_it_grows_and_keeps_beginning_and_end(tmp_path):
    file = tmp_path / "rank.log"
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = GrowingLog(file)
    os.write(out, b"first line\n")
    for _ in range(20):
        os.write(out, b"z" * 999_999 + b"\n")
        log.watch()
        assert file.stat().st_size < 6_000_000
    os.write(out, b"the end\n")
    text = log.take()
    assert text.startswith("first line\n")
    assert text.endswith("z\nthe end\n")
    assert "[cut here: 19.9" in text
    assert len(text) < 70_000
    assert not file.exists()


@pytest.mark.parametrize("content", [b"", b"short\n", b"x" * 65_000])
def test_a_ranks_short_log_is_kept_whole(content, tmp_path):
    (tmp_path / "log").write_bytes(content)
    log = GrowingLog(tmp_path / "log")
    log.watch()
    assert log.take() == content.decode()


def test_a_rank_that_printed_nothing_has_no_log(tmp_path):
    assert GrowingLog(tmp_path / "none").take() == ""


def test_what_a_node_sends_as_a_log_is_shortened():
    text = shortened("a" * 10 + "b" * 10**6 + "c" * 10)
    assert text.startswith("a" * 10)
    assert text.endswith("c" * 10)
    assert "left out" in text
    assert len(text) < 140_000


SSH = """#!/bin/sh
case "$*" in *-G*) echo hostname 127.0.0.1; exit;; esac
{}
"""


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("yes '$NOISE'", ""),
        ("tr '\\0' x < /dev/zero", ""),
        ("echo 5; echo last words >&2", "last words"),
        ("echo '{\"port\": 1}'; echo last words >&2", "last words"),
        ("echo '[]'; exit 1", ""),
    ],
)
@pytest.mark.timeout(60)
def test_doctor_is_done_soon_with_a_host_that_says_what_is_no_answer(does, said, tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text(SSH.format(does.replace("$NOISE", NOISE)))
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    reach = Reach(ssh=make_ssh(None, None, sys.executable))
    (advice,) = [one for one in examine_hosts("n1", reach, tmp_path) if one.state == "problem"]
    assert said in advice.detail
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_an_endless_host_neither_ends_nor_slows_the_start_of_the_others(tmp_path, monkeypatch):
    """A run over a stand-in for ssh: one host prints without end, and is named as one that never joined."""
    from click.testing import CliRunner

    from hwlottery.cli import cli

    (tmp_path / "ssh").write_text(SSH.format(f"yes '{NOISE}' | head -c 100000000"))
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = ["run", "--hosts", "n1,n2", "--gpus-per-node", "0", "--only", "matmul", "--join-within", "5"]
    out = tmp_path / "run"
    done = CliRunner().invoke(cli, [*words, "--out", str(out)], catch_exceptions=False)
    assert done.exit_code in (3, 4), done.output
    for node in ("n1", "n2"):
        log = out / "logs" / f"node-{node}.log"
        assert log.stat().st_size < BEGINNING + END + 100
        assert b"MB left out]" in log.read_bytes()
    assert b"\\u001b" not in (out / "verdict.json").read_bytes()
    assert b"\\u001b" not in (out / "events.jsonl").read_bytes()
