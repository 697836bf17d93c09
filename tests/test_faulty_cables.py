"""Runs on four hosts whose cables are healthy, slow, slow to one other host, or lossy: who is taken out, and who not.

Cables have a rate that two cores carry easily, and the hosts come before other work, so that cables are measured.
"""

from collections import Counter
from itertools import combinations

import pytest
from lab import Lab
from lab.commands import arguments, events, found, policy_of, read, run_on, slurm_script, submit
from lab.lab import missing_tools
from lab.slurm import missing_slurm

MISSING = [*missing_tools(), *missing_slurm()]
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(MISSING), reason=f"the lab needs {', '.join(MISSING)}")]
MBIT = 150
NODES = ("node1", "node2", "node3", "node4")
BUSBW = "all_reduce.busbw"


@pytest.fixture(scope="module")
def lab():
    with Lab(4, mbit=MBIT, first=True) as made:
        yield made


@pytest.fixture(scope="module")
def policy(lab):
    return policy_of(lab.folder)


@pytest.fixture
def run_pairs(lab, policy, tmp_path):
    """Runs the pairs profile over ssh on all hosts; their cables are healed afterwards."""

    def run():
        made, verdict, _ = run_on(lab, tmp_path / "run", lab.names, profile="pairs", policy=policy)
        return made, verdict

    yield run
    lab.heal()


@pytest.fixture(scope="module")
def healthy(lab, policy, tmp_path_factory):
    """A run over ssh, shared by the tests that only read it."""
    out = tmp_path_factory.mktemp("healthy") / "run"
    run, verdict, _ = run_on(lab, out, lab.names, profile="pairs", policy=policy)
    return out, run, verdict


@pytest.fixture(scope="module")
def healthy_in_slurm(lab, policy):
    """The same run inside Slurm, by the printed script."""
    out = lab.folder / "slurm-run"
    script = slurm_script(arguments(out, profile="pairs", policy=policy), nodes=4)
    with lab.slurm() as env:
        said = submit(lab, env, script)
    assert out.is_dir(), said
    return out, *read(out)


@pytest.fixture(params=["healthy", "healthy_in_slurm"])
def either(request):
    """The run on healthy cables, once by ssh and once inside Slurm."""
    return request.getfixturevalue(request.param)


def measured(run, metric=BUSBW):
    return {m.subject for m in run.measurements if m.metric == metric}


def test_healthy_hosts_and_cables_have_no_finding_against_them(either):
    _, run, verdict = either
    assert (verdict["verdict"], verdict["exclude"]) == ("GO", [])
    assert found(verdict, "fail", "warn", "not_measured") == set()
    assert {finding["check"] for finding in verdict["findings"]} >= {"pairs.nodes", "pairs.links", "pairs.stalls"}
    assert set(events(run, "node_joined")) == set(NODES)
    assert [event.detail for event in run.events if event.severity != "info"] == []
    assert measured(run) == {"cluster", *("~".join(pair) for pair in combinations(NODES, 2))}


def shape(directory, run, verdict):
    """All of a run that is to be the same whoever started its nodes: its files, what was planned and measured, and what
    each check found. The log of a node's worker is the launcher's to keep; telemetry has a part a full minute."""
    files = {file.relative_to(directory) for file in directory.rglob("*") if file.is_file()}
    brought = [*run.measurements, *run.not_measured]
    return {
        "files": {str(file) for file in files if file.parts[0] not in ("logs", "telemetry")},
        "planned": {_key(fill) for plan in run.plans for fill in plan.fills},
        "measured": {(type(record).__name__, *_key(record)) for record in brought},
        "facts": {(fact.subject, fact.key) for fact in run.facts},
        "events": {(event.kind, event.subject) for event in run.events},
        "results": Counter((f["check"], f["subject"], f["result"]) for f in verdict["findings"]),
        "verdict": {name: verdict[name] for name in ("verdict", "exclude", "signable", "policy")},
    }


def _key(record):
    return record.metric, record.subject, repr(sorted(record.params.items()))


def test_a_run_over_ssh_and_one_inside_slurm_are_of_one_shape(healthy, healthy_in_slurm):
    over_ssh, in_slurm = shape(*healthy), shape(*healthy_in_slurm)
    assert len(over_ssh["planned"]) > 40
    for part, ours in over_ssh.items():
        assert in_slurm[part] == ours, part


def test_the_node_with_a_slow_cable_is_taken_out_and_no_other(lab, run_pairs):
    lab.shape("node2", MBIT / 5)
    _, verdict = run_pairs()
    assert (verdict["verdict"], verdict["exclude"]) == ("CONDITIONAL", ["node2"])
    assert found(verdict, "fail", "warn") == {"node2"}


def test_two_nodes_of_four_with_slow_cables_are_both_named_and_no_other(lab, run_pairs):
    lab.shape("node1", MBIT / 5)
    lab.shape("node4", MBIT / 5)
    _, verdict = run_pairs()
    assert (verdict["verdict"], verdict["exclude"]) == ("NO_GO", ["node1", "node4"])
    assert found(verdict, "fail", "warn") == {"node1", "node4"}


def test_of_a_slow_pair_the_link_is_blamed_and_neither_node(lab, run_pairs):
    lab.slow_pair("node1", "node3", MBIT / 5)
    _, verdict = run_pairs()
    assert (verdict["verdict"], verdict["exclude"]) == ("CONDITIONAL", ["node1~node3"])
    assert found(verdict, "fail", "warn") == {"node1~node3"}


def test_the_node_whose_cable_loses_packets_is_taken_out_and_no_other(lab, run_pairs):
    lab.lose("node3", 3)
    _, verdict = run_pairs()
    assert (verdict["verdict"], verdict["exclude"]) == ("CONDITIONAL", ["node3"])
    assert found(verdict, "fail", "warn", check="pairs.stalls") == {"node3"}
    assert found(verdict, "fail", "warn", check="pairs.nodes") <= {"node3"}
