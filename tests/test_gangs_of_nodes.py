"""Gangs whose ranks lie on several hosts, started by a real ssh, and every way in which a host can go wrong."""

import contextlib
import re
import shlex
import sys
import threading
import time
import uuid
from datetime import UTC, datetime

import pytest
from lab import Lab
from lab.lab import missing_tools

from hwlottery.cluster import Finished, Raised, Rank, TimedOut, Trial, WorkerLost
from hwlottery.cluster.control import ControlPlane, Sent, UnlikeNodes
from hwlottery.cluster.node import NodeConfig
from hwlottery.cluster.node_main import own_software
from hwlottery.cluster.ssh import Ssh

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
WORKER = "hwlottery.cluster.node_main"


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        yield made


@contextlib.contextmanager
def plane_of(lab, folder, *, nodes=("node1", "node2"), expected=None, software=None):
    """A control plane in the lab with a node on each of these hosts, two ranks a node."""
    ssh = Ssh(python=(sys.executable,), arguments=tuple(shlex.split(lab.ssh)))
    with ControlPlane(lab.head) as control:
        for name in nodes:
            config = NodeConfig(name=name, run_id="t", device="cpu", ranks=("slot0", "slot1"), scratch="/tmp")
            control.start_by_ssh(config, ssh, folder / f"{name}.log", own_software() if software is None else software)
        assert control.wait_joined(nodes, 30) == (nodes if expected is None else expected)
        yield control


@pytest.fixture(scope="module")
def plane(lab, tmp_path_factory):
    """A control plane with two nodes, shared by the tests that leave their nodes whole."""
    with plane_of(lab, tmp_path_factory.mktemp("plane")) as control:
        yield control


def ranks_of(*nodes, each=1):
    return tuple(
        Rank(subject=f"{node}/slot{index}", node=node, index=index, device="cpu")
        for node in nodes
        for index in range(each)
    )


def run(plane, function="work", *, ranks, deadline_s=30.0, collective=True, **params):
    trial = Trial(
        function=f"drills.misbehaving:{function}",
        ranks=ranks,
        params={**params, "collective": collective},
        collective=collective,
        deadline_s=deadline_s,
        expected_s=1,
        fills=(),
    )
    started = time.monotonic()
    (returned,) = plane.run_round([Sent(id=uuid.uuid4().hex, trial=trial, seed=1)])
    return returned, time.monotonic() - started


BOTH = ranks_of("node1", "node2", each=2)


def test_ranks_of_two_nodes_share_one_process_group_again_and_again(plane):
    for _ in range(3):
        returned, took = run(plane, ranks=BOTH)
        assert isinstance(returned.outcome, Finished), returned
        assert [reading.samples for reading in returned.outcome.readings] == [(4.0,)] * 4
    assert took < 3, "ranks are warm and meet at once"


def test_gangs_on_disjoint_ranks_of_the_same_nodes_meet_apart(plane):
    trials = [
        Sent(
            id=uuid.uuid4().hex,
            trial=Trial(
                function="drills.misbehaving:work",
                ranks=tuple(rank for rank in BOTH if rank.index == index),
                params={"collective": True},
                collective=True,
                deadline_s=30,
                expected_s=1,
                fills=(),
            ),
            seed=1,
        )
        for index in range(2)
    ]
    for returned in plane.run_round(trials):
        assert [reading.samples for reading in returned.outcome.readings] == [(2.0,)] * 2


def test_a_gang_of_one_node_meets_on_its_loopback_and_one_of_two_at_the_route_to_the_head(plane):
    alone, _ = run(plane, "interface", ranks=ranks_of("node1", each=2))
    both, _ = run(plane, "interface", ranks=BOTH)
    assert {reading.params["interface"] for reading in alone.outcome.readings} == {"lo"}
    assert {reading.params["interface"] for reading in both.outcome.readings} == {"eth0"}


@pytest.mark.parametrize("how", ["hang", "hold_gil", "stop"])
def test_a_hanging_rank_is_told_from_those_that_wait_for_it_on_another_node(plane, how):
    run(plane, ranks=BOTH)
    returned, took = run(plane, "misbehave", how=how, on=2, ranks=BOTH, deadline_s=4)
    assert isinstance(returned.outcome, TimedOut)
    assert returned.outcome.subjects == ("node2/slot0",)
    assert took < 4 + 15
    again, _ = run(plane, ranks=BOTH, deadline_s=60)
    assert isinstance(again.outcome, Finished)


