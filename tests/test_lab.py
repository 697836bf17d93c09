"""The lab itself: hosts that are apart, cables that do as they are told, and nothing left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab import HEALTHY_MBIT, Lab, LabError
from lab.lab import ROOT, missing_tools, wait_until

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
# Sends so many bytes to an address; the receiver says how long they took, without the first tenth.
_RECEIVE = """
import socket, time, sys
server = socket.create_server(("", 9000)); print("up", flush=True)
stream, _ = server.accept(); got = 0; start = None
while chunk := stream.recv(1 << 18):
    got += len(chunk)
    if start is None and got > int(sys.argv[1]) // 10: start, first = time.monotonic(), got
print((got - first) * 8 / (time.monotonic() - start) / 1e6)
"""
_SEND = """
import socket, sys
stream = socket.create_connection((sys.argv[1], 9000)); stream.sendall(bytes(int(sys.argv[2]))); stream.close()
"""
# Counts the datagrams that come, until none has for a second.
_COUNT = """
import socket
server = socket.socket(type=socket.SOCK_DGRAM); server.bind(("", 9001)); print("up", flush=True)
server.settimeout(5); count = 0
try:
    while server.recv(100): count += 1; server.settimeout(1)
except TimeoutError: print(count)
"""
_SHOUT = """
import socket, sys, time
stream = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(300): stream.sendto(b"x", (sys.argv[1], 9001)); time.sleep(0.002)
"""
_KNOCK = "import socket, sys; socket.create_connection((sys.argv[1], 22), timeout=1)"


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        yield made


@pytest.fixture
def healthy(lab):
    yield lab
    lab.heal()


def ssh(lab, name, *command):
    words = ["ssh", *lab.ssh.split(), name, *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def mbit(lab, one, other, megabytes):
    """The rate from one host to another, Mbit/s."""
    size = str(megabytes * 1_000_000)
    receiver = subprocess.Popen(
        lab.hosts[other].inside("python3", "-c", _RECEIVE, size), stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout.readline() == "up\n"
    lab.hosts[one].run("python3", "-c", _SEND, lab.hosts[other].address, size)
    said, _ = receiver.communicate(timeout=60)
    return float(said)


def test_hosts_are_reached_by_name_and_have_their_own(lab):
    assert [ssh(lab, name, "hostname") for name in lab.hosts] == ["node1", "node2", "node3"]


def test_each_host_has_its_own_tmp(lab):
    ssh(lab, "node1", "touch /tmp/mine")
    assert ssh(lab, "node1", "ls /tmp") == "mine"
    assert ssh(lab, "node2", "ls /tmp") == ""


def test_a_healthy_cable_has_its_rate_and_not_that_of_the_cores(healthy):
    assert mbit(healthy, "node1", "node2", 30) == pytest.approx(HEALTHY_MBIT, rel=0.15)


def test_a_shaped_cable_is_slow_in_both_directions_and_the_others_stay_healthy(healthy):
    healthy.shape("node2", 60)
    assert mbit(healthy, "node1", "node2", 8) == pytest.approx(60, rel=0.15)
    assert mbit(healthy, "node2", "node1", 8) == pytest.approx(60, rel=0.15)
    assert mbit(healthy, "node1", "node3", 30) == pytest.approx(HEALTHY_MBIT, rel=0.15)


def test_a_slow_pair_is_slow_and_both_its_ends_are_fine_with_others(healthy):
    healthy.slow_pair("node1", "node2", 60)
    assert mbit(healthy, "node1", "node2", 8) == pytest.approx(60, rel=0.15)
    assert mbit(healthy, "node2", "node1", 8) == pytest.approx(60, rel=0.15)
    assert mbit(healthy, "node1", "node3", 30) == pytest.approx(HEALTHY_MBIT, rel=0.15)
    assert mbit(healthy, "node2", "node3", 30) == pytest.approx(HEALTHY_MBIT, rel=0.15)


def test_packets_to_a_lossy_host_are_dropped_at_random(healthy):
    healthy.lose("node2", 20)
    receiver = subprocess.Popen(
        healthy.hosts["node2"].inside("python3", "-c", _COUNT), stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout.readline() == "up\n"
    healthy.hosts["node1"].run("python3", "-c", _SHOUT, healthy.hosts["node2"].address)
    came, _ = receiver.communicate(timeout=30)
    assert 205 <= int(came) <= 275  # 240 of 300, five sigmas about it


def test_a_cut_cable_carries_nothing_until_it_is_healed(healthy):
    healthy.cut("node3")
    with pytest.raises(LabError):
        healthy.hosts["node1"].run("python3", "-c", _KNOCK, healthy.hosts["node3"].address)
    healthy.heal()
    assert mbit(healthy, "node1", "node3", 30) == pytest.approx(HEALTHY_MBIT, rel=0.15)


def test_two_labs_stand_side_by_side_and_leave_nothing_behind(lab):
    with pytest.raises(RuntimeError, match="failing"), Lab(2) as second:  # noqa: PT012  # the body is the test
        assert ssh(second, "node1", "hostname") == ssh(lab, "node1", "hostname") == "node1"
        pids = [host.pid for host in second.hosts.values()]
        bridge, folder = second.bridge, second.folder
        second.hosts["node1"].serve("sleep", "600")
        raise RuntimeError("a failing test")
    time.sleep(0.2)
    links = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
    assert bridge not in links
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert ssh(lab, "node1", "hostname") == "node1"


# A lab whose process is then killed: it says what it has made.
_OWNER = """
import signal
from lab import Lab
with Lab(2) as lab:
    lab.hosts["node1"].serve("sleep", "601")
    print(lab.bridge, lab.folder, *(host.pid for host in lab.hosts.values()), flush=True)
    signal.pause()
"""


def test_a_lab_whose_process_is_killed_leaves_nothing_behind():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True, env=env)
    bridge, folder, *pids = owner.stdout.readline().split()
    assert len(pids) == 2
    left = [Path("/sys/class/net") / bridge, Path(folder), *(Path("/proc") / pid for pid in pids)]
    assert all(path.exists() for path in left)
    owner.kill()
    owner.communicate()
    wait_until(lambda: not any(path.exists() for path in left), 10, f"gone: {left}")
