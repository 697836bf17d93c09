"""Which launcher started this process, by the variables that it sets. Where they are nested the innermost counts."""

import os
from collections.abc import Mapping

from ..evidence import RunError
from ..evidence.header import MOST_NODES
from .kubernetes import in_indexed_job
from .mpi import incomplete, under_mpi
from .place import Place
from .slurm import in_slurm_step
from .torch_launcher import under_torchrun, with_torch_variables

# Inside out: torchrun is started by mpirun, srun or in a pod, and mpirun by a batch job.
_BY_PROCESS = (under_torchrun, under_mpi, in_slurm_step)


def place_of(env: Mapping[str, str] = os.environ) -> Place | None:
    """The place of this process among those of its launcher; None where it was started alone.

    Raises RunError where variables contradict each other, or say that there are several processes and not how many.
    """
    place = next((found for look in _BY_PROCESS if (found := look(env)) is not None), None)
    plain = with_torch_variables(env)
    if place and plain and (plain.rank, plain.processes) != (place.rank, place.processes):
        raise RunError(
            f"RANK={plain.rank} and WORLD_SIZE={plain.processes} contradict {place.why}: unset RANK and WORLD_SIZE"
        )
    place = place or plain or in_indexed_job(env)
    if place and place.count > MOST_NODES:
        raise RunError(f"{place.why} says {place.count:,} nodes, and a run has at most {MOST_NODES:,}")
    if place and place.number >= place.processes:
        raise RunError(f"{place.why} says node {place.number}: its variables contradict each other")
    lonely = None if place else incomplete(env)
    if lonely:
        raise RunError(f"{lonely} says that this is one of several processes, and not of which: use mpirun or srun")
    return place
