"""Retests within a node: who is slow twice is named, who is slow once comes and goes, and nobody else is accused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from generated_runs import H100, make_run

from hwlottery.cluster import Cluster, Finished, Node, Outcome, Rank, TimedOut, Trial, WorkerLost
from hwlottery.evidence import Missing, Params, read_run, reading
from hwlottery.outliers import MOST_ATTEMPTS
from hwlottery.probes.checkpoint import Checkpoint, CheckpointSettings
from hwlottery.probes.matmul import Matmul, MatmulSettings
from hwlottery.probes.memory import Memory, MemorySettings
from hwlottery.probes.protocol import Probe
from hwlottery.scoring import doubts_of, score_run

Pace = Callable[[str, str, int], float]  # metric, subject, attempt: the value
SETTINGS = MatmulSettings(dtypes=("bf16",), shapes=((64, 64, 64),), burst_iterations=5, repeats=0)


def cluster(nodes: int = 4, ranks: int = 2, device: str = "cpu", **more: object) -> Cluster:
    word = "gpu" if device == "cuda" else "slot"
    return Cluster(
        nodes=tuple(
            Node(
                name=f"n{n}",
                scratch="/scratch",
                ranks=tuple(
                    Rank(subject=f"n{n}/{word}{i}", node=f"n{n}", index=i, device=device) for i in range(ranks)
                ),
            )
            for n in range(nodes)
        ),
        device=device,
        **more,
    )


def followed(
    probe: Probe, settings: object, over: Cluster, pace: Pace, other: Callable[[Trial], Outcome | None] = lambda _: None
) -> list[list[Trial]]:
    """The rounds that a probe asks for where values are what `pace` says, or where a trial ends in another way."""
    plan, rounds = probe.plan(over, settings, 1), []
    trials = next(plan)
    while True:
        rounds.append(trials)
        try:
            trials = plan.send([other(trial) or _finished(trial, pace) for trial in trials])
        except StopIteration:
            return rounds


def _finished(trial: Trial, pace: Pace) -> Finished:
    brought = tuple(
        reading(fill.metric, fill.subject, [pace(fill.metric, fill.subject, trial.attempt)] * 3, **fill.params)
        for fill in trial.fills
    )
    return Finished(readings=brought, trial=f"{trial.function}-{[rank.subject for rank in trial.ranks]}")


def nodes_of(trials: list[Trial]) -> list[str]:
    return [node for trial in trials for node in dict.fromkeys(rank.node for rank in trial.ranks)]


def test_healthy_nodes_are_measured_once() -> None:
    for probe, settings in (
        (Matmul(), SETTINGS),
        (Memory(), MemorySettings(device_mib=1, host_mib=1)),
        (Checkpoint(), CheckpointSettings(mib_per_rank=32, saves=1)),
    ):
        assert all(trial.attempt == 1 for trials in followed(probe, settings, cluster(), even) for trial in trials)


def even(metric: str, subject: str, attempt: int) -> float:
    return 100.0 + sum(subject.encode()) % 7 / 100


def slow_at(subject: str, attempts: tuple[int, ...], by: float = 0.8) -> Pace:
    def pace(metric: str, who: str, attempt: int) -> float:
        return even(metric, who, attempt) * (by if who == subject and attempt in attempts else 1)

    return pace


@pytest.mark.parametrize("attempts", [(1,), (1, 2, 3)])
def test_a_slow_rank_is_measured_again_once_on_its_node_with_good_nodes_beside_it(attempts: tuple[int, ...]) -> None:
    first, again = followed(Matmul(), SETTINGS, cluster(), slow_at("n2/slot1", attempts))
    assert len(nodes_of(again)) == 3
    assert "n2" in nodes_of(again)
    assert {(trial.attempt, trial.retest_of) for trial in again} == {
        (2, f"matmul:burst-{[r.subject for r in first[0].ranks]}")
    }
    (of_suspect,) = (trial for trial in again if trial.ranks[0].node == "n2")
    assert [rank.subject for rank in of_suspect.ranks] == ["n2/slot0", "n2/slot1"], "its neighbours work too, as before"
    assert {fill.subject for fill in of_suspect.fills} == {"n2/slot0", "n2/slot1"}
    assert of_suspect.params == first[0].params


def test_a_rank_that_is_slow_only_in_its_retest_is_measured_a_third_time_and_no_more() -> None:
    def pace(metric: str, who: str, attempt: int) -> float:
        odd = (who == "n2/slot1" and attempt == 1) or (who == "n2/slot0" and attempt == 2)
        return even(metric, who, attempt) * (0.8 if odd else 1)

    rounds = followed(Matmul(), SETTINGS, cluster(), pace)
    assert len(rounds) == MOST_ATTEMPTS
    assert "n2" in nodes_of(rounds[2])


def test_the_others_of_a_node_are_the_controls_where_it_is_the_only_one() -> None:
    _, (again,) = followed(Matmul(), SETTINGS, cluster(nodes=1, ranks=8), slow_at("n0/slot5", (1, 2)))
    assert len(again.ranks) == 8


def test_a_link_is_measured_again_as_it_was_alone_or_beside_the_others() -> None:
    settings = MemorySettings(device_mib=1, host_mib=1)

    def pace(metric: str, who: str, attempt: int) -> float:
        return even(metric, who, attempt) * (0.5 if (metric, who) == ("memory.host_to_device", "n0/gpu3") else 1)

    rounds = followed(Memory(), settings, cluster(nodes=1, ranks=4, device="cuda"), pace)
    again = [trials for trials in rounds if trials[0].attempt == 2]
    assert [[rank.index for rank in trial.ranks] for trials in again for trial in trials] == [[3], [0, 1, 2, 3]]
    assert [trials[0].params["load"] for trials in again] == ["alone", "node"]


def test_storage_is_measured_again_on_all_nodes_for_they_contend() -> None:
    settings = CheckpointSettings(mib_per_rank=32, saves=1)
    first, again = followed(Checkpoint(), settings, cluster(), slow_at("n1/fs:/scratch", (1,), by=2.0))
    assert nodes_of(again) == nodes_of(first) == ["n0", "n1", "n2", "n3"]


def test_one_without_peers_is_measured_again_where_it_falls_short_of_what_is_demanded() -> None:
    asked: list[tuple[str, str, Params, float]] = []

    def doubts(metric: str, subject: str, params: Params, value: float) -> bool:
        asked.append((metric, subject, params, value))
        return value < 90

    alone = cluster(nodes=1, ranks=1, doubts=doubts)
    assert len(followed(Matmul(), SETTINGS, alone, even)) == 1
    assert asked[0][:2] == ("matmul.tflops", "n0/slot0")
    assert asked[0][2]["phase"] == "burst"
    assert len(followed(Matmul(), SETTINGS, alone, lambda *_: 50.0)) == 2


def test_who_is_gone_or_brings_nothing_is_not_asked_again() -> None:
    def lost(trial: Trial) -> Outcome | None:
        found = _finished(trial, slow_at("n2/slot1", (1, 2)))
        return WorkerLost(subjects=("n2",), readings=found.readings, trial="t") if trial.attempt == 1 else None

    def hung(trial: Trial) -> Outcome | None:
        return TimedOut(subjects=("n2/slot1",), trial="t") if trial.attempt == 2 else None

    def absent(trial: Trial) -> Outcome | None:
        gone = Missing(metric="matmul.tflops", subject="n2/slot1", reason="unsupported", params=trial.fills[0].params)
        return Finished(readings=(gone,), trial="t") if trial.attempt == 2 else None

    slow = slow_at("n2/slot1", (1, 2))
    assert len(followed(Matmul(), SETTINGS, cluster(), slow, lost)) == 1
    assert len(followed(Matmul(), SETTINGS, cluster(), slow, hung)) == 2
    assert len(followed(Matmul(), SETTINGS, cluster(), slow, absent)) == 2


# What a policy would fail ------------------------------------------------------------------------------------------


def test_doubts_are_what_the_policy_would_fail_by_its_number_or_a_reference() -> None:
    header, _ = make_run(nodes=1, accelerators=2)
    facts = {}
    for gpu in ("n00/gpu0", "n00/gpu1"):
        facts[gpu, "accelerator.name"] = H100.name
        facts[gpu, "accelerator.memory"] = H100.memory_bytes
        facts[gpu, "accelerator.power_limit"] = H100.power_limit_w
    doubted = doubts_of(header, facts)
    shape: Params = {"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "phase": "sustained"}
    assert doubted("matmul.tflops", "n00/gpu0", shape, 0.89 * 730)
    assert not doubted("matmul.tflops", "n00/gpu0", shape, 0.91 * 730)
    assert not doubted("matmul.tflops", "n00/gpu0", shape | {"phase": "burst"}, 1.0), "nothing absolute is asked of it"
    reduced: Params = {"bytes": 8 << 30, "ranks": 2, "dtype": "fp32"}
    assert doubted("all_reduce.busbw", "n00", reduced, 0.6 * 450)
    assert not doubted("all_reduce.busbw", "n00", reduced, 0.7 * 450)
    assert doubted("checkpoint.save", "n00/fs:/scratch", {}, 700.0)
    assert not doubted("checkpoint.save", "n00/fs:/scratch", {}, 300.0)
    unknown = doubts_of(header, {})
    assert not unknown("matmul.tflops", "n00/gpu0", shape, 1.0), "without a reference there is nothing to fall short of"


# With real ranks ---------------------------------------------------------------------------------------------------

POLICY = """
name: drilled
signable: false
checks:
  - {check: whole, rule: evidence.complete, each: cluster, category: evidence}
  - {check: fp32, metric: matmul.tflops, where: {dtype: fp32}, each: accelerator, category: compute,
     layers: {peers: {}}, excludable: true, action: x, statement: "$subject reaches $observed"}
  - {check: bf16, metric: matmul.tflops, where: {dtype: bf16}, each: accelerator, category: compute,
     layers: {peers: {}}, excludable: true, action: x, statement: "$subject reaches $observed"}
