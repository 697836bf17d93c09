"""Gangs of real rank processes, and every way in which one of them can go wrong."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from hwlottery.cluster import Finished, Raised, Rank, TimedOut, Trial, WorkerLost
from hwlottery.cluster.control import ControlPlane, Sent
from hwlottery.cluster.node import NodeConfig, NodeKeeper

TESTS = Path(__file__).parent
RANKS = tuple(Rank(subject=f"n01/slot{index}", node="n01", index=index, device="cpu") for index in range(2))


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane with this machine as its node of two ranks, shared by the tests of this file."""
    folder = tmp_path_factory.mktemp("plane")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), before]))
    try:
        with ControlPlane() as control:
            config = NodeConfig(name="n01", run_id="t", device="cpu", ranks=("slot0", "slot1"), scratch=str(folder))
            control.start_local(config, folder / "node.log")
            assert control.wait_joined(("n01",), 60) == ("n01",)
            yield control
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def run(plane, function="work", *, ranks=RANKS, deadline_s=20.0, collective=False, env=None, **params):
    trial = Trial(
        function=f"drills.misbehaving:{function}",
        ranks=ranks,
        params={**params, "collective": collective},
        collective=collective,
        env=env or {},
        deadline_s=deadline_s,
        expected_s=1,
        fills=(),
    )
    started = time.monotonic()
    (returned,) = plane.run_round([Sent(id=uuid.uuid4().hex, trial=trial, seed=1)])
    return returned, time.monotonic() - started


def test_nodes_leave_before_the_head_closes_so_that_nobody_is_cut_off_while_connecting(tmp_path):
    with ControlPlane() as control:
        config = NodeConfig(name="n01", run_id="t", device="cpu", ranks=("slot0",), scratch=str(tmp_path))
        control.start_local(config, tmp_path / "node.log")
        assert control.wait_joined(("n01",), 60) == ("n01",)
        control._asking.wait(control._asking.dismiss)
        assert not control._asking.here("n01")
    assert (tmp_path / "node.log").read_text() == ""


def test_what_a_killed_rank_left_in_scratch_is_removed_at_the_end_of_its_node_and_nothing_else(tmp_path):
    config = NodeConfig(name="n01", run_id="mine", device="cpu", ranks=("slot0",), scratch=str(tmp_path))
    others = {"hwlottery-mine-n011-burn-in-x.pt", "hwlottery-other-n01-burn-in-x.pt", "precious"}
    for name in (*others, "hwlottery-mine-n01-burn-in-x.pt"):
        (tmp_path / name).touch()
    keeper = NodeKeeper(config)
    assert {file.name for file in tmp_path.iterdir()} == others, "of this run's last start, which was killed"
    (tmp_path / "hwlottery-mine-n01-burn-in-y.pt").touch()
    keeper.close()
    assert {file.name for file in tmp_path.iterdir()} == others


def pids(returned):
    return [reading.params["pid"] for reading in returned.outcome.readings]


def assert_next_trial_is_whole(plane):
    """Whatever happened before, the next collective trial on all ranks works."""
    returned, _ = run(plane, collective=True, deadline_s=60)
    assert isinstance(returned.outcome, Finished)
    assert [reading.samples for reading in returned.outcome.readings] == [(2.0,), (2.0,)]


def test_warm_ranks_are_the_same_processes_in_the_next_trial(plane):
    first, _ = run(plane)
    second, took = run(plane)
    assert pids(first) == pids(second)
    assert took < 2, "nothing is started anew"


def test_ranks_of_a_collective_trial_share_one_process_group(plane):
    assert_next_trial_is_whole(plane)


def test_a_trial_with_another_env_gets_fresh_ranks_that_have_it(plane):
    plain, _ = run(plane)
    flagged, _ = run(plane, env={"DRILL_FLAG": "up"})
    assert set(pids(plain)).isdisjoint(pids(flagged))
    assert [reading.params["flag"] for reading in flagged.outcome.readings] == ["up", "up"]
    again, _ = run(plane)
    assert [reading.params["flag"] for reading in again.outcome.readings] == ["", ""]


@pytest.mark.parametrize("collective", [True, False], ids=["collective", "alone"])
@pytest.mark.parametrize("how", ["hang", "hold_gil", "stop"])
def test_a_rank_that_does_not_end_costs_its_trial_and_no_more_than_its_deadline(plane, how, collective):
    run(plane)  # ranks are warm
    returned, took = run(plane, "misbehave", how=how, on=1, deadline_s=3, collective=collective)
    assert isinstance(returned.outcome, TimedOut)
    assert "n01/slot1" in returned.outcome.subjects
    assert took < 3 + 15
    if not collective:
        assert returned.outcome.subjects == ("n01/slot1",)
        assert [reading.subject for reading in returned.outcome.readings] == ["n01/slot0"], "its peer's work is kept"
    assert_next_trial_is_whole(plane)


def test_a_stopped_rank_is_told_from_the_peers_that_wait_for_it(plane):
    returned, _ = run(plane, "misbehave", how="stop", on=1, deadline_s=3, collective=True)
    assert returned.outcome.subjects == ("n01/slot1",)


@pytest.mark.parametrize(("how", "says"), [("kill", "-9"), ("exit", "7")])
def test_a_rank_that_dies_is_known_at_once_and_named(plane, how, says):
    run(plane)
    returned, took = run(plane, "misbehave", how=how, on=0, deadline_s=60, collective=True)
    assert isinstance(returned.outcome, WorkerLost)
    assert returned.outcome.subjects == ("n01/slot0",)
    assert says in returned.outcome.message
    assert took < 15, "its peers are ended, not waited for"
    assert_next_trial_is_whole(plane)


