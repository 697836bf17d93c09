"""Runs gone on with on other nodes than before: several node workers here, reached by an ssh that goes nowhere.

The ssh is a stub that runs the command where it is; all else is real: workers, ranks, sockets, TLS.
"""

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
from hwlottery.evidence.writing import write_checksums

PROFILE = Path(__file__).parent / "profiles" / "joins.yaml"
VERDICTS = (0, 3, 4, 5)
SSH = """#!/bin/bash
[ "$1" = -G ] && { echo "hostname 127.0.0.1"; exit; }
while [ "$1" != -- ]; do shift; done
[ -e "$(dirname "$0")/$2.down" ] && { echo "ssh: connect to host $2: Connection refused" >&2; exit 255; }
exec bash -c "$3"
"""


@pytest.fixture
def reached(tmp_path):
    """A folder with an ssh that stays on this machine; NAME.down there takes a host away."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    return folder


def command(*given):
    return [sys.executable, "-m", "hwlottery", *map(str, given), "--listen", "127.0.0.1"]


def with_ssh(folder):
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def hwlottery(folder, *given):
    return subprocess.run(
        command(*given), capture_output=True, text=True, env=with_ssh(folder), timeout=200, check=False
    )


def new_run(tmp_path, hosts, *more):
    return ["run", "--profile", PROFILE, "--policy", "prolog", "--scratch", tmp_path, "--hosts", hosts, *more]


def plans(out):
    return [json.loads(line) for line in (out / "plan.jsonl").read_text().splitlines()]


def ended(out):
    lines = (out / "events.jsonl").read_text().splitlines() if (out / "events.jsonl").exists() else []
    return {event["trial"]: event for line in lines if (event := json.loads(line))["kind"] == "trial_ended"}


@pytest.mark.slow
def test_a_resume_without_a_node_keeps_what_had_ended_and_measures_the_others(reached, tmp_path):
    out = tmp_path / "run"
    head = subprocess.Popen(
        command(*new_run(tmp_path, "a,b,c", "--out", out)),
        env=with_ssh(reached),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    limit = time.monotonic() + 150
    while not any(trial.startswith("matmul-") for trial in ended(out)) and time.monotonic() < limit:
        time.sleep(0.1)
    head.send_signal(signal.SIGKILL)
    head.wait()
    done = set(ended(out))
    assert any(trial.startswith("matmul-") for trial in done)
    (reached / "c.down").touch()
    result = hwlottery(reached, "run", "--resume", out)
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    run = read_run(out)
    assert run.problems == []
    begun = [plan["trial"] for plan in plans(out)]
    assert all(begun.count(trial) == 1 for trial in done), "what had ended was not begun again"
    assert done <= set(ended(out)), "and is kept"
    verdict = json.loads((out / "verdict.json").read_text())
    silent = [f for f in verdict["findings"] if f["check"] == "node.responds" and f["result"] == "fail"]
    assert [finding["subject"] for finding in silent] == ["c"]
    assert "Connection refused" in silent[0]["detail"]
    sustained = {m.subject for m in run.measurements if m.params.get("phase") == "sustained"}
    assert sustained >= {"a/slot0", "b/slot0"}
    together = [plan["ranks"] for plan in plans(out) if plan.get("params", {}).get("subject") == "cluster"]
    assert ["a/slot0", "b/slot0"] in together


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(SSH)
    (folder / "bin" / "ssh").chmod(0o755)
    result = hwlottery(folder / "bin", *new_run(folder, "a,b", "--only", "matmul", "--out", folder / "run"))
    assert result.returncode in VERDICTS, result.stderr
    return folder / "run"


@pytest.mark.slow
def test_a_join_begins_as_a_copy_and_takes_over_what_accepted_nodes_brought(accepted, reached, tmp_path):
    out = tmp_path / "joined"
    result = hwlottery(reached, "run", "--join", accepted, "--hosts", "c", "--partners", "b", "--out", out)
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    run = read_run(out)
    assert run.problems == []
    for name in ("plan.jsonl", "facts.jsonl", "measurements.jsonl", "events.jsonl"):
        assert (out / name).read_bytes().startswith((accepted / name).read_bytes())
    assert {plan["ranks"][0] for plan in plans(out) if plan["function"] == "inventory:look"} == {
        "a/slot0",
        "b/slot0",
        "c/slot0",
    }
    assert [plan["function"] for plan in plans(out)].count("inventory:look") == 3
    assert [node.node for node in run.header.promised] == ["a", "b", "c"]
    assert set(run.header.segments[1].software) == {"b", "c"}
    again = hwlottery(reached, "run", "--join", out, "--hosts", "d", "--partners", "c", "--out", tmp_path / "twice")
    assert again.returncode in VERDICTS, again.stderr
    assert read_run(tmp_path / "twice").problems == []
    assert len(read_run(tmp_path / "twice").header.joins) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--profile", "smoke"], ["--profile", "--join"]),
        (["--hosts", "c", "--price", "2"], ["--price", "--join"]),
        ([], ["--hosts"]),
        (["--hosts", "c", "--partners", "z"], ["--partners", "z"]),
        (["--hosts", "c", "--replaces", "z=c"], ["--replaces", "z=c"]),
        (["--hosts", "c", "--replaces", "a=d"], ["d", "--hosts"]),
        (["--hosts", "c", "--resume", "."], ["--join"]),
    ],
    ids=" ".join,
)
def test_what_cannot_be_joined_is_one_line(accepted, reached, tmp_path, more, words):
    out = tmp_path / "joined"
    result = hwlottery(reached, "run", "--join", accepted, "--out", out, *more)
    assert result.returncode == 2, result.stdout + result.stderr
    line = result.stderr.strip().splitlines()[-1]
    assert all(word in line for word in words), line
    assert "Traceback" not in result.stderr
    assert not out.exists()


def test_a_run_that_is_not_whole_is_not_joined(accepted, reached, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(accepted, copy)
    with (copy / "facts.jsonl").open("a") as facts:
        facts.write("{}\n")
    result = hwlottery(reached, "run", "--join", copy, "--hosts", "c", "--out", tmp_path / "joined")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert "is not whole" in line


@pytest.mark.slow
def test_a_join_with_other_software_is_refused_with_the_difference_or_measures_all_again(accepted, reached, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(accepted, copy)
    header = json.loads((copy / "run.json").read_text())
    header["segments"][0]["software"]["b"]["torch"] = "1.0.0"
    (copy / "run.json").write_text(json.dumps(header))
    write_checksums(copy)
    out = tmp_path / "joined"
    refused = hwlottery(reached, "run", "--join", copy, "--hosts", "c", "--out", out)
    assert refused.returncode == 2
    assert "torch was 1.0.0" in refused.stderr.strip().splitlines()[-1]
    assert not out.exists(), "nothing is left behind"
    result = hwlottery(reached, "run", "--join", copy, "--hosts", "c", "--out", out, "--rerun-changed")
    assert result.returncode in VERDICTS, result.stderr
    assert [plan["function"] for plan in plans(out)].count("inventory:look") == 5
    verdict = json.loads((out / "verdict.json").read_text())
    (complete,) = [f for f in verdict["findings"] if f["check"] == "evidence.complete"]
    assert complete["result"] == "pass", complete


def test_a_dry_run_of_a_join_counts_what_is_new_and_makes_nothing(accepted, reached, tmp_path):
    out = tmp_path / "joined"
    result = hwlottery(reached, "run", "--join", accepted, "--hosts", "c", "--out", out, "--dry-run", "--json")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    trials = {part["probe"]: part["trials"] for part in plan["probes"]}
    assert trials["inventory"] == 1
    assert not out.exists()
