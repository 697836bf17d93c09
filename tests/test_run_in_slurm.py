"""Runs inside a real Slurm on a lab: the printed script as it is, and what keeps a task from taking part."""

import json
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from lab import Lab
from lab.lab import ROOT, missing_tools
from lab.slurm import missing_slurm

from hwlottery.cluster.slurm import in_slurm_step
from hwlottery.evidence import RunError, read_run

PROFILE = Path(__file__).parent / "profiles" / "tiny.yaml"
MISSING = [*missing_tools(), *missing_slurm()]
in_lab = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(MISSING), reason=f"the lab needs {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        yield made


@pytest.fixture(scope="module")
def slurm(lab):
    with lab.slurm() as env:
        yield {**env, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT / 'tests'}"}


def submitted(lab, slurm, script):
    """Submit a script, wait for its job, and return what it printed."""
    output = lab.folder / f"out-{time.monotonic_ns()}"
    subprocess.run(
        ["sbatch", "--wait", f"--output={output}", "--chdir=/tmp"],
        input=script,
        text=True,
        env=slurm,
        capture_output=True,
        timeout=280,
        check=False,
    )
    return output.read_text()


def script_for(out, *more):
    """The script as `hwlottery launch slurm` prints it."""
    given = ["--profile", PROFILE, "--policy", "prolog", "--scratch", "/tmp", "--out", out]
    words = ["launch", "slurm", "--nodes", "3", "--time", "5", "--", *given, *more]
    printed = subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, words)], capture_output=True, text=True, check=True
    )
    return printed.stdout


@pytest.fixture(scope="module")
def whole_run(lab, slurm):
    """A run by the printed script: its directory, and what the job printed."""
    out = lab.folder / "run"
    return out, submitted(lab, slurm, script_for(out))


class TestInTheLab:
    """What needs a real Slurm."""

    pytestmark = in_lab

    def test_the_printed_script_runs_as_printed_and_measures_every_node(self, lab, whole_run):
        out, said = whole_run
        run = read_run(out)
        assert run.problems == [], said
        assert {node.node for node in run.header.promised} == set(lab.hosts)
        assert {event.subject for event in run.events if event.kind == "node_joined"} == set(lab.hosts)
        assert run.header.launcher.name == "slurm"
        assert "SLURM_STEP_NODELIST" in run.header.launcher.why
        measured = {m.subject.partition("/")[0] for m in run.measurements if m.metric == "all_reduce.busbw"}
        assert measured == set(lab.hosts)
        verdict = json.loads((out / "verdict.json").read_text())
        assert verdict["exclude"] == []
        assert "launcher slurm" in said
        assert f"node1:{out}" in said, "on which machine and path the report lies"

    def test_nothing_secret_is_in_the_output_or_the_run_directory(self, whole_run):
        out, said = whole_run
        texts = [said.encode(), *(file.read_bytes() for file in out.rglob("*") if file.is_file())]
        assert len(texts) > 5
        assert not any(b"PRIVATE KEY" in text or b"BEGIN CERT" in text for text in texts)

    def test_a_node_of_the_step_that_lacks_hwlottery_is_named_and_the_run_goes_on(self, lab, slurm):
        out = lab.folder / "lacking"
        lacking, package = lab.hosts["node3"], Path(click.__file__).parent  # without it there is no command
        lacking.run("mount", "-t", "tmpfs", "tmpfs", package)
        try:
            said = submitted(lab, slurm, script_for(out, "--join-within", 20, "--only", "all_reduce"))
        finally:
            lacking.run("umount", package)
        run = read_run(out)
        assert run.problems == [], said
        assert {node.node for node in run.header.promised} == set(lab.hosts)
        assert {event.subject for event in run.events if event.kind == "node_lost"} == {"node3"}
        assert {m.subject for m in run.measurements if m.metric == "all_reduce.busbw"} >= {"node1", "node2"}
        findings = json.loads((out / "verdict.json").read_text())["findings"]
        failed = {found["subject"] for found in findings if found["result"] == "fail"}
        assert failed == {"node3"}

    def test_without_an_identity_nothing_starts_to_listen(self, lab, slurm):
        out = lab.folder / "refused"
        script = script_for(out).replace("export HWLOTTERY_IDENTITY", "unset HWLOTTERY_IDENTITY")
        said = submitted(lab, slurm, script)
        assert "no identity for this run" in said
        assert "Traceback" not in said
        assert not out.exists()


STEP = {
    "SLURM_STEP_NUM_NODES": "3",
    "SLURM_STEP_NODELIST": "n[1-3]",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
    "SLURMD_NODENAME": "n2",
    "SLURM_JOB_ID": "17",
}


def test_a_step_on_several_nodes_is_recognised_by_slurms_own_variables():
    step = in_slurm_step(STEP)
    assert step.nodes == ("n1", "n2", "n3")
    assert (step.heads, step.node, step.leads) == (("n1",), "n2", False)
    assert "job 17" in step.why


@pytest.mark.parametrize(
    "env", [{}, {**STEP, "SLURM_STEP_NUM_NODES": "1"}, {"SLURM_PROCID": "0", "SLURM_JOB_ID": "17"}]
)
def test_what_is_no_step_on_several_nodes_is_this_machine_alone(env):
    assert in_slurm_step(env) is None


def test_several_tasks_of_one_node_are_one_node():
    step = in_slurm_step(
        {**STEP, "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_NODELIST": "n2"}
    )
    assert (step.count, step.processes, step.leads) == (1, 8, False)


def test_a_task_on_a_node_that_is_not_of_its_step_is_refused():
    with pytest.raises(RunError, match="n9"):
        in_slurm_step({**STEP, "SLURMD_NODENAME": "n9"})


class TestRecheckInTheLab:
    """A part of the cluster, as a job that Slurm gives to whoever is idle."""

    pytestmark = in_lab

    def test_a_recheck_of_a_part_is_held_against_the_run_of_all(self, lab, slurm, whole_run):
        baseline, said = whole_run
        out, policy = lab.folder / "recheck", lab.folder / "beside.yaml"
        policy.write_text(
            "name: beside\nsignable: false\nchecks:\n"
            "  - {check: whole, rule: evidence.complete, each: cluster, category: evidence}\n"
            "  - {check: a, metric: matmul.tflops, where: {phase: sustained}, each: accelerator, category: compute,\n"
            "     layers: {baseline: {warn: 0.02, fail: 0.01}}}\n"
        )
        words = ["--baseline", baseline, "--policy", policy, "--out", out]
        printed = subprocess.run(
            [sys.executable, "-m", "hwlottery", "launch", "slurm", "--nodes", "2", "--time", "5", "--", "recheck",
             *map(str, words)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        said = submitted(lab, slurm, printed.stdout)
        assert out.exists(), said
        run = read_run(out)
        assert run.problems == [], said
        assert len(run.header.promised) == 2
        compared = json.loads((out / "verdict.json").read_text())["compared"]
        assert compared["baseline"]["run_id"] == read_run(baseline).header.run_id
        assert compared["figures"] == 4, said
        assert any("took no part" in change for change in compared["baseline"]["changes"]), compared