def test_an_exception_is_one_line_and_its_peers_in_a_collective_are_not_waited_for(plane):
    run(plane)
    returned, took = run(plane, "misbehave", how="raise", on=1, deadline_s=60, collective=True)
    assert isinstance(returned.outcome, Raised)
    assert returned.outcome.subject == "n01/slot1"
    assert returned.outcome.message == "RuntimeError: the rank raised"
    assert took < 15
    assert_next_trial_is_whole(plane)


def test_what_a_rank_prints_comes_back_as_its_log(plane):
    returned, _ = run(plane, "misbehave", how="raise", on=0, say="first line\nsecond line")
    assert returned.logs["n01/slot0"] == "first line\nsecond line\n"
    assert returned.logs["n01/slot1"] == "first line\nsecond line\n"


def test_a_function_that_is_not_there_raises_on_its_rank(plane):
    returned, _ = run(plane, "no_such_thing")
    assert isinstance(returned.outcome, Raised)


def test_trials_on_disjoint_ranks_run_at_once(plane):
    trials = [
        Sent(
            id=uuid.uuid4().hex,
            trial=Trial(
                function="drills.misbehaving:work", ranks=(rank,), deadline_s=20, expected_s=1, fills=(), params={}
            ),
            seed=1,
        )
        for rank in RANKS
    ]
    outcomes = [returned.outcome for returned in plane.run_round(trials)]
    assert [outcome.readings[0].subject for outcome in outcomes] == ["n01/slot0", "n01/slot1"]


@pytest.fixture
def frozen_filesystem(tmp_path):
    """A real ext4 on a loop device, frozen: whoever writes to it sits in the kernel until it is thawed."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("needs root and mkfs.ext4")
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with image.open("wb") as opened:
        opened.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True)
    try:
        subprocess.run(["fsfreeze", "-f", str(mount)], check=True)
        yield mount
    finally:
        subprocess.run(["fsfreeze", "-u", str(mount)], check=False)
        time.sleep(0.5)
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.mark.root
def test_a_rank_stuck_in_the_kernel_is_named_and_left_behind(plane, frozen_filesystem):
    run(plane)
    returned, took = run(
        plane, "misbehave", how="write", on=1, deadline_s=3, collective=True, file=str(frozen_filesystem / "file")
    )
    assert isinstance(returned.outcome, TimedOut)
    assert returned.outcome.subjects == ("n01/slot1",)
    assert returned.outcome.stuck == ("n01/slot1",)
    assert took < 3 + 15
    assert_next_trial_is_whole(plane)


def marked(marker):
    """The processes that inherited a mark in their environment, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "end"),
    [
        pytest.param("hang", signal.SIGKILL, id="hanging rank, head killed"),
        pytest.param("hold_gil", signal.SIGKILL, id="rank holding the GIL, head killed"),
        pytest.param("stop", signal.SIGKILL, id="stopped rank, head killed"),
        pytest.param("hold_gil", signal.SIGSTOP, id="rank holding the GIL, head silent"),
    ],
)
def test_when_the_head_is_gone_no_rank_is_left_after_thirty_seconds(tmp_path, how, end):
    marker = f"DRILL_MARK={uuid.uuid4().hex}"
    env = {**os.environ, "PYTHONPATH": f"{TESTS.parent / '.src'}:{TESTS}", **dict([marker.split("=")])}
    head = subprocess.Popen(
        [sys.executable, "-m", "drills.lonely_head", str(tmp_path), how],
        env=env,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert head.stdout.readline() == b"ranks are up\n"
        time.sleep(1)
        assert len(marked(marker)) >= 4, "head, node worker and two ranks"
        head.send_signal(end)
        until = time.monotonic() + 45  # 30 s of silence, and what noticing takes
        while time.monotonic() < until and [pid for pid in marked(marker) if pid != head.pid]:
            time.sleep(0.5)
        assert [pid for pid in marked(marker) if pid != head.pid] == []
    finally:
        head.kill()
        head.wait()
        head.stdout.close()


def test_a_rank_that_dies_while_nothing_is_asked_of_it_is_named_and_replaced(plane):
    first, _ = run(plane, collective=True)
    os.kill(pids(first)[1], signal.SIGKILL)
    time.sleep(0.5)
    returned, _ = run(plane, collective=True, deadline_s=60)
    assert isinstance(returned.outcome, Finished)
    assert returned.died_idle == ("n01/slot1",)
    assert_next_trial_is_whole(plane)


@pytest.mark.parametrize("pause_s", [0, 0.02, 0.1])
def test_a_rank_killed_just_before_a_trial_never_ends_the_run(plane, pause_s):
    first, _ = run(plane, collective=True)
    os.kill(pids(first)[0], signal.SIGKILL)
    time.sleep(pause_s)
    returned, took = run(plane, collective=True, deadline_s=60)
    assert "n01/slot0" in (*returned.died_idle, *getattr(returned.outcome, "subjects", ()))
    assert isinstance(returned.outcome, Finished | WorkerLost)
    assert took < 20
    assert_next_trial_is_whole(plane)


def test_a_node_that_cannot_do_its_part_costs_the_trial_and_not_the_run(plane):
    """The node's own folder is gone: nothing can be logged, no rank can be started there."""
    run(plane)
    folder = plane.call("n01", node_folder)
    shutil.move(folder, f"{folder}-away")
    try:
        returned, _ = run(plane)
        assert not isinstance(returned.outcome, Finished)
    finally:
        shutil.move(f"{folder}-away", folder)
    assert_next_trial_is_whole(plane)


def node_folder():
    from hwlottery.cluster.node_tasks import here

    return str(here().folder)
