"""Rails and collectives on the hosts of a lab: the host with the slow cable is named by each of its rails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import Lab
from lab.lab import missing_tools

from hwlottery.evidence import Measurement, read_run
from hwlottery.scoring import score_run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
POLICY = """\
name: rails
signable: false
checks:
  - {check: evidence.complete, rule: evidence.complete, each: cluster, category: evidence}
  - check: rails.wire
    rule: rails.wire
    each: cluster
    layers: {peers: {effect: 0.25}}
    excludable: true
    category: fabric
  - {check: rails.exact, rule: rails.exact, each: cluster, category: fabric}
  - check: exchange
    metric: all_to_all.wrong_elements
    each: cluster
    layers: {contract: {at_most: 0}}
    category: fabric
"""
PROFILE = Path(__file__).parent / "profiles" / "rails.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run on three hosts, of which node3 has a cable at a fifth."""
    folder = tmp_path_factory.mktemp("rails")
    (folder / "policy.yaml").write_text(POLICY)
    with Lab(3) as lab:
        lab.shape("node3", 60)
        command = [sys.executable, "-m", "hwlottery", "run", "--hosts", "node[1-3]", "--scratch", "/tmp"]
        command += ["--profile", str(PROFILE), "--policy", str(folder / "policy.yaml"), "--out", str(folder / "run")]
        env = {**os.environ, "HWLOTTERY_SSH": lab.ssh}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode in (0, 3, 4, 5), done.stdout + done.stderr
    return read_run(folder / "run")


def test_each_rail_of_the_host_with_the_slow_cable_is_named_and_no_other(run):
    wire = {f.subject: f.result for f in score_run(run).findings if f.check == "rails.wire"}
    assert {subject for subject, result in wire.items() if result == "fail"} == {"node3/rail0", "node3/rail1"}
    assert {subject for subject, result in wire.items() if result == "pass"} == {"node1", "node2"}


def test_rails_meet_both_neighbours_and_suspects_meet_them_again(run):
    rails = [m for m in run.measurements if isinstance(m, Measurement) and m.metric == "rail.busbw"]
    first = {m.subject for m in rails if m.attempt == 1}
    pairs = ("node1~node2", "node2~node3", "node1~node3")
    assert first == {f"{pair}/rail{rail}" for pair in pairs for rail in (0, 1)}
    again = {m.subject for m in rails if m.attempt > 1}
    assert {subject for subject in first if "node3" in subject} <= again


def test_every_element_that_hosts_exchange_is_right(run):
    findings = {f.check: f.result for f in score_run(run).findings if f.check in ("rails.exact", "exchange")}
    assert findings == {"rails.exact": "pass", "exchange": "pass"}
    collectives = {
        (m.metric, m.params["nodes"]) for m in run.measurements if "wrong" in m.metric and "nodes" in m.params
    }
    assert collectives == {
        ("all_gather.wrong_elements", 3),
        ("reduce_scatter.wrong_elements", 3),
        ("all_to_all.wrong_elements", 3),
    }
