"""Under mpirun: Open MPI's variables, or Hydra's (MPICH, Intel MPI).

They tell ranks, and not where rank 0 is. HWLOTTERY_HEAD says it (mpirun -x HWLOTTERY_HEAD=node01); else the places are
tried where it usually is: MASTER_ADDR, the allocation's first node, and the machine of Open MPI's mpirun (to version
4). What answers there must have the run's identity, so that trying is safe.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping

from ..evidence import RunError
from .node_sets import node_set
from .place import HEAD, Place, nodes_of, own_name, whole

# rank, processes, rank on this node, processes on this node
_OPEN_MPI = tuple(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
_HYDRA = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
# In Open MPI 4: "1097269248.0;tcp://192.0.2.2,10.0.0.254:47985;tcp6://[fd00::2]:50983"
_MPIRUN = "OMPI_MCA_orte_hnp_uri"


def under_mpi(env: Mapping[str, str]) -> Place | None:
    """The place that mpirun gives, or None. Raises RunError for variables that contradict each other, and where nothing
    says on which node rank 0 is."""
    names = next((names for names in (_OPEN_MPI, _HYDRA) if names[0] in env and names[2] in env), None)
    if names is None:
        return None
    rank, processes, local_rank, local = (whole(env, name) for name in names)
    count = nodes_of(rank, processes, local_rank, local, ", ".join(names))
    heads = _heads(env)
    if rank and count > 1 and not heads:
        raise RunError(
            f"nothing says on which node rank 0 is: give mpirun -x {HEAD}=NODE (with Hydra: -env {HEAD} NODE)"
        )
    return Place(
        launcher="mpi",
        why=f"mpirun's variables ({names[0]}={rank} {names[1]}={processes} {names[3]}={local})",
        node=own_name(env),
        number=rank,
        count=count,
        rank=rank,
        local_rank=local_rank,
        processes=processes,
        heads=heads,
    )


def by_mpirun(env: Mapping[str, str]) -> bool:
    """Whether a launcher of MPI started this. It passes on what is printed, and may give a pseudo-terminal to print to
    though nobody watches: Open MPI does so."""
    return any(name in env for name in (_OPEN_MPI[0], _HYDRA[0], "PMIX_RANK"))


def incomplete(env: Mapping[str, str]) -> str | None:
    """A variable that says this is one of several processes, where nothing says of how many or on which nodes."""
    if "PMI_RANK" in env and env.get("PMI_SIZE", "") != "1":
        return "PMI_RANK"
    return "PMIX_RANK" if "PMIX_RANK" in env else None


def unbind() -> None:
    """Take all cores that the launcher itself has: mpirun binds each process to one, and a run measures the node."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))


def _heads(env: Mapping[str, str]) -> tuple[str, ...]:
    said = env.get(HEAD) or env.get("MASTER_ADDR")
    return (said,) if said else tuple(dict.fromkeys(_usual(env)))


def _usual(env: Mapping[str, str]) -> Iterator[str]:
    """Where rank 0 usually is."""
    allocated = env.get("SLURM_JOB_NODELIST")
    if allocated:
        yield node_set(allocated, "SLURM_JOB_NODELIST")[0]
    addresses = re.search(r"tcp://([^;:]+):\d+", env.get(_MPIRUN, ""))
    if addresses:
        yield from addresses[1].split(",")
