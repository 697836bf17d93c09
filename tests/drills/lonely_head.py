"""A head with one node whose rank misbehaves: the tests kill or stop this process and look at what stays behind."""

import sys
from pathlib import Path

from hwlottery.cluster.control import ControlPlane, Sent
from hwlottery.cluster.local import LAUNCHER
from hwlottery.cluster.node import NodeConfig
from hwlottery.cluster.trials import Rank, Trial


def main(folder: str, how: str) -> None:
    ranks = tuple(Rank(subject=f"n01/slot{i}", node="n01", index=i, device="cpu") for i in range(2))
    config = NodeConfig(name="n01", run_id=LAUNCHER.name, device="cpu", ranks=("slot0", "slot1"), scratch=folder)
    with ControlPlane() as plane:
        plane.start_local(config, Path(folder) / "node.log")
        plane.wait_joined(("n01",), 60)
        good = Trial(function="drills.misbehaving:work", ranks=ranks, deadline_s=60, expected_s=1, fills=())
        plane.run_round([Sent(id="good", trial=good, seed=1)])
        print("ranks are up", flush=True)
        bad = Trial(
            function="drills.misbehaving:misbehave",
            params={"how": how},
            ranks=ranks,
            deadline_s=600,
            expected_s=1,
            fills=(),
        )
        plane.run_round([Sent(id="bad", trial=bad, seed=1)])


if __name__ == "__main__":
    main(*sys.argv[1:])
