"""recheck --idle: which nodes are due, what is asked of Slurm, and, in a real Slurm, who is measured and what is left
when another job takes the nodes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from generated_runs import write_run
from hypothesis import given
from hypothesis import strategies as st
from test_history import NOW, judged, past, seen
from test_run_in_slurm import STEP, in_lab, lab, slurm, whole_run

from hwlottery.cluster.slurm import in_slurm_step
from hwlottery.evidence import RunError, read_run
from hwlottery.readers.sinfo import idle_nodes
from hwlottery.runner.idle import NodesTaken, Wanted, run_step, split, step_words
from hwlottery.scoring import score_run
from hwlottery.scoring.due import due_first
from hwlottery.scoring.history import ClusterHistory

__all__ = ["lab", "slurm", "whole_run"]  # fixtures


def weeks_ago(**weeks: float | None) -> ClusterHistory:
    """A cluster by how many weeks ago each node was measured with a partner; None for never."""
    names = tuple(weeks)
    runs = [
        past(7 * ago, seen(name, partners=[f"hw-{other}" for other in names if other != name]), run_id=name)
        for name, ago in weeks.items()
        if ago is not None
    ]
    (cluster,) = judged(*runs, past(700, *map(seen, ())), nodes=names).clusters
    return cluster


# --- who is due ---------------------------------------------------------------------------------------------------


def test_who_was_measured_longest_ago_comes_first_and_never_is_longest() -> None:
    cluster = weeks_ago(a=2, b=None, c=5, d=0.1)
    assert due_first(cluster, ["a", "b", "c", "d"]) == ("b", "c", "a")
    assert due_first(cluster, ["a", "b", "c", "d"], 2) == ("b", "c")
    assert due_first(cluster, ["a", "c"]) == ("c", "a")


def test_one_that_is_due_alone_gets_a_partner_that_is_idle() -> None:
    assert due_first(weeks_ago(a=2, b=0.1, c=0.2), ["a", "b", "c"]) == ("a", "c")
    assert due_first(weeks_ago(a=2, b=0.1), ["a"]) == ("a",), "half of it is better than nothing"
    assert due_first(weeks_ago(a=2, b=0.1), ["a", "b"], 1) == ("a",)


def test_one_that_lacks_a_partner_alone_waits_for_one() -> None:
    runs = (past(1, seen("a")), past(1.5, seen("b", partners=["hw-a"]), run_id="r"))
    (cluster,) = judged(*runs).clusters
    assert [one.node for one in cluster.uncovered] == ["a"]
    assert due_first(cluster, ["a"]) == ()
    assert due_first(cluster, ["a", "b"]) == ("a", "b")


def test_where_no_pairs_are_measured_nobody_waits_for_a_partner_and_nobody_is_due_for_ever() -> None:
    (cluster,) = judged(past(1, seen("a"), seen("b")), past(9, seen("c"), run_id="r")).clusters
    assert due_first(cluster, ["a", "b", "c"], pairs=False) == ("c",)
    assert due_first(cluster, ["a", "b"], pairs=False) == ()


SWALLOWED = """
import os, signal, time
from hwlottery.runner.stopping import Terminated, signals_raise
class Odd:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
try:
    with signals_raise():
        Odd()
        print("went on", flush=True)
        time.sleep(30)
except Terminated:
    print("stopped")
time.sleep(0.5)
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


def test_a_signal_that_is_swallowed_on_its_way_comes_again() -> None:
    """What is raised in a destructor or in a callback of the garbage collector is printed, and goes nowhere."""
    result = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=20, check=False)
    assert result.stdout.split("\n")[:3] == ["went on", "stopped", "True"], result.stderr


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.none() | st.floats(0.1, 30), min_size=1),
    st.sets(st.sampled_from("abcdefgh")),
    st.none() | st.integers(1, 4),
)
def test_only_idle_nodes_of_the_cluster_are_taken_and_nobody_where_none_is_due(
    weeks: dict[str, float | None], idle: set[str], most: int | None
) -> None:
    cluster = weeks_ago(**weeks)
    taken = due_first(cluster, idle, most)
    assert set(taken) <= idle & set(weeks)
    assert len(set(taken)) == len(taken) <= max(most or 6, 2)
    due = {one.node for one in cluster.uncovered}
    assert not taken or due & set(taken)