def test_where_a_rank_hung_stands_in_its_outcome_and_its_log(plane):
    run(plane, ranks=BOTH)
    returned, _ = run(plane, "misbehave", how="hang", on=3, ranks=BOTH, deadline_s=3)
    assert "misbehaving.py" in returned.outcome.doing["node2/slot1"]
    assert "in misbehave" in returned.logs["node2/slot1"]
    assert "in all_reduce" in returned.logs["node1/slot0"]


@pytest.mark.parametrize(("how", "kind"), [("kill", WorkerLost), ("raise", Raised)])
def test_a_failure_on_one_node_ends_the_waiting_on_the_other_at_once(plane, how, kind):
    run(plane, ranks=BOTH)
    returned, took = run(plane, "misbehave", how=how, on=2, ranks=BOTH, deadline_s=100)
    assert isinstance(returned.outcome, kind)
    assert "node2/slot0" in (*getattr(returned.outcome, "subjects", ()), getattr(returned.outcome, "subject", ""))
    assert took < 10


def test_nothing_listens_outside_without_the_runs_identity(plane, lab):
    run(plane, ranks=BOTH)
    for name, host in lab.hosts.items():
        listening = host.run("ss", "-Htlnp").splitlines()
        workers = [line for line in listening if "127.0.0.1" not in line and _is_worker(host, line)]
        assert len(workers) == (1 if name != "node3" else 0), "a node's worker listens once, at its own address"


def _is_worker(host, line):
    return any(f"pid={pid}," in line for pid in host.processes(WORKER))


def test_a_killed_worker_is_lost_at_once_and_the_other_node_goes_on(lab, tmp_path):
    with plane_of(lab, tmp_path) as plane:
        run(plane, ranks=BOTH)
        threading.Timer(2, lambda: lab.hosts["node2"].kill(WORKER)).start()
        returned, took = run(plane, "misbehave", how="hang", on=2, ranks=BOTH, deadline_s=100)
        assert isinstance(returned.outcome, WorkerLost)
        assert returned.outcome.subjects == ("node2",)
        assert took < 12
        assert set(plane.lost) == {"node2"}
        assert plane.lost["node2"] == returned.outcome.message
        assert re.fullmatch(r"its worker ended by .*signal.*", plane.lost["node2"])
        assert "network" not in plane.lost["node2"]
        again, _ = run(plane, ranks=ranks_of("node1", each=2))
        assert isinstance(again.outcome, Finished)
        assert lab.hosts["node2"].processes("multiprocessing.spawn") == [], "its ranks died with it"


def test_a_cut_cable_loses_its_node_in_bounded_time_and_its_ranks_end_by_themselves(lab, tmp_path):
    try:
        with plane_of(lab, tmp_path) as plane:
            run(plane, ranks=BOTH)
            cut = []
            threading.Timer(2, lambda: (cut.append(datetime.now(UTC)), lab.cut("node2"))).start()
            returned, took = run(plane, "misbehave", how="hang", on=2, ranks=BOTH, deadline_s=100)
            assert isinstance(returned.outcome, WorkerLost)
            assert returned.outcome.subjects == ("node2",)
            assert took < 60
            (silent,) = re.findall(
                r"no answer since (\d\d:\d\d:\d\d) UTC \((?:connection timed out|no route to host)\): "
                r"network or power; its worker did not say why it ended",
                plane.lost["node2"],
            )
            assert abs(cut[0] - datetime.strptime(f"{cut[0]:%Y%m%d}{silent} +0000", "%Y%m%d%H:%M:%S %z")).seconds < 8
            again, _ = run(plane, ranks=ranks_of("node1", each=2))
            assert isinstance(again.outcome, Finished)
            until = time.monotonic() + 20
            while time.monotonic() < until and lab.hosts["node2"].processes("multiprocessing.spawn"):
                time.sleep(0.5)
            assert lab.hosts["node2"].processes("multiprocessing.spawn") == []
    finally:
        lab.heal()


def test_who_never_joins_is_lost_with_what_ssh_said_and_the_others_join(lab, tmp_path):
    started = time.monotonic()
    with plane_of(lab, tmp_path, nodes=("node1", "nowhere"), expected=("node1",)) as plane:
        assert time.monotonic() - started < 25
        assert "never joined" in plane.lost["nowhere"]
        assert "Could not resolve" in plane.lost["nowhere"]


def test_a_node_with_other_software_is_named_before_anything_runs(lab, tmp_path):
    with (
        pytest.raises(UnlikeNodes, match=r"node1 has torch .*, not 1.0.0"),
        plane_of(lab, tmp_path, software={**own_software(), "torch": "1.0.0"}),
    ):
        pass
