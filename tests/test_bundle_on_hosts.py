"""A bundle brings hwlottery onto hosts that have torch alone, no route to any registry and no /tmp in common."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from image import image_python
from lab import Lab
from lab.lab import missing_tools, wait_until

from hwlottery.cluster.bundle import default_name, make_bundle
from hwlottery.evidence import read_run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
PROFILES = Path(__file__).parent / "profiles"
OURS = "hwlottery"


@pytest.fixture(scope="module")
def lab():
    with Lab(3, env={"PYTHONPATH": "/nowhere"}) as made:
        yield made


@pytest.fixture(scope="module")
def image(lab):
    """The image's Python, on every host."""
    return image_python(lab.folder / "image")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle on this machine, where no host has it."""
    return make_bundle(tmp_path_factory.mktemp("bundle") / default_name()).path


def command(out, image, hosts, *more, profile="tiny"):
    given = ["--profile", PROFILES / f"{profile}.yaml", "--policy", "prolog", "--scratch", "/tmp", "--out", out]
    words = ["run", *given, "--hosts", hosts, "--remote-python", image, "--join-within", "150", *more]
    return [sys.executable, "-m", "hwlottery", *map(str, words)]


def hwlottery(lab, *given, timeout=120):
    env = {**os.environ, "HWLOTTERY_SSH": lab.ssh}
    return subprocess.run(*given, capture_output=True, text=True, env=env, timeout=timeout, check=False)


def lost(out):
    return {event.subject: event.detail for event in read_run(out).events if event.kind == "node_lost"}


def left_on(lab):
    """Our processes and files on each host."""
    return {
        name: [
            *host.processes("hwlottery|multiprocessing"),
            *host.run("ls", "/tmp", "/var/tmp", "/dev/shm").split(OURS)[1:],
        ]
        for name, host in lab.hosts.items()
    }


def test_the_hosts_have_torch_but_not_hwlottery_and_reach_no_registry(lab, image):
    host = lab.hosts["node1"]
    modules = "torch", "hwlottery", "msgspec", "distributed", "numpy", "pip"
    found = f"from importlib.util import find_spec; print([m for m in {modules} if find_spec(m)])"
    assert host.run(image, "-c", found) == "['torch']\n"
    assert "default" not in host.run("ip", "route")


@pytest.fixture(scope="module")
def run(lab, image, bundle, tmp_path_factory):
    """A run from the bundle, shared by the tests that only read it; and what was seen on a host meanwhile."""
    out = tmp_path_factory.mktemp("run") / "run"
    return out, hwlottery(
        lab, command(out, image, "node[1-2]", "--bundle", bundle, "--only", "all_reduce"), timeout=250
    )


def test_a_run_by_ssh_installs_the_bundle_and_measures_every_node(lab, image, run):
    out, result = run
    found = read_run(out)
    assert found.problems == [], result.stdout + result.stderr
    assert {event.subject for event in found.events if event.kind == "node_joined"} == {"node1", "node2"}
    assert {m.subject.partition("/")[0] for m in found.measurements if m.metric == "all_reduce.busbw"} == {
        "node1",
        "node2",
    }
    assert json.loads((out / "verdict.json").read_text())["exclude"] == []
    assert re.search(r"^\d+ MB bundle sent to [12] of 2 nodes", result.stdout, re.MULTILINE)
    assert [event.detail for event in found.events if event.severity in ("error", "fatal")] == []


def test_nothing_is_left_on_the_hosts_after_the_run(lab, run):
    wait_until(lambda: not any(left_on(lab).values()), 15, f"nothing of ours is left: {left_on(lab)}")


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_nothing_is_left_on_the_hosts_when_the_head_is_stopped_or_killed(lab, image, bundle, tmp_path, end, code):
    out = tmp_path / "run"
    head = subprocess.Popen(
        command(out, image, "node[1-2]", "--bundle", bundle, profile="hosts"),
        env={**os.environ, "HWLOTTERY_SSH": lab.ssh},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(
            lambda: (out / "plan.jsonl").exists() and "matmul" in (out / "plan.jsonl").read_text(), 150, "measuring"
        )
        assert all(left_on(lab)[name] for name in ("node1", "node2"))
        head.send_signal(end)
        assert head.wait(timeout=60) == code
    finally:
        head.kill()
        head.wait()
    wait_until(lambda: not any(left_on(lab).values()), 50, "the worker has noticed, and its folder is gone")


def test_without_a_bundle_the_run_says_what_would_help(lab, image, tmp_path):
    out = tmp_path / "run"
    hwlottery(lab, command(out, image, "node1"))
    assert "No module named 'hwlottery'" in lost(out)["node1"]
    assert "--bundle auto" in lost(out)["node1"]


def test_a_bundle_for_another_python_is_refused_with_node_and_versions(lab, image, tmp_path):
    made = make_bundle(tmp_path / "other.pyz", python="3.12")
    out = tmp_path / "run"
    result = hwlottery(lab, command(out, image, "node[1-2]", "--bundle", made.path))
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert "node1 has Python 3.11" in line
    assert "node2 has Python 3.11" in line
    assert "the bundle is for 3.12" in line
    assert not out.exists(), "a start that is refused leaves no directory"
    assert not any(left_on(lab).values())


@pytest.fixture
def full(lab):
    """A host where nothing fits into any place for temporary files; and one where it only fits into /var/tmp."""
    hosts = lab.hosts["node2"], lab.hosts["node3"]
    for host in hosts:
        for place in ("/tmp", "/dev/shm"):
            host.run("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place)
    hosts[1].run("mount", "--bind", "/var/tmp", "/var/tmp")
    hosts[1].run("mount", "-o", "remount,bind,ro", "/var/tmp")
    yield
    hosts[1].run("umount", "/var/tmp")
    for host in hosts:
        for place in ("/tmp", "/dev/shm"):
            host.run("umount", place)


def test_a_host_without_room_is_named_and_a_small_tmp_is_none(lab, image, bundle, tmp_path, full):
    out = tmp_path / "run"
    hwlottery(lab, command(out, image, "node[2,3]", "--bundle", bundle, "--only", "matmul", "--scratch", "/var/tmp"))
    assert not any(left_on(lab).values())
    assert set(lost(out)) == {"node3"}
    assert "nowhere to unpack" in lost(out)["node3"]
    assert {m.subject.partition("/")[0] for m in read_run(out).measurements if m.metric == "matmul.tflops"} == {"node2"}


def test_a_host_that_is_stopped_while_it_takes_the_bundle_is_named_and_keeps_nothing(lab, image, bundle, tmp_path):
    out = tmp_path / "run"
    lab.shape("node2", 5)  # the bundle would take half a minute
    head = subprocess.Popen(
        command(out, image, "node[1-2]", "--bundle", bundle, "--only", "matmul"),
        env={**os.environ, "HWLOTTERY_SSH": lab.ssh},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: "hwlottery-bundle" in lab.hosts["node2"].run("ls", "/tmp"), 30, "it takes the bundle")
        lab.hosts["node2"].kill("hwlottery.cluster.node_main", "TERM")
        head.wait(timeout=90)
    finally:
        head.kill()
        head.wait()
        lab.heal()
    assert set(lost(out)) == {"node2"}
    assert {m.subject.partition("/")[0] for m in read_run(out).measurements if m.metric == "matmul.tflops"} == {"node1"}
    assert not any(left_on(lab).values())