# --- what is asked of Slurm ---------------------------------------------------------------------------------------


def test_idle_is_who_has_no_flag_and_stands_there_once() -> None:
    text = "n1 idle\nn2 idle*\nn3 idle~\nn4 alloc\nn1 idle\nn5 idle-\nn6 mix\n\nn7 idle\n"
    assert idle_nodes(text) == ("n1", "n7")


def wanted(*nodes: str, gpus: int | None = None) -> Wanted:
    return Wanted(nodes=nodes, gpus_per_node=gpus, partition="batch", time="1", within_s=7, more=("--qos=scavenger",))


def test_the_step_is_one_process_a_node_that_starts_now_or_not_at_all() -> None:
    words = step_words(wanted("n01", "n02", "n05", gpus=8), "name", ["recheck", "--baseline", "a b"])
    assert words[0] == "srun"
    for word in ("--nodelist=n[01-02,05]", "--nodes=3", "--ntasks-per-node=1", "--immediate=7", "--gpus-per-node=8",
                 "--partition=batch", "--exclusive", "--no-kill", "--job-name=name", "--qos=scavenger"):  # fmt: skip
        assert word in words
    assert words[-3:] == ["recheck", "--baseline", "a b"]
    assert not [word for word in words if "PRIVATE" in word], "the identity is in the environment alone"


def test_words_that_no_shell_could_split_are_one_line() -> None:
    with pytest.raises(RunError, match="--srun"):
        split("--comment='x")


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Commands of Slurm's that say what they are told to."""

    def pretend(**scripts: str) -> None:
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return pretend


@pytest.mark.parametrize(
    ("said", "error"),
    [("Requested nodes are busy", NodesTaken), ("Invalid account or account/partition combination", RunError)],
)
def test_what_slurm_refuses_is_told_by_its_reason(
    pretended: Callable[..., None], said: str, error: type[Exception]
) -> None:
    pretended(srun=f"echo 'srun: error: Unable to allocate resources: {said}' >&2; exit 1")
    with pytest.raises(error, match=said):
        run_step(wanted("n1"), ["recheck"], lambda line: None)


def test_what_the_job_says_and_ends_with_is_passed_on_with_an_identity_of_its_own(
    pretended: Callable[..., None],
) -> None:
    pretended(srun="echo hello >&2; [[ $HWLOTTERY_IDENTITY == *PRIVATE* ]] && exit 5")
    said: list[str] = []
    assert run_step(wanted("n1"), ["recheck"], said.append) == 5
    assert said == ["hello\n"]


