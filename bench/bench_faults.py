"""How long a rank that hangs or dies holds up a run, beyond its trial's deadline."""

import os
import tempfile
import time
import uuid
from pathlib import Path

from hwlottery.cluster import Rank, Trial
from hwlottery.cluster.control import ControlPlane, Sent
from hwlottery.cluster.node import NodeConfig

Budget = tuple[str, float, float, str]
_TESTS = Path(__file__).parent.parent / "tests"
_RANKS = tuple(Rank(subject=f"here/slot{index}", node="here", index=index, device="cpu") for index in range(2))
_DEADLINE_S = 3.0


def budgets() -> list[Budget]:
    """Seconds beyond the deadline until the next trial on the same ranks has ended."""
    os.environ["PYTHONPATH"] = f"{_TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        config = NodeConfig(name="here", run_id="bench", device="cpu", ranks=("slot0", "slot1"), scratch=folder)
        plane.start_local(config, Path(folder) / "node.log")
        plane.wait_joined(("here",), 60)
        _run(plane, "work")
        warm = min(_run(plane, "work") for _ in range(5))
        return [
            ("a warm gang of two ranks, submit to result", warm, 0.5, "s"),
            ("a hung rank: next trial done, beyond the deadline", _with(plane, "hang") - _DEADLINE_S, 15, "s"),
            ("a dead rank: next trial done, all in all", _with(plane, "kill"), 15, "s"),
        ]


def _with(plane: ControlPlane, how: str) -> float:
    return _run(plane, "misbehave", how) + _run(plane, "work")


def _run(plane: ControlPlane, function: str, how: str = "") -> float:
    trial = Trial(
        function=f"drills.misbehaving:{function}",
        ranks=_RANKS,
        params={"how": how, "collective": True},
        collective=True,
        deadline_s=_DEADLINE_S if how else 60,
        expected_s=1,
        fills=(),
    )
    start = time.perf_counter()
    plane.run_round([Sent(id=uuid.uuid4().hex, trial=trial, seed=1)])
    return time.perf_counter() - start
