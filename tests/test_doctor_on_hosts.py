"""doctor --hosts on real hosts: each thing that would keep a run from working is named, with its host and a remedy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from image import image_python
from lab import Lab
from lab.lab import missing_tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        yield made


def doctor(lab, hosts, *more):
    """What doctor says, by the name of what it looked at, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "hwlottery", "doctor", "--json", "--scratch", "/tmp", "--hosts", hosts, *map(str, more)],
        capture_output=True,
        text=True,
        env={**os.environ, "HWLOTTERY_SSH": lab.ssh},
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 6), done.stderr
    return {item["name"]: item for item in json.loads(done.stdout)}, done.returncode


def assert_problem(found, name, *words):
    assert found[name]["state"] == "problem"
    assert found[name]["remedy"]
    for word in words:
        assert word in found[name]["detail"]


def test_healthy_hosts_are_well(lab):
    found, code = doctor(lab, lab.names)
    assert code == 0
    assert {name: item["state"] for name, item in found.items()} == dict.fromkeys([*lab.hosts, "scratch"], "ok")
    assert "among the hosts" in found["node1"]["detail"]
    assert "each host's own" in found["scratch"]["detail"]


def test_hosts_that_share_their_scratch_are_told_from_those_of_which_one_does_not(lab):
    shared = lab.folder / "scratch"
    shared.mkdir()
    found, _ = doctor(lab, lab.names, "--scratch", shared)
    assert found["scratch"]["state"] == "ok"
    assert "share" in found["scratch"]["detail"]
    lab.hosts["node3"].run("mount", "-t", "tmpfs", "tmpfs", shared)
    try:
        found, code = doctor(lab, lab.names, "--scratch", shared)
    finally:
        lab.hosts["node3"].run("umount", shared)
    assert code == 6
    assert_problem(found, "scratch", "node1", "not seen on node3")
    assert list(shared.iterdir()) == []


def test_two_hosts_that_do_not_reach_each_other_are_named_as_a_pair(lab):
    """What keeps node1 from node2 alone: its packets there are dropped, but for those of ssh."""
    rule = f"ip daddr {lab.hosts['node2'].address} tcp dport != 22 tcp flags syn / syn,ack drop"
    table = f"table inet lab {{ chain shut {{ type filter hook output priority 0; {rule}; }}; }}"
    lab.hosts["node1"].run("nft", "-f", "-", stdin=table)
    try:
        found, code = doctor(lab, lab.names)
    finally:
        lab.heal()
    assert code == 6
    assert set(found) == {"node1: ports to hosts", "node2", "node3", "scratch"}
    assert_problem(found, "node1: ports to hosts", "does not reach node2", "timed out")


def test_a_host_that_ssh_does_not_reach_is_named_with_what_ssh_said(lab):
    lab.hosts["node2"].kill("sshd:.*listener")
    try:
        found, code = doctor(lab, "node[1-2],nowhere")
    finally:
        lab.set_env("node2")
    assert code == 6
    assert found["node1"]["state"] == "ok"
    assert_problem(found, "node2: ssh", "Connection refused")
    assert_problem(found, "nowhere: ssh", "Could not resolve")


def test_a_missing_python_and_a_missing_scratch_are_named(lab):
    found, _ = doctor(lab, "node1", "--remote-python", "/opt/none/python")
    assert_problem(found, "node1: ssh", "/opt/none/python")
    assert "--remote-python" in found["node1: ssh"]["remedy"]
    found, _ = doctor(lab, "node1", "--scratch", "/nowhere/at/all")
    assert_problem(found, "node1: scratch", "/nowhere/at/all")


def test_a_python_without_our_packages_is_named(lab):
    lab.set_env("node3", PYTHONPATH="/nowhere")
    try:
        found, _ = doctor(lab, "node3", "--remote-python", f"{sys.executable} -S")
    finally:
        lab.set_env("node3")
    assert_problem(found, "node3: software", "hwlottery absent", "torch absent")


def test_a_host_with_torch_alone_is_told_of_the_bundle_and_is_well_with_it(lab):
    image = image_python(lab.folder / "image")
    lab.set_env("node3", PYTHONPATH="/nowhere")
    try:
        found, _ = doctor(lab, "node3", "--remote-python", image)
        assert_problem(found, "node3: software", "hwlottery absent")
        assert "--bundle" in found["node3: software"]["remedy"]
        found, code = doctor(lab, "node3", "--remote-python", image, "--bundle", "auto")
    finally:
        lab.set_env("node3")
    assert (code, found["node3"]["state"]) == (0, "ok")


@pytest.mark.parametrize(("chain", "name"), [("input", "port from here"), ("output", "port to here")])
def test_a_closed_port_is_named_with_its_direction(lab, chain, name):
    """Packets that open a connection are dropped, but for those to sshd."""
    rule = (
        "tcp dport != 22 tcp flags syn / syn,ack iif != lo drop"
        if chain == "input"
        else ("tcp dport != 22 tcp flags syn / syn,ack oif != lo drop")
    )
    table = f"table inet lab {{ chain shut {{ type filter hook {chain} priority 0; {rule}; }}; }}"
    lab.hosts["node1"].run("nft", "-f", "-", stdin=table)
    try:
        found, code = doctor(lab, lab.names)
    finally:
        lab.heal()
    assert code == 6
    among = "node1: ports" if chain == "input" else "node1: ports to hosts"
    assert set(found) == {f"node1: {name}", among, "node2", "node3", "scratch"}
    assert_problem(found, f"node1: {name}")
    assert_problem(found, among, "timed out")


@pytest.mark.parametrize("seconds", [120, -120])
def test_a_wrong_clock_is_named(lab, seconds):
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        pytest.skip("needs libfaketime")
    lab.set_env("node3", LD_PRELOAD=str(library), FAKETIME=f"{seconds:+d}s")
    try:
        found, _ = doctor(lab, "node[1-3]")
    finally:
        lab.set_env("node3")
    assert_problem(found, "node3: clock", "120.0 s", "ahead" if seconds > 0 else "behind")
    assert set(found) == {"node1", "node2", "node3: clock", "scratch"}
