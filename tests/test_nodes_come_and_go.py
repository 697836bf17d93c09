"""Nodes taken into an accepted run, in place of others too, and nodes that do not come back: on a lab's hosts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import Lab
from lab.lab import missing_tools, wait_until

from hwlottery.evidence import read_run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
PROFILE = Path(__file__).parent / "profiles" / "joins.yaml"
VERDICTS = (0, 3, 4, 5)
MBIT = 100
POLICY = """
name: links
signable: true
exclude_at_most: 0.5
checks:
  - {check: evidence.complete, rule: evidence.complete, each: cluster, category: evidence}
  - {check: node.responds, rule: node.responds, each: node, category: evidence, excludable: true}
  - check: matmul.repeats
    metric: matmul.mismatches
    each: accelerator
    layers: {contract: {at_most: 0}}
    category: compute
  - check: pairs.nodes
    rule: pairs.nodes
    each: node
    layers: {peers: {effect: 0.25, sigmas: 5}}
    excludable: true
    category: fabric
"""


@pytest.fixture(scope="module")
def lab():
    with Lab(4, mbit=MBIT) as made:
        yield made


@pytest.fixture
def healing(lab):
    yield lab
    lab.heal()


def hwlottery(lab, *given):
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, given)],
        capture_output=True,
        text=True,
        env={**os.environ, "HWLOTTERY_SSH": lab.ssh},
        timeout=280,
        check=False,
    )


def new_run(folder, hosts):
    (folder / "links.yaml").write_text(POLICY)
    given = ["--profile", PROFILE, "--policy", folder / "links.yaml", "--scratch", "/tmp", "--out", folder / "run"]
    return ["run", *given, "--hosts", hosts]


def judged(out, result):
    """The run read back and its verdict."""
    assert result.returncode in VERDICTS, result.stdout + result.stderr
    run = read_run(out)
    assert run.problems == []
    return run, json.loads((out / "verdict.json").read_text())


def joined(lab, accepted, out, *more):
    return judged(out, hwlottery(lab, "run", "--join", accepted, "--out", out, *more))


@pytest.fixture(scope="module")
def accepted(lab, tmp_path_factory):
    """An accepted run on three healthy hosts."""
    folder = tmp_path_factory.mktemp("accepted")
    run, verdict = judged(folder / "run", hwlottery(lab, *new_run(folder, "node[1-3]")))
    assert verdict["exclude"] == []
    return folder / "run", run


def begun_since(run):
    """What the join has begun: functions of single nodes, and pairs by their subject."""
    plans = [plan for plan in run.plans if plan.number > run.header.joins[-1].last_number]
    alone = {
        (plan.function.partition(":")[0], plan.ranks[0].partition("/")[0]) for plan in plans if len(plan.ranks) == 1
    }
    together = [plan.params["subject"] for plan in plans if plan.probe == "pairs"]
    return alone, [set(subject.split("~")) for subject in together if "~" in subject], plans


def failed(verdict, check):
    return {f["subject"] for f in verdict["findings"] if f["check"] == check and f["result"] == "fail"}


def test_a_newcomer_is_measured_alone_and_with_accepted_nodes_and_judged_with_all(accepted, lab, tmp_path):
    before, old = accepted
    sums = (before / "SHA256SUMS").read_bytes()
    run, verdict = joined(lab, before, tmp_path / "run", "--hosts", "node4")
    alone, pairs, plans = begun_since(run)
    assert {node for probe, node in alone if probe == "inventory"} == {"node4"}
    assert {"node4", "node1"} in pairs
    assert {"node4", "node2"} in pairs
    assert {"node4", "node3"} in pairs
    among_accepted = {frozenset(pair) for pair in pairs if "node4" not in pair}
    assert len(among_accepted) == 1, "one pair shows what is good today, the others are not measured again"
    assert [len(plan.ranks) for plan in plans if plan.params.get("subject") == "cluster"] == [4, 2]
    assert verdict["exclude"] == []
    assert verdict["verdict"] == "GO", verdict["reasons"]
    when = {each["node"]: each for each in verdict["measured"]}
    assert len(when["node1"]["starts"]) == 2
    assert len(when["node4"]["starts"]) == 1
    assert when["node1"]["accepted_in"] == old.header.run_id
    assert when["node4"]["accepted_in"] is None
    assert any("node4" in line for line in verdict["caveats"])
    assert (before / "SHA256SUMS").read_bytes() == sums
    assert hwlottery(lab, "verify", before).returncode == 0
    assert (tmp_path / "run" / "plan.jsonl").read_bytes().startswith((before / "plan.jsonl").read_bytes())


def test_a_newcomer_with_a_slow_cable_is_excluded_and_no_accepted_node(accepted, healing, tmp_path):
    healing.shape("node4", MBIT / 5)
    _, verdict = joined(healing, accepted[0], tmp_path / "run", "--hosts", "node4")
    assert verdict["exclude"] == ["node4"]
    assert verdict["verdict"] == "CONDITIONAL"


def test_a_node_in_place_of_a_bad_one_of_its_name_is_judged_by_its_own_figures(healing, tmp_path):
    healing.shape("node2", MBIT / 5)
    bad, verdict = judged(tmp_path / "run", hwlottery(healing, *new_run(tmp_path, "node[1-3]")))
    assert failed(verdict, "pairs.nodes") == {"node2"}
    healing.heal()
    (healing.folder / "machine-id").write_text("0123456789abcdef0123456789abcdee\n")
    healing.hosts["node2"].run("mount", "--bind", healing.folder / "machine-id", "/etc/machine-id")
    try:
        run, verdict = joined(healing, tmp_path / "run", tmp_path / "joined", "--hosts", "node2")
    finally:
        healing.hosts["node2"].run("umount", "/etc/machine-id")
    alone, pairs, _ = begun_since(run)
    assert ("inventory", "node2") in alone
    assert {m.subject for m in run.measurements if m.metric == "matmul.tflops"} >= {"node2/slot0"}
    assert {"node1", "node2"} in pairs
    assert verdict["exclude"] == []
    assert verdict["verdict"] == "GO", verdict["reasons"]
    (said,) = [event.detail for event in run.events if event.kind == "note" and event.subject == "node2"]
    assert "the hardware behind node2 changed" in said
    assert len(run.measurements) > len(bad.measurements), "what was measured of the former node is kept"


def test_a_resume_goes_on_without_a_node_that_does_not_come_back(healing, tmp_path):
    out = tmp_path / "run"
    head = subprocess.Popen(
        [sys.executable, "-m", "hwlottery", *map(str, new_run(tmp_path, "node[1-3]"))],
        env={**os.environ, "HWLOTTERY_SSH": healing.ssh},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    events = out / "events.jsonl"
    try:
        wait_until(lambda: events.exists() and '"trial":"pairs-' in events.read_text(), 150, "a pair has been measured")
    finally:
        head.send_signal(signal.SIGKILL)
        head.wait()
    done = {event.trial: event for event in read_run(out).events if event.kind == "trial_ended"}
    telemetry = {file: file.read_bytes() for file in (out / "telemetry").rglob("*.parquet")}
    healing.hosts["node3"].kill("sshd:.*listener")
    try:
        run, verdict = judged(out, hwlottery(healing, "run", "--resume", out))
    finally:
        healing.set_env("node3")
    assert failed(verdict, "node.responds") == {"node3"}
    assert verdict["exclude"] == ["node3"]
    begun = [json.loads(line)["trial"] for line in (out / "plan.jsonl").read_text().splitlines()]
    assert all(begun.count(trial) == 1 for trial in done), "what had ended was not begun again"
    ended = {event.trial: event for event in run.events if event.kind == "trial_ended"}
    assert all(ended[trial] == event for trial, event in done.items()), "and is kept"
    assert all(file.read_bytes() == content for file, content in telemetry.items())
    together = {tuple(plan.ranks) for plan in run.plans if plan.params.get("subject") == "cluster"}
    assert ("node1/slot0", "node2/slot0") in together
    (clock,) = [m for m in run.measurements if m.metric == "clock.offset" and m.subject == "node3"]
    assert clock.attempt == 1
