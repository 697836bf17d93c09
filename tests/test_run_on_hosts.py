"""Runs over ssh on the hosts of a lab, as a user starts them: healthy ones, and with each kind of bad node."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from lab import Lab
from lab.lab import ROOT, missing_tools, wait_until

from hwlottery.evidence import read_run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
PROFILES = Path(__file__).parent / "profiles"
VERDICTS = (0, 3, 4, 5)
WORKER = "hwlottery.cluster.node_main"


@pytest.fixture(scope="module")
def lab():
    with Lab(4) as made:
        yield made


@pytest.fixture
def healing(lab):
    yield lab
    lab.heal()


def arguments(out, hosts, *more, profile="tiny", policy="prolog"):
    given = ["--profile", PROFILES / f"{profile}.yaml", "--policy", policy, "--scratch", "/tmp", "--out", out]
    return ["run", *map(str, given), "--hosts", hosts, *map(str, more)]


def hwlottery(lab, *given, timeout=200):
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, given)],
        capture_output=True,
        text=True,
        env={**os.environ, "HWLOTTERY_SSH": lab.ssh},
        timeout=timeout,
        check=False,
    )


def run_on(lab, out, hosts, *more, **kinds):
    """Run to a verdict; the run read back, its verdict, and what was printed."""
    result = hwlottery(lab, *arguments(out, hosts, *more, **kinds))
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    run = read_run(out)
    assert run.problems == []
    return run, json.loads((out / "verdict.json").read_text()), result


def events(run, kind):
    return {event.subject: event.detail for event in run.events if event.kind == kind}


def failed(verdict, check):
    return {
        finding["subject"]
        for finding in verdict["findings"]
        if finding["check"] == check and finding["result"] == "fail"
    }


@pytest.fixture(scope="module")
def healthy(lab, tmp_path_factory):
    """A finished run on two healthy hosts, shared by the tests that only read it."""
    out = tmp_path_factory.mktemp("healthy") / "run"
    return out, *run_on(lab, out, "node[1-2]")


def test_healthy_hosts_have_no_finding_against_them(healthy):
    _, run, verdict, _ = healthy
    assert verdict["exclude"] == []
    assert [finding for finding in verdict["findings"] if finding["result"] == "fail"] == []
    assert {node.node for node in run.header.promised} == {"node1", "node2"}
    assert set(events(run, "node_joined")) == {"node1", "node2"}
    assert [event.detail for event in run.events if event.severity in ("error", "fatal")] == []


def test_which_launcher_was_taken_and_why_is_recorded(healthy):
    _, run, _, _ = healthy
    assert (run.header.launcher.name, run.header.launcher.why) == ("ssh", "--hosts node[1-2]")


def test_clocks_of_healthy_nodes_agree_within_what_is_known(healthy):
    _, run, _, _ = healthy
    offsets = {m.subject: m.numbers()[0] for m in run.measurements if m.metric == "clock.offset"}
    assert set(offsets) == {"node1", "node2"}
    known = {fact.subject: fact.value for fact in run.facts if fact.key == "clock.uncertainty"}
    assert all(abs(offsets[node]) < 0.2 and 0 < known[node] < 0.2 for node in offsets)
    assert events(run, "note") == {}


def test_nothing_secret_is_in_the_run_directory(healthy):
    out, _, _, _ = healthy
    for file in out.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert b"PRIVATE KEY" not in content
            assert b"BEGIN CERTIFICATE" not in content


def test_every_node_measured_all_that_was_planned(healthy):
    _, run, _, _ = healthy
    for metric in ("matmul.tflops", "all_reduce.busbw"):
        nodes = {m.subject.partition("/")[0] for m in run.measurements if m.metric == metric}
        assert nodes == {"node1", "node2"}


def test_a_node_that_never_joins_is_named_with_what_ssh_said_and_the_others_are_measured(healing, tmp_path):
    healing.hosts["node3"].kill("sshd:.*listener")
    try:
        run, verdict, _ = run_on(healing, tmp_path / "run", "node[1,3]")
    finally:
        healing.set_env("node3")
    assert "Connection refused" in events(run, "node_lost")["node3"]
    assert failed(verdict, "node.responds") == {"node3"}
    assert {node.node for node in run.header.promised} == {"node1", "node3"}
    assert {m.subject for m in run.measurements if m.metric == "all_reduce.busbw"} == {"node1"}


def in_mid_training(out, deed):
    """Do a deed on a host 3 s after the training across all hosts was sent out."""

    def wait_and_do():
        until = time.monotonic() + 120
        plan = out / "plan.jsonl"
        while time.monotonic() < until and not (plan.exists() and "burn_in:train" in plan.read_text()):
            time.sleep(0.1)
        time.sleep(3)
        deed()

    thread = threading.Thread(target=wait_and_do)
    thread.start()
    return thread


def assert_lost_in_training(run, verdict, node, others):
    """The node is named, its training is lost, and the others have trained without it."""
    assert set(events(run, "node_lost")) == {node}
    assert failed(verdict, "node.responds") == {node}
    ended = [event.outcome for event in run.events if event.kind == "trial_ended" and "burn_in" in event.trial]
    assert ended == ["worker_lost", "finished"]
    steps = {m.subject.partition("/")[0]: m.attempt for m in run.measurements if m.metric == "burn_in.step"}
    assert steps == dict.fromkeys(others, 2)
    assert [m for m in run.measurements if m.metric == "burn_in.tokens_per_second"]


def test_a_worker_killed_in_mid_trial_costs_its_node_and_no_more(healing, tmp_path):
    out = tmp_path / "run"
    deed = in_mid_training(out, lambda: healing.hosts["node2"].kill(WORKER))
    run, verdict, _ = run_on(healing, out, "node[1-3]", profile="hosts")
    deed.join()
    assert_lost_in_training(run, verdict, "node2", ["node1", "node3"])


def test_a_cable_cut_in_mid_run_costs_its_node_and_no_more(healing, tmp_path):
    out = tmp_path / "run"
    deed = in_mid_training(out, lambda: healing.cut("node3"))
    started = time.monotonic()
    run, verdict, _ = run_on(healing, out, "node[1-3]", profile="hosts")
    assert time.monotonic() - started < 150
    deed.join()
    assert_lost_in_training(run, verdict, "node3", ["node1", "node2"])


def left_on(lab):
    """Processes of ours on any host."""
    return {name: host.processes("hwlottery|multiprocessing") for name, host in lab.hosts.items()}


def test_a_finished_run_leaves_no_process_on_its_hosts(healthy, lab):
    assert not any(left_on(lab).values())


def command_lines(lab):
    here = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.parent.name != "self"]
    return b"\n".join(here) + "".join(host.run("ps", "-eo", "args") for host in lab.hosts.values()).encode()


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_ended_in_the_middle_leaves_no_process_on_its_hosts_and_resumes(healing, tmp_path, end, code):
    out = tmp_path / "run"
    head = subprocess.Popen(
        [sys.executable, "-m", "hwlottery", *arguments(out, "node[1-2]", profile="hosts")],
        env={**os.environ, "HWLOTTERY_SSH": healing.ssh},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deed = in_mid_training(out, lambda: None)
        deed.join()
        seen = command_lines(healing)
        assert WORKER.encode() in seen
        assert b"PRIVATE KEY" not in seen
        assert b"CERTIFICATE" not in seen
        head.send_signal(end)
        assert head.wait(timeout=60) == code
    finally:
        head.kill()
        head.wait()
    wait_until(lambda: not any(left_on(healing).values()), 45, "every process of ours on the hosts has ended")
    trained = {event.trial for event in read_run(out).events if event.kind == "trial_ended"}
    assert trained
    result = hwlottery(healing, "run", "--resume", out)
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    run = read_run(out)
    assert run.problems == []
    assert len(run.header.segments) == 2
    assert {m.subject.partition("/")[0] for m in run.measurements if m.metric == "burn_in.step"} == {"node1", "node2"}
    assert [f for f in json.loads((out / "verdict.json").read_text())["findings"] if f["result"] == "fail"] == []


@pytest.mark.parametrize("seconds", [120, -120])
def test_a_node_with_a_clock_two_minutes_off_is_named_and_measured(lab, tmp_path, seconds):
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        pytest.skip("needs libfaketime")
    fake = {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s"}
    lab.set_env("node4", **fake)
    try:
        run, verdict, _ = run_on(lab, tmp_path / "run", "node[1,2,4]", "--only", "matmul")
    finally:
        lab.set_env("node4")
    offsets = {m.subject: m.numbers()[0] for m in run.measurements if m.metric == "clock.offset"}
    assert offsets["node4"] == pytest.approx(seconds, abs=1)
    assert all(abs(offsets[node]) < 0.5 for node in ("node1", "node2"))
    assert set(events(run, "note")) == {"node4"}
    warned = {f["subject"] for f in verdict["findings"] if f["check"] == "clock.agrees" and f["result"] == "warn"}
    assert warned == {"node4"}
    assert {m.subject.partition("/")[0] for m in run.measurements if m.metric == "matmul.tflops"} >= {"node4"}


@pytest.fixture
def other_torch(lab):
    """A host whose torch says another version."""
    folder = lab.folder / "other"
    metadata = folder / "torch-1.0.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0.0\n")
    lab.set_env("node3", PYTHONPATH=f"{ROOT / '.src'}:{folder}")
    yield "node3"
    lab.set_env("node3")


def test_a_node_with_another_torch_is_named_before_anything_runs(lab, tmp_path, other_torch):
    out = tmp_path / "run"
    result = hwlottery(lab, *arguments(out, "node[1,3]"))
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert f"{other_torch} has torch 1.0.0, not" in line
    assert "node1 has" not in line
    assert "--allow-unlike" in line
    assert not out.exists(), "a start that is refused leaves no directory"


def test_a_node_with_another_torch_takes_part_where_that_is_allowed_and_is_recorded(lab, tmp_path, other_torch):
    run, _, _ = run_on(lab, tmp_path / "run", "node[1,3]", "--only", "matmul", "--allow-unlike")
    assert run.header.segments[0].software[other_torch]["torch"] == "1.0.0"
    assert run.header.segments[0].software["node1"]["torch"] != "1.0.0"
    assert "has torch 1.0.0, not" in events(run, "note")[other_torch]
    assert {m.subject.partition("/")[0] for m in run.measurements if m.metric == "matmul.tflops"} == {"node1", "node3"}
