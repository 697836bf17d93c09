"""What a tournament costs beside its measuring: for the head with hundreds of nodes, and on warm ranks of this machine.

The head of hundreds of nodes is the real one, its nodes answer at once (tests/drills/many_nodes.py). All of them share
this machine, so the head's own CPU time counts, and how it grows.
"""

import itertools
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec

from hwlottery.cluster import Cluster, Finished, Node, Outcome, Rank, Round
from hwlottery.cluster.control import ControlPlane, Sent
from hwlottery.cluster.node import NodeConfig
from hwlottery.evidence import Reading
from hwlottery.probes.pairs import Pairs, PairsSettings
from hwlottery.probes.profiles import load_profile
from hwlottery.runner.joining import Reach
from hwlottery.runner.progress import Progress
from hwlottery.runner.run import Request, start
from hwlottery.scoring import document_for

Budget = tuple[str, float, float, str]
_TESTS = Path(__file__).parent.parent / "tests"
_SIZES = (32, 128, 512)
_WARM_NODES = 4


class _Cost(msgspec.Struct):
    """CPU seconds of the head: until all nodes were there, and a round of pairs from one start to the next."""

    join_s: float
    round_s: float


def budgets() -> list[Budget]:
    """The head's cost a round at three sizes and its growth, and the tournament on warm ranks."""
    sys.path.insert(0, str(_TESTS))
    os.environ["PYTHONPATH"] = f"{_TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    costs = {nodes: _idle_tournament(nodes) for nodes in _SIZES}
    few, many = _SIZES[0], _SIZES[-1]
    grown = {
        "a round": costs[many].round_s / costs[few].round_s,
        "joining": costs[many].join_s / costs[few].join_s,
    }
    return [
        *[(f"head's CPU time a round, {n} nodes ({n // 2} pairs)", costs[n].round_s, 2, "s") for n in _SIZES],
        *[
            (f"{what}, {many} nodes over {few} ({many // few} is linear)", times, 1.5 * many / few, "times")
            for what, times in grown.items()
        ],
        (
            f"head's CPU time for every pair of {many} nodes ({many - 1} rounds, extrapolated)",
            costs[many].round_s * (many - 1),
            1000,
            "s",
        ),
        ("a tournament on warm ranks over the sum of its measuring times", _warm_ratio(), 1.25, "times"),
    ]


def _idle_tournament(nodes: int) -> _Cost:
    """A run of `pairs` on that many nodes of 8 GPUs each, from --hosts to its last record."""
    from drills.many_nodes import many_nodes  # of the tests, not of the package

    marks: list[tuple[float, Progress]] = []
    with many_nodes() as ssh, tempfile.TemporaryDirectory() as folder:
        request = Request(
            out=Path(folder) / "run",
            profile=load_profile("acceptance"),
            policy=document_for(None, "acceptance"),
            scratch=Path(folder),
            hosts=f"n[001-{nodes:03d}]",
            gpus_per_node=8,
            only=("pairs",),
            reach=Reach(ssh=ssh, listen="127.0.0.1", join_within_s=600),
        )
        start(request, lambda progress: marks.append((time.process_time(), progress)))
    return _cost(marks, nodes)


def _cost(marks: list[tuple[float, Progress]], nodes: int) -> _Cost:
    """From what the run told of its progress: rounds in which all ranks are busy, until single pairs are retested."""
    lost = marks[-1][1].nodes_lost
    if lost:
        raise RuntimeError(f"{len(lost)} of {nodes} idle nodes did not join in time: this machine is too busy")
    starting = next(at for at, progress in marks if progress.doing == "starting nodes")
    joined = next(at for at, progress in marks if progress.probe == "inventory")
    pairs = [(at, progress.ranks_busy) for at, progress in marks if progress.probe == "pairs" and progress.ranks_busy]
    begun = [at for at, _ in itertools.takewhile(lambda mark: mark[1] == 8 * nodes, pairs)]
    return _Cost(join_s=joined - starting, round_s=(begun[-1] - begun[0]) / (len(begun) - 1))


def _warm_ratio() -> float:
    """Wall time of a tournament of nodes with a rank each, over the sum of what each round's slowest pair measured."""
    names = [f"here{index}" for index in range(_WARM_NODES)]
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        for name in names:
            config = NodeConfig(name=name, run_id="bench", device="cpu", ranks=("slot0",), scratch=folder)
            plane.start_local(config, Path(folder) / f"{name}.log")
        plane.wait_joined(tuple(names), 120)
        ranks = [Rank(subject=f"{name}/slot0", node=name, index=0, device="cpu") for name in names]
        nodes = tuple(Node(name=rank.node, ranks=(rank,), scratch=folder) for rank in ranks)
        cluster = Cluster(nodes=nodes, device="cpu")
        settings = PairsSettings(sizes_kib=(1024, 16384), warm_ups=2, iterations=10, latency_iterations=50)
        _follow(plane, cluster, settings, most_rounds=1)  # the ranks are warm after this
        took, measured = _follow(plane, cluster, settings)
    return took / measured


def _follow(
    plane: ControlPlane, cluster: Cluster, settings: PairsSettings, most_rounds: int = 10
) -> tuple[float, float]:
    """Seconds of some rounds of the probe's plan, and those that their slowest ranks measured."""
    plan: Generator[Round, list[Outcome], None] = Pairs().plan(cluster, settings, 1)
    trials, measured = next(plan), 0.0
    begun = time.perf_counter()
    for _ in range(most_rounds):
        sent = [_timed(trial) for trial in trials]
        outcomes = [returned.outcome for returned in plane.run_round(sent)]
        measured += max(max(_seconds(outcome)) for outcome in outcomes)
        trials = plan.send(outcomes)
    return time.perf_counter() - begun, measured


def _timed(trial: Any) -> Sent:
    return Sent(id=uuid.uuid4().hex, trial=msgspec.structs.replace(trial, function="drills.timed:pairs"), seed=1)


def _seconds(outcome: Outcome) -> list[float]:
    if not isinstance(outcome, Finished):
        raise RuntimeError(f"a pair of warm ranks did not finish: {outcome}")
    return [one.samples[0] for one in outcome.readings if isinstance(one, Reading) and one.metric == "burn_in.step"]