def test_a_step_of_one_node_that_was_given_an_identity_is_of_slurm() -> None:
    one = {**STEP, "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "n2", "SLURM_PROCID": "0"}
    assert in_slurm_step(one) is None
    step = in_slurm_step({**one, "HWLOTTERY_IDENTITY": "{}"})
    assert step is not None
    assert (step.count, step.leads, step.nodes) == (1, True, ("n2",))


# --- the command --------------------------------------------------------------------------------------------------


def hwlottery(*words: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hwlottery", *map(str, words)],
        capture_output=True, text=True, timeout=280, check=False, env=env,
    )  # fmt: skip


def test_options_that_do_not_go_together_are_one_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", nodes=2, accelerators=1)
    without = hwlottery("recheck", "--baseline", run, "--partition", "x", "--dry-run")
    assert (without.returncode, "give --idle" in without.stderr) == (2, True)
    both = hwlottery("recheck", "--baseline", run, "--idle", "--hosts", "n1", "--dry-run")
    assert (both.returncode, "--hosts cannot be given with --idle" in both.stderr) == (2, True)


def test_a_dry_run_says_who_and_how_and_starts_nothing(tmp_path: Path, pretended: Callable[..., None]) -> None:
    pretended(sinfo="echo 'n00 idle'; echo 'n01 idle'; echo 'n09 idle'", srun="exit 1")
    run = write_run(tmp_path / "runs" / "run", nodes=3, accelerators=1)
    result = hwlottery(
        "recheck", "--baseline", run, "--idle", "--older-than", "0", "--only", "matmul", "--dry-run", "--json"
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["nodes"] == ["n00", "n01"]
    assert {"--only=matmul", "--json", str(run)} <= set(told["command"])
    assert "--dry-run" not in told["command"]
    assert str(tmp_path / "runs" / "recheck-") in told["command"][told["command"].index("--out") + 1]


@pytest.mark.parametrize(
    ("older", "sinfo", "code", "words"),
    [
        ("36000", "echo 'n00 idle'", 0, "No node is due"),
        ("0", "echo 'n09 idle'", 4, "idle: none of the baseline's nodes"),
        ("0", "echo 'slurm_load_partitions: no route' >&2; exit 1", 2, "no route"),
    ],
)
def test_where_nothing_is_started_the_exit_code_says_why(
    tmp_path: Path, pretended: Callable[..., None], older: str, sinfo: str, code: int, words: str
) -> None:
    pretended(sinfo=sinfo, srun="exit 1")
    run = write_run(tmp_path / "runs" / "run", nodes=3, accelerators=1)
    result = hwlottery("recheck", "--baseline", run, "--idle", "--older-than", older)
    assert result.returncode == code, result.stderr
    assert words in result.stdout + result.stderr


# --- a real Slurm -------------------------------------------------------------------------------------------------

BESIDE = """name: beside
signable: false
checks:
  - {check: whole, rule: evidence.complete, each: cluster, category: evidence}
  - {check: a, metric: matmul.tflops, where: {phase: sustained}, each: accelerator, category: compute,
     layers: {baseline: {warn: 0.02, fail: 0.01}}}
"""
KILL_WAIT_S = 30  # Slurm's default: from SIGTERM to SIGKILL


class TestInTheLab:
    """Idle nodes of a real Slurm; a partition whose jobs preempt ours."""

    pytestmark = in_lab

    @pytest.fixture
    def asked(self, lab, whole_run, tmp_path_factory):
        """What every recheck of idle nodes is given here, with a folder of runs of its own."""
        weeks = lab.folder / f"weeks-{time.monotonic_ns()}"
        weeks.mkdir()
        (weeks / "beside.yaml").write_text(BESIDE)
        given = ["--baseline", whole_run[0], "--idle", "--older-than", 0, "--history", weeks, "--within", 20]
        return ["recheck", *given, "--policy", weeks / "beside.yaml", "--out", weeks / "now"], weeks / "now"

    @pytest.fixture
    def busy(self, slurm) -> Iterator["subprocess.Popen[bytes]"]:
        """A job of somebody's on node2."""
        job = subprocess.Popen(["srun", "--nodelist=node2", "--exclusive", "sleep", "200"], env=slurm)
        self.until(lambda: "node2 alloc" in self.states(slurm))
        yield job
        subprocess.run(["scancel", "--nodelist=node2"], env=slurm, check=True)
        job.wait(timeout=60)
        self.until(lambda: "node2 idle" in self.states(slurm))

    @staticmethod
    def states(slurm) -> str:
        return subprocess.run(
            ["sinfo", "-h", "-N", "-p", "main", "-o", "%N %t"], env=slurm, capture_output=True, text=True, check=True
        ).stdout

    @staticmethod
    def until(held: Callable[[], object], patience_s: float = 90) -> None:
        end = time.monotonic() + patience_s
        while not held():
            assert time.monotonic() < end, "it never came"
            time.sleep(0.2)

    def test_the_idle_nodes_are_rechecked_and_the_busy_one_is_left_alone(self, slurm, asked, busy, whole_run):
        words, out = asked
        result = hwlottery(*words, "--json", "--prometheus", out.parent / "run.prom", env=slurm)
        assert result.returncode in (0, 4, 5), result.stderr
        run = read_run(out)
        assert run.problems == [], result.stderr
        assert {node.node for node in run.header.promised} == {"node1", "node3"}
        assert run.header.launcher.name == "slurm"
        told = json.loads(result.stdout)
        assert told["compared"]["baseline"]["run_id"] == read_run(whole_run[0]).header.run_id
        assert any("node2 took no part" in change for change in told["compared"]["baseline"]["changes"])
        assert "hwlottery_verdict{" in (out.parent / "run.prom").read_text()
        assert busy.poll() is None
        assert "PRIVATE" not in result.stderr + result.stdout
        again = hwlottery(*words[:-2], "--older-than", 1, env=slurm)
        assert (again.returncode, "No node is due" in again.stdout) == (0, True), again.stdout + again.stderr

    def test_one_node_alone_is_a_step_of_slurm_too(self, slurm, asked):
        words, out = asked
        result = hwlottery(*words, "--at-most", 1, "--only", "matmul", env=slurm)
        assert result.returncode in (0, 4, 5), result.stderr
        run = read_run(out)
        assert (len(run.header.promised), run.header.launcher.name, run.problems) == (1, "slurm", [])

    @pytest.fixture
    def running(self, slurm, asked) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
        """A recheck that takes long, while it measures."""
        words, out = asked
        more = ["--profile", "smoke", "--at-most", 2]
        said = (out.parent / "said").open("w")
        with said, subprocess.Popen(
            [sys.executable, "-m", "hwlottery", *map(str, [*words, *more])], env=slurm, stdout=said, stderr=said
        ) as job:  # fmt: skip
            try:
                self.until(lambda: b"hardware" in ((out / "facts.jsonl").read_bytes() if out.exists() else b""))
                yield job, out
            finally:
                job.kill()
        self.until(lambda: self.states(slurm).count("idle") == 3)

    def assert_valid(self, out: Path, slurm) -> None:
        """The record is whole up to where it was cut: it can be judged, resumed, and counts for what it has."""
        run = read_run(out)
        assert {one.detail for one in run.problems} <= {
            "the run did not finish",
            "no checksums: the run did not finish",
        }
        verdict = score_run(run)
        assert verdict.verdict == "INCONCLUSIVE"
        assert [one for one in verdict.findings if one.result == "fail"] == [], "who was stopped is not blamed"
        assert not [event for event in run.events if event.kind in ("node_lost", "worker_lost")]
        assert any(fact.key == "hardware.identity" for fact in run.facts)
        assert hwlottery("verify", out, env=slurm).returncode == 6

    def test_a_job_that_takes_the_nodes_leaves_a_valid_run(self, slurm, running):
        job, out = running
        began = time.monotonic()
        nodes = ",".join(sorted(node.node for node in read_run(out).header.promised))
        words = ["srun", "--partition=urgent", f"--nodelist={nodes}", "--nodes=2", "--exclusive", "hostname"]
        taken = subprocess.run(words, env=slurm, capture_output=True, text=True, timeout=120, check=False)
        assert sorted(taken.stdout.split()) == nodes.split(","), taken.stderr
        assert time.monotonic() - began < KILL_WAIT_S, "whoever needs the nodes has them before Slurm must kill"
        assert job.wait(timeout=60) == 143, (out.parent / "said").read_text()
        self.assert_valid(out, slurm)

    def test_sigterm_to_the_command_ends_the_job_and_leaves_a_valid_run(self, slurm, running):
        job, out = running
        job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=60) == 143, (out.parent / "said").read_text()
        self.assert_valid(out, slurm)
        queue = subprocess.run(["squeue", "-h", "-t", "R"], env=slurm, capture_output=True, text=True, check=True)
        assert "hwlottery" not in queue.stdout


def test_generated_weeks_are_as_long_ago_as_they_say() -> None:
    assert [one.missing for one in weeks_ago(a=0.5, b=2).coverage] == [(), ("measured", "partner")]
    assert NOW.tzinfo is not None
