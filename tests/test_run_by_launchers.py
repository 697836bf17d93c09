"""Runs on the hosts of a lab, started by real launchers: torchrun and mpirun, once a node and once a GPU."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from lab import Lab
from lab.lab import ROOT, missing_tools

from hwlottery.cluster.identity import new_identity
from hwlottery.evidence import read_run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(missing_tools()), reason=f"the lab needs {', '.join(missing_tools())}"),
]
PROFILE = Path(__file__).parent / "profiles" / "tiny.yaml"
VERDICTS = (0, 3, 4, 5)
PATHS = {"PYTHONPATH": f"{ROOT / '.src'}:{ROOT / 'tests'}"}
SECRETS = (b"PRIVATE KEY", b"BEGIN CERT")


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        yield made


@pytest.fixture(scope="module")
def identity(lab):
    """A run's identity in a file that only its user can read."""
    file = lab.folder / "identity"
    file.touch(mode=0o600)
    file.write_bytes(msgspec.json.encode(new_identity()))
    return file


def arguments(out, *more):
    given = ["--profile", PROFILE, "--policy", "prolog", "--scratch", "/tmp", "--out", out, "--only", "all_reduce"]
    return [*map(str, given), *map(str, more)]


def clean_env(**more):
    """This environment without what other tests' launchers could have left, and with where hwlottery lies."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root"), **PATHS, **more}


def start_on(host, *command, env):
    """Start a command on a host of the lab; what it prints comes back when it is waited for."""
    return subprocess.Popen(host.inside(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def ended(processes, within_s=150):
    """Wait for processes: the code and the output of each."""
    until = time.monotonic() + within_s
    try:
        said = [process.communicate(timeout=max(1, until - time.monotonic()))[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


def nodes_measured(run):
    return {m.subject.partition("/")[0] for m in run.measurements if m.metric == "all_reduce.busbw"}


def failed(out, check):
    findings = json.loads((out / "verdict.json").read_text())["findings"]
    return {found["subject"] for found in findings if found["check"] == check and found["result"] == "fail"}


def assert_whole(out, launcher, names, said):
    """A run on these nodes and no others, whose launcher and whereabouts were said."""
    run = read_run(out)
    assert run.problems == [], said
    assert [node.node for node in run.header.promised] == names
    assert run.header.launcher.name == launcher
    assert nodes_measured(run) == set(names)
    assert json.loads((out / "verdict.json").read_text())["exclude"] == []
    assert f"launcher {launcher}: {run.header.launcher.why}" in said
    assert f"{names[0]}:{out}/report.html" in said
    assert f"read the verdict in {names[0]}:{out}/verdict.json" in said
    contents = [said.encode(), *(file.read_bytes() for file in out.rglob("*") if file.is_file())]
    assert not any(secret in content for secret in SECRETS for content in contents)
    return run


def torchrun(lab, name, number, identity, out, *more, a_node=1):
    """Start torchrun on a host, as a user does on each."""
    words = ["--nnodes", 2, "--nproc-per-node", a_node, "--node-rank", number, "--max-restarts", 0]
    meeting = ["--master-addr", lab.hosts["node1"].address, "--master-port", 29500 + a_node]
    command = [sys.executable, "-m", "torch.distributed.run", *words, *meeting, "-m", "hwlottery", "run"]
    env = clean_env(HWLOTTERY_IDENTITY_FILE=str(identity))
    return start_on(lab.hosts[name], *map(str, command), *arguments(out, *more), env=env)


class TestTorchrun:
    """torch.distributed.run, started on each host."""

    def test_one_process_a_node_makes_one_run_of_all_nodes(self, lab, identity):
        out = lab.folder / "torch-nodes"
        started = [torchrun(lab, f"node{n}", n - 1, identity, out) for n in (1, 2)]
        (_, said), (code, other) = ended(started)
        assert_whole(out, "torchrun", ["node1", "node2"], said)
        assert code == 0, other

    def test_of_one_process_a_gpu_one_a_node_takes_part_and_the_others_say_so(self, lab, identity):
        out = lab.folder / "torch-gpus"
        started = [torchrun(lab, f"node{n}", n - 1, identity, out, a_node=2) for n in (1, 2)]
        (_, said), (code, other) = ended(started)
        assert_whole(out, "torchrun", ["node1", "node2"], said)
        assert code == 0, other
        assert "rank 1 on node1 has nothing to do" in said
        assert "rank 3 on node2 has nothing to do" in other

    def test_without_an_identity_nothing_listens_and_nothing_runs(self, lab):
        out = lab.folder / "torch-refused"
        started = [torchrun(lab, f"node{n}", n - 1, "/nowhere", out) for n in (1, 2)]
        for code, said in ended(started):
            assert code != 0
            assert "/nowhere: No such file" in said
        assert not out.exists()


def mpirun(lab, identity, out, *more, on=None, head=None):
    """Start mpirun on this machine, or on a host of the lab; what it printed."""
    given = ["-x", f"HWLOTTERY_HEAD={head}"] if head else []
    ssh = ["--mca", "plm_rsh_args", lab.ssh]
    words = [
        "mpirun",
        "--allow-run-as-root",
        *ssh,
        "--host",
        "node1,node2",
        "-x",
        "HWLOTTERY_IDENTITY",
        "-x",
        "PYTHONPATH",
        *given,
    ]
    command = [*words, sys.executable, "-m", "hwlottery", "run", *arguments(out, *more)]
    env = clean_env(HWLOTTERY_IDENTITY=identity.read_text(), OMPI_MCA_btl_base_warn_component_unused="0")
    command = lab.hosts[on].inside(*command) if on else command
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def command_lines():
    """The command lines of all processes here, those of the lab's hosts among them."""
    files = Path("/proc").glob("[0-9]*/cmdline")
    return b"\n".join(file.read_bytes() for file in files if file.exists())


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs openmpi-bin")
class TestMpirun:
    """Debian's Open MPI, over the lab's ssh."""

    def test_from_another_machine_it_needs_to_be_told_where_rank_0_is(self, lab, identity):
        out = lab.folder / "mpi-told"
        started = mpirun(lab, identity, out, head=lab.hosts["node1"].address)
        seen = b""
        while started.poll() is None and not out.exists():
            seen += command_lines()
            time.sleep(0.5)
        ((_, said),) = ended([started])
        run = assert_whole(out, "mpi", ["node1", "node2"], said)
        assert "OMPI_COMM_WORLD_RANK" in run.header.launcher.why
        assert b"orted" in seen
        assert not any(secret in seen for secret in SECRETS), "the identity stands on no command line"

    def test_from_the_first_node_it_finds_the_head_and_a_node_that_never_comes_is_named_and_left_out(
        self, lab, identity
    ):
        out = lab.folder / "mpi-found"
        deaf = [":", "-np", 1, "--host", "node3", "sleep", 300]
        started = mpirun(lab, identity, out, "--join-within", 20, *deaf, on="node1")
        ((_, said),) = ended([started])
        run = read_run(out)
        assert run.problems == [], said
        assert [node.node for node in run.header.promised] == ["node1", "node2", "missing-2"]
        assert nodes_measured(run) == {"node1", "node2"}
        assert failed(out, "node.responds") == {"missing-2"}
        lost = {event.subject: event.detail for event in run.events if event.kind == "node_lost"}
        assert "2 of 3 nodes came within 20 s" in lost["missing-2"]
