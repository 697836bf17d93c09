"""Runs in which nodes die, hang, are cut off, never come, or have no room, while others meet in the tournament.

What befalls each is named, and all that the others can measure is measured.
"""

import contextlib
import re
import subprocess
import sys
import threading
import time
from itertools import combinations

import pytest
from lab import Lab
from lab.commands import (
    PAIRS,
    WORKER,
    arguments,
    events,
    found,
    hwlottery,
    left_on,
    policy_of,
    read,
    run_on,
    slurm_script,
    submit,
)
from lab.lab import missing_tools, wait_until
from lab.slurm import missing_slurm

MISSING = [*missing_tools(), *missing_slurm()]
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(MISSING), reason=f"the lab needs {', '.join(MISSING)}")]
BUSBW = "all_reduce.busbw"
# Who meets whom of four: node1~node4 and node2~node3, node1~node3 and node2~node4, node1~node2 and node3~node4.


@pytest.fixture(scope="module")
def lab():
    with Lab(4, mbit=150, first=True) as made:
        yield made


@pytest.fixture(scope="module")
def policy(lab):
    return policy_of(lab.folder)


def in_mid(out, pair, deed, after_s=1.0):
    """Do a deed some time after this pair's first trial was sent out."""

    def wait_and_do():
        until = time.monotonic() + 120
        plan = out / "plan.jsonl"
        while time.monotonic() < until and not (plan.exists() and f'"subject":"{pair}"' in plan.read_text()):
            time.sleep(0.05)
        time.sleep(after_s)
        deed()

    thread = threading.Thread(target=wait_and_do)
    thread.start()
    return thread


def measured(run, metric=BUSBW):
    return {m.subject for m in run.measurements if m.metric == metric}


def test_each_who_dies_is_cut_off_or_never_comes_is_named_and_the_others_meet(lab, policy, tmp_path):
    out = tmp_path / "run"
    deeds = [
        in_mid(out, "node2~node3", lambda: lab.hosts["node3"].kill(WORKER)),
        in_mid(out, "node2~node4", lambda: lab.cut("node4")),
    ]
    given = ("--only", "pairs", "--join-within", "20")
    try:
        run, verdict, done = run_on(lab, out, "node[1-4,9]", *given, profile="long_pairs", policy=policy)
    finally:
        for deed in deeds:
            deed.join()
        lab.heal()
    lost = events(run, "node_lost")
    assert set(lost) == {"node3", "node4", "node9"}
    assert "never joined" in lost["node9"]
    assert re.fullmatch(r"its worker ended by .*signal.*", lost["node3"])
    assert re.match(r"no answer since \d\d:\d\d:\d\d UTC \(.*\): network or power", lost["node4"])
    statements = {f["subject"]: f["statement"] for f in verdict["findings"] if f["check"] == "node.responds"}
    assert statements["node4"] == f"node4 was lost: {lost['node4']}."
    assert statements["node9"] == f"node9 {lost['node9']}."
    assert "node9 never joined: " in " ".join(done.stdout.split())
    assert found(verdict, "fail", check="node.responds") == {"node3", "node4", "node9"} == set(verdict["exclude"])
    assert found(verdict, "fail", "warn") == {"node3", "node4", "node9"}
    assert measured(run) == {"node1~node4", "node1~node2", "cluster"}
    died = {n.subject: n.reason for n in run.not_measured if n.metric == BUSBW and "~" in n.subject}
    assert died == {"node2~node3": "died", "node2~node4": "died"}


def test_a_rank_that_hangs_and_a_scratch_disk_that_is_full_are_named_and_all_else_is_measured(lab, tmp_path):
    for host in lab.hosts.values():
        host.run("mkdir", "/tmp/scratch")
    lab.hosts["node3"].run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/tmp/scratch")
    asked = (*PAIRS, "filesystem.write", "checkpoint.save")
    out = tmp_path / "run"
    deed = in_mid(out, "node1~node4", lambda: lab.hosts["node4"].kill("spawn_main", "STOP"))
    run, verdict, _ = run_on(
        lab, out, lab.names, "--scratch", "/tmp/scratch", module="drills.impatient", profile="long_pairs",
        policy=policy_of(tmp_path, asked),
    )  # fmt: skip
    deed.join()
    hung = events(run, "hang")
    assert set(hung) == {"node4/slot0"}
    assert found(verdict, "fail") == {"node4"} == set(verdict["exclude"])
    pairs = {"~".join(pair) for pair in combinations(lab.hosts, 2)} - {"node1~node4"}
    assert measured(run) == {*pairs, "cluster"}
    full = "node3/fs:/tmp/scratch"
    assert found(verdict, "not_measured") == {full, "node4"}
    assert found(verdict, "not_measured", check="pairs.nodes") == {"node4"}
    others = {f"node{number}/fs:/tmp/scratch" for number in (1, 2, 4)}
    for metric in ("filesystem.write_rate", "checkpoint.save"):
        assert measured(run, metric) == others
        (why,) = {n.detail for n in run.not_measured if (n.metric, n.subject) == (metric, full)}
        assert "no space" in why.lower()


@pytest.fixture
def small_disk(tmp_path):
    """A filesystem of 3 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def fill(file):
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as opened:
        while True:
            opened.write(bytes(4096))


def test_a_full_disk_at_the_head_is_one_line_ends_all_nodes_and_the_run_goes_on_after_room_is_made(
    lab, policy, small_disk
):
    out, ballast = small_disk / "run", small_disk / "ballast"
    deed = in_mid(out, "node1~node4", lambda: fill(ballast), after_s=0)
    given = arguments(out, "--hosts", lab.names, "--only", "pairs", profile="long_pairs", policy=policy)
    cut = hwlottery(lab, *given)
    deed.join()
    assert cut.returncode == 6
    (line,) = cut.stderr.strip().splitlines()
    assert "No space left on device" in line
    assert f"--resume {out}" in line
    wait_until(lambda: not any(left_on(lab).values()), 10, "no process of ours is on any host")
    ballast.unlink()
    resumed = hwlottery(lab, "run", "--resume", out)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    run, verdict = read(out)
    assert len(run.header.segments) == 2
    assert found(verdict, "fail", "warn", "not_measured") == set()
    assert measured(run) == {"cluster", *("~".join(pair) for pair in combinations(lab.hosts, 2))}


def test_in_slurm_a_task_that_dies_at_once_and_one_that_dies_later_are_named_and_the_others_meet(lab, policy):
    out = lab.folder / "run"
    given = arguments(out, "--only", "pairs", "--join-within", "25", profile="long_pairs", policy=policy)
    start = f"{sys.executable} -m hwlottery run"
    never = f"bash -c '[ $SLURMD_NODENAME != node2 ] && exec {sys.executable} -m hwlottery \"$@\"' task run"
    script = slurm_script(given, nodes=4)
    assert script.count(start) == 1
    deed = in_mid(out, "node1~node4", lambda: lab.hosts["node4"].kill("python -m hwlottery"))
    with lab.slurm() as env:
        said = submit(lab, env, script.replace(start, never))
    deed.join()
    assert out.is_dir(), said
    run, verdict = read(out)
    assert set(events(run, "node_lost")) == {"node2", "node4"}
    assert found(verdict, "fail", check="node.responds") == {"node2", "node4"} == set(verdict["exclude"])
    assert found(verdict, "fail", "warn") == {"node2", "node4"}
    assert measured(run) == {"node3~node4", "node1~node3", "cluster"}  # the first before node4 died