"""


@pytest.mark.slow
def test_real_slots_the_slow_one_fails_by_name_the_unsteady_one_warns_and_no_other_is_accused(tmp_path: Path) -> None:
    here = Path(__file__).parent
    (tmp_path / "policy.yaml").write_text(POLICY)
    subprocess.run(
        [sys.executable, "-m", "drills.slow_slots", "run", here / "profiles" / "four_slots.yaml", "policy.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{here}:{here.parent / '.src'}"},
        check=True,
        timeout=200,
    )
    run = read_run(tmp_path / "run")
    assert run.problems == []
    found = score_run(run).findings
    node = run.header.promised[0].node
    assert [f.subject for f in found if f.result == "fail"] == [f"{node}/slot2"]
    (failed,) = (f for f in found if f.result == "fail")
    assert (failed.check, failed.layer, len(failed.evidence)) == ("fp32", "peers", 2)
    (warned,) = (f for f in found if f.result == "warn")
    assert (warned.check, warned.subject) == ("bf16", f"{node}/slot1")
    assert warned.detail.startswith("intermittent: first ")
    attempts = {(r.params["dtype"], r.attempt) for r in run.measurements if r.metric == "matmul.tflops"}
    assert attempts == {("fp32", 1), ("fp32", 2), ("bf16", 1), ("bf16", 2)}
