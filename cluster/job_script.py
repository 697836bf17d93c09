"""The batch script that starts a run inside Slurm: once a node, with an identity that only this job has."""

import shlex
import sys
from collections.abc import Iterable


def slurm_script(*, nodes: int, gpus_per_node: int | None, time: str, partition: str | None, run: Iterable[str]) -> str:
    """A script for sbatch. `run` are the arguments of `hwlottery run`; `time` is Slurm's limit, such as 02:00:00."""
    wishes = {
        "job-name": "hwlottery",
        "nodes": str(nodes),
        "ntasks-per-node": "1",
        "time": time,
        "output": "hwlottery-%j.out",
        **({"gpus-per-node": str(gpus_per_node)} if gpus_per_node else {}),
        **({"partition": partition} if partition else {}),
    }
    given = [*run] if gpus_per_node is None else ["--gpus-per-node", str(gpus_per_node), *run]
    python = shlex.quote(sys.executable)
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{name}={value}" for name, value in wishes.items()),
            "#SBATCH --exclusive",
            "#SBATCH --mem=0",
            "set -eu",
            "# What lets a node into the run: made for this job, and given to its tasks alone.",
            f'HWLOTTERY_IDENTITY="$({python} -m hwlottery.cluster.identity)"',
            "export HWLOTTERY_IDENTITY",
            "# Once a node, with all its cores; the report lies where the first task runs, as the output says.",
            f"exec srun --ntasks-per-node=1 --cpu-bind=none {python} -m hwlottery run {shlex.join(given)}".rstrip(),
            "",
        ]
    )
