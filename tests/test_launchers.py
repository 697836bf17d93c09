"""Which launcher started a process, by its variables; and what is refused because they contradict each other."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from hwlottery.cluster.desk import Arrival, fetch_summons
from hwlottery.cluster.identity import IDENTITY, IDENTITY_FILE, new_identity, take_identity
from hwlottery.cluster.launchers import place_of
from hwlottery.cluster.place import Place
from hwlottery.cluster.roll_call import RollCall, count_nodes
from hwlottery.evidence import RunError

PATHS = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent / ".src")}
# As torchrun of torch 2.13 sets them in the second of two nodes, with two processes a node.
TORCHRUN = {
    "LOCAL_RANK": "1",
    "RANK": "3",
    "GROUP_RANK": "1",
    "ROLE_RANK": "3",
    "LOCAL_WORLD_SIZE": "2",
    "WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "7",
}
# As Open MPI 4.1 sets them, started from a third machine.
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    "OMPI_MCA_orte_hnp_uri": "1097269248.0;tcp://192.0.2.2,10.203.83.254:47985;tcp6://[fd00::2]:50983",
    "PMIX_RANK": "1",
}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
SLURM = {
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
    "SLURMD_NODENAME": "n2",
}
POD = {"JOB_COMPLETION_INDEX": "2", "HWLOTTERY_NODES": "3", "HWLOTTERY_HEAD": "hwl-0.hwl", "HWLOTTERY_NODE": "gpu-17"}


def test_a_process_without_a_launchers_variables_was_started_alone():
    assert place_of({"PATH": "/bin"}) is None


def test_torchrun_tells_ranks_nodes_and_the_head():
    place = place_of(TORCHRUN)
    assert (place.launcher, place.number, place.count, place.local_rank, place.leads) == ("torchrun", 1, 2, 1, False)
    assert place.heads == ("10.0.0.1",)
    assert "TORCHELASTIC_RUN_ID" in place.why
    assert place_of({**TORCHRUN, "RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"}).leads


def test_open_mpi_4_tells_where_its_mpirun_runs_and_that_is_tried():
    place = place_of(OPEN_MPI)
    assert (place.launcher, place.number, place.count) == ("mpi", 1, 2)
    assert place.heads == ("192.0.2.2", "10.203.83.254")


def test_mpich_and_intel_mpi_count_nodes_by_the_processes_a_node():
    place = place_of({**HYDRA, "HWLOTTERY_HEAD": "n1"})
    assert (place.launcher, place.rank, place.count, place.heads) == ("mpi", 2, 2, ("n1",))


@pytest.mark.parametrize(
    ("env", "head"),
    [
        ({**OPEN_MPI, "HWLOTTERY_HEAD": "n1", "MASTER_ADDR": "n7"}, "n1"),
        ({**OPEN_MPI, "MASTER_ADDR": "n7"}, "n7"),
        ({**HYDRA, "SLURM_JOB_NODELIST": "n[4-5]"}, "n4"),
    ],
)
def test_under_mpi_the_head_is_where_the_user_or_the_allocation_says(env, head):
    assert place_of(env).heads == (head,)


def test_a_pod_is_named_after_its_machine_and_not_after_itself():
    place = place_of(POD)
    assert (place.launcher, place.node, place.number, place.count) == ("kubernetes", "gpu-17", 2, 3)
    assert place.heads == ("hwl-0.hwl",)


def test_of_nested_launchers_the_innermost_counts():
    pod = {**POD, "JOB_COMPLETION_INDEX": "1"}
    assert place_of({**pod, **SLURM, **OPEN_MPI, **TORCHRUN}).launcher == "torchrun"
    assert place_of({**pod, **SLURM, **OPEN_MPI}).launcher == "mpi"
    assert place_of({**pod, **SLURM}).launcher == "slurm"


def test_what_slurm_sets_for_its_own_mpi_is_slurms():
    assert place_of({**SLURM, "PMI_RANK": "1", "PMI_SIZE": "2", "PMIX_RANK": "1"}).launcher == "slurm"


def test_torchs_variables_without_torchrun_count_where_they_agree():
    plain = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "n1"}
    assert place_of(plain).launcher == "torch"
    assert place_of({**SLURM, **plain}).launcher == "slurm"
    assert place_of({**plain, "RANK": "0", "WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({**SLURM, "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "n1"}, "RANK=0 and WORLD_SIZE=2 contradict"),
        ({**TORCHRUN, "RANK": "9"}, "contradict each other"),
        ({**TORCHRUN, "WORLD_SIZE": "5"}, "start as many on each"),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "0"}, "contradict each other"),
        ({**TORCHRUN, "RANK": "-1"}, "RANK='-1' is no number"),
        ({"TORCHELASTIC_RUN_ID": "7"}, "RANK='' is no number"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "many"}, "is no number"),
        (HYDRA, "HWLOTTERY_HEAD"),
        ({"PMIX_RANK": "1"}, "PMIX_RANK says"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "PMI_RANK says"),
        ({"JOB_COMPLETION_INDEX": "0"}, "HWLOTTERY_NODES and HWLOTTERY_HEAD is not set"),
        ({**POD, "JOB_COMPLETION_INDEX": "3"}, "contradict each other"),
    ],
)
def test_variables_that_contradict_each_other_or_say_too_little_are_refused_in_one_line(env, said):
    with pytest.raises(RunError, match=said) as refused:
        place_of(env)
    assert "\n" not in str(refused.value)


def as_text(identity):
    return msgspec.json.encode(identity).decode()


def test_the_identity_is_taken_out_of_the_environment_that_ranks_inherit():
    identity = new_identity()
    env = {IDENTITY: as_text(identity)}
    assert take_identity(env) == identity
    assert env == {}


@pytest.fixture
def identity_file(tmp_path):
    file = tmp_path / "identity"
    file.write_text(as_text(new_identity()))
    return file


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_identity_may_lie_in_a_file_that_nobody_else_can_read(identity_file, mode):
    identity_file.chmod(mode)
    assert take_identity({IDENTITY_FILE: str(identity_file)}).key


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o440])
def test_a_file_that_others_can_read_is_refused(identity_file, mode):
    identity_file.chmod(mode)
    with pytest.raises(RunError, match="chmod 600"):
        take_identity({IDENTITY_FILE: str(identity_file)})


@pytest.mark.parametrize(("mode", "taken"), [(0o440, True), (0o400, True), (0o460, False), (0o444, False)])
def test_in_a_pod_the_pods_own_group_may_read_a_secret(identity_file, mode, taken):
    identity_file.chmod(mode)
    env = {IDENTITY_FILE: str(identity_file), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    if taken:
        assert take_identity(env).key
    else:
        with pytest.raises(RunError, match="chmod 600"):
            take_identity(env)


@pytest.mark.parametrize("env", [{}, {IDENTITY: "nonsense"}, {IDENTITY_FILE: "/nowhere"}])
def test_without_a_whole_identity_a_run_is_refused(env):
    with pytest.raises(RunError):
        take_identity(dict(env))


def test_an_identity_of_other_bytes_than_text_is_refused(tmp_path):
    file = tmp_path / "identity"
    file.write_bytes(b"\xff\xfe")
    file.chmod(0o600)
    with pytest.raises(RunError, match="holds no identity"):
        take_identity({IDENTITY_FILE: str(file)})


def place(number, count=3, node=None):
    return Place(
        launcher="mpi",
        why="a test",
        node=node or f"n{number}",
        number=number,
        count=count,
        rank=number,
        local_rank=0,
        processes=count,
    )


def arrival(number, name=None, count=3):
    return Arrival(name=name or f"n{number}", number=number, count=count)


def test_nodes_are_counted_in_the_order_of_their_numbers_and_the_missing_ones_named():
    call = RollCall(place(0))
    assert call.answer(arrival(2), "10.0.0.1").refused == ""
    call.wait(0.2)
    assert call.here == ("n0", "n2")
    assert call.missing == ("missing-1",)
    assert call.address == "10.0.0.1"


def test_processes_that_are_numbered_by_gpu_leave_as_many_missing_as_there_are():
    call = RollCall(place(0))
    call.answer(arrival(4), "10.0.0.1")
    assert len(call.missing) == 1


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (arrival(2, name="n1"), "two nodes call themselves n1"),
        (arrival(2, name="n0"), "two nodes call themselves n0"),
        (arrival(1, name="n9"), "both have the number 1"),
        (arrival(2, count=4), "was told of 4 nodes, and n0 of 3"),
    ],
)
def test_nodes_that_contradict_each_other_end_the_run_before_it_begins(second, said):
    call = RollCall(place(0))
    call.answer(arrival(1), "10.0.0.1")
    assert said in call.answer(second, "10.0.0.1").refused
    with pytest.raises(RunError, match=said):
        call.wait(5)


def test_asking_again_changes_nothing():
    call = RollCall(place(0, count=2))
    for _ in range(3):
        assert call.answer(arrival(1, count=2), "10.0.0.1").refused == ""
    call.wait(1)
    assert (call.here, call.missing) == (("n0", "n1"), ())


def test_a_node_finds_the_head_among_several_addresses_and_is_counted_at_the_one_it_took():
    identity = new_identity()
    said = []

    def ask():
        with pytest.raises(RunError) as error:  # nobody hands out a summons after the counting here
            fetch_summons(identity, ("127.0.0.9", "127.0.0.1"), arrival(1, count=2), 2)
        said.append(str(error.value))

    asking = threading.Thread(target=ask)
    asking.start()
    call = count_nodes(place(0, count=2), identity, None, 20)
    asking.join()
    assert call.here == ("n0", "n1")
    assert call.address in ("127.0.0.1", "127.0.0.9")
    assert "no summons from the head" in said[0]


def test_a_visitor_without_the_runs_identity_is_not_counted():
    def visit():
        with pytest.raises(RunError):
            fetch_summons(new_identity(), ("127.0.0.1",), arrival(1, count=2), 1)

    visitor = threading.Thread(target=visit)
    visitor.start()
    call = count_nodes(place(0, count=2), new_identity(), "127.0.0.1", 1.5)
    visitor.join()
    assert call.missing == ("missing-1",)


def test_a_stranger_with_another_identity_at_the_same_port_is_told_nothing(monkeypatch):
    ours, theirs = new_identity(), new_identity()
    monkeypatch.setattr("hwlottery.cluster.desk.desk_port", lambda _: 29871)

    def visit():
        with pytest.raises(RunError):
            fetch_summons(theirs, ("127.0.0.1",), arrival(1, count=2), 1)

    visitor = threading.Thread(target=visit)
    visitor.start()
    call = count_nodes(place(0, count=2), ours, "127.0.0.1", 1.5)
    visitor.join()
    assert (call.here, call.address) == (("n0",), None)


def test_a_desk_that_was_closed_leaves_its_port_to_the_next():
    identity = new_identity()
    for address in (None, "127.0.0.1", None):
        assert count_nodes(place(0, count=2), identity, address, 0.3).here == ("n0",)


def test_a_port_that_is_taken_is_said_in_one_line(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr("hwlottery.cluster.desk.desk_port", lambda _: taken.getsockname()[1])
        with pytest.raises(RunError, match="cannot listen on"):
            count_nodes(place(0, count=2), new_identity(), "127.0.0.1", time.monotonic())


def test_a_process_that_mpirun_bound_to_a_core_takes_what_mpirun_itself_has():
    cores = os.sched_getaffinity(0)
    bound = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from hwlottery.cluster.mpi import unbind; unbind(); print(sorted(os.sched_getaffinity(0)))"
    )
    done = subprocess.run([sys.executable, "-c", bound], capture_output=True, text=True, check=True, env=PATHS)
    assert done.stdout.strip() == str(sorted(cores))


def hwlottery_run(*more, **env):
    words = [sys.executable, "-m", "hwlottery", "run", *more]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"], **PATHS, **env}
    )


def test_hosts_in_one_of_several_processes_is_refused_in_one_line():
    done = hwlottery_run("--hosts", "node[1-2]", **{**TORCHRUN, "LOCAL_RANK": "0", "RANK": "2"})
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "--hosts starts the nodes by ssh, and this is one of 4 processes of torchrun" in line


def test_a_process_that_is_not_the_first_of_its_node_says_so_and_ends_well():
    done = hwlottery_run(**TORCHRUN, HWLOTTERY_NODE="n2")
    assert done.returncode == 0
    assert done.stderr.strip() == "hwlottery: one process a node is enough: rank 3 on n2 has nothing to do"


@pytest.mark.parametrize("rank", ["0", "2"])
def test_several_nodes_without_an_identity_are_refused_on_head_and_nodes(rank, tmp_path):
    number = {"RANK": rank, "LOCAL_RANK": "0", "GROUP_RANK": str(int(rank) // 2)}
    done = hwlottery_run("--out", tmp_path / "run", **{**TORCHRUN, **number})
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "no identity for this run, so nothing may listen" in line
    assert not (tmp_path / "run").exists()


def test_a_node_that_finds_no_head_says_so_and_does_not_end_the_launchers_other_processes():
    found = {**TORCHRUN, "LOCAL_RANK": "0", "RANK": "2", "MASTER_ADDR": "127.0.0.1", "HWLOTTERY_NODE": "n2"}
    done = hwlottery_run("--join-within", "1", **found, **{IDENTITY: as_text(new_identity())})
    assert done.returncode == 0
    assert "n2 does not take part: no summons from the head at 127.0.0.1" in done.stderr
    assert "PRIVATE KEY" not in done.stderr
