"""Sets of nodes by name: what they are, and that huge ones are refused before anything is expanded."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hwlottery.cli import cli
from hwlottery.cluster.launchers import place_of
from hwlottery.cluster.node_sets import node_set
from hwlottery.evidence import RunError
from hwlottery.evidence.header import MOST_NODES

HUGE = (
    "node[1-999999999]",
    "node[1-99999999999999999999]",
    "node[-999999999-1]",
    "node[1-100000]",
    "n[0-99999999]!n[1-99999999]",
    "a[1-8000],b[1-8000]",
    "n[1-999]r[1-999]",
    "n[1,5,7-999999999/2]",
    "n" * 200_000,
)
LIMITED = [sys.executable, "-c"]
MOST_BYTES = 1 << 30
TORCH = {"RANK": "0", "MASTER_ADDR": "n1"}
SLURM = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "SLURMD_NODENAME": "n1"}
OPEN_MPI = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
HYDRA = {"PMI_RANK": "0", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}
PATHS = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent / ".src")}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[01-03]", ("node01", "node02", "node03")),
        ("n1,n2", ("n1", "n2")),
        ("n[1-5/2]", ("n1", "n3", "n5")),
        ("n[0-1]r[1,2]", ("n0r1", "n0r2", "n1r1", "n1r2")),
        ("n[1-4]!n[2-3]", ("n1", "n4")),
    ],
)
def test_a_node_set_names_its_hosts(text, names):
    assert node_set(text) == names


def test_as_many_nodes_as_a_run_may_have_are_no_too_many():
    assert len(node_set(f"n[1-{MOST_NODES}]")) == MOST_NODES


@pytest.mark.parametrize("text", HUGE)
def test_more_nodes_than_a_run_may_have_are_refused_in_one_line_before_they_are_expanded(text):
    said = (
        "from hwlottery.cluster.node_sets import node_set; from hwlottery.evidence import RunError\n"
        "import sys\ntry: node_set(sys.argv[1])\nexcept RunError as error: print(error)"
    )
    done = subprocess.run(
        [*LIMITED, said, text[:120_000]],
        capture_output=True,
        text=True,
        env=PATHS,
        timeout=30,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES)),
        check=True,
    )
    assert "a run has at most 8,192" in done.stdout
    assert done.stdout.count("\n") == 1
    assert len(done.stdout) < 250


@pytest.mark.parametrize("text", ["", "n[1-", "n[a-b]", "-oProxyCommand=x", "user@n1", "n1;x", "n1:22", "n1 n2"])
def test_what_is_no_node_set_is_refused_in_one_line(text):
    with pytest.raises(RunError, match="--hosts") as refused:
        node_set(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("command", [["run", "--hosts"], ["doctor", "--hosts"], ["history", ".", "--nodes"]])
def test_every_command_refuses_a_huge_node_set(command):
    done = CliRunner().invoke(cli, [*command, "node[1-999999999]"])
    assert done.exit_code == 2
    assert f"{command[-1]} node[1-999999999]: 999,999,999 nodes, and a run has at most 8,192" in done.output


@pytest.mark.parametrize(
    "env",
    [
        {**SLURM, "SLURM_STEP_NODELIST": "node[1-999999999]"},
        {**TORCH, "WORLD_SIZE": "999999999"},
        {**TORCH, "WORLD_SIZE": "9" * 5000},
        {**TORCH, "TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": "999999999"},
        {"JOB_COMPLETION_INDEX": "0", "HWLOTTERY_NODES": "999999999", "HWLOTTERY_HEAD": "n1"},
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "999999999", **OPEN_MPI},
        {**HYDRA, "PMI_SIZE": "2", "SLURM_JOB_NODELIST": "n[1-99999999]"},
        {**HYDRA, "PMI_SIZE": "999999999"},
    ],
)
def test_a_launcher_of_more_nodes_than_a_run_may_have_is_refused_in_one_line(env):
    with pytest.raises(RunError, match=r"at most 8,192|is no number") as refused:
        place_of(env)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
