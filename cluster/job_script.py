"""The batch script that starts a run inside Slurm: once a node, with an identity that only this job has."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from .slurm_options import check_slurm


def slurm_script(
    *,
    nodes: int,
    gpus_per_node: int | None,
    time: str,
    partition: str | None,
    run: Iterable[str],
    resumes: bool = False,
    bundle: Path | None = None,
    python: str | None = None,
) -> str:
    """A script for sbatch. `run` are the arguments of `hwlottery run`, or `recheck` and its own; `time` is Slurm's
    limit, such as 02:00:00. Of a run that goes on with another one (`resumes`) the number of GPUs is that one's.

    Raises RunError for a value that Slurm would not take, or that would be more than a value in a script.

    With a bundle nothing of ours need be on the nodes: `python` is what starts their own Python.
    """
    check_slurm(time=time, partition=partition, python=python)
    command, arguments = _command([*run])
    given = arguments if gpus_per_node is None or resumes else ["--gpus-per-node", str(gpus_per_node), *arguments]
    starts = python or ("python3" if bundle else shlex.quote(sys.executable))
    here = f"{starts} {shlex.quote(str(bundle))}" if bundle else starts
    there = f'{starts} "$place/bundle.pyz" --once' if bundle else starts
    return "\n".join(
        [
            "#!/bin/bash",
            *_wishes(nodes, gpus_per_node, time, partition),
            "set -eu",
            "# What lets a node into the run: made for this job, and given to its tasks alone.",
            f'HWLOTTERY_IDENTITY="$({here} -m hwlottery.cluster.identity)"',
            *(_bringing(bundle) if bundle else []),
            "export HWLOTTERY_IDENTITY",
            "# Once a node, with all its cores; the report lies where the first task runs, as the output says.",
            f"srun --ntasks-per-node=1 --cpu-bind=none {there} -m hwlottery {command} {shlex.join(given)}".rstrip(),
            "",
        ]
    )


def _wishes(nodes: int, gpus_per_node: int | None, time: str, partition: str | None) -> list[str]:
    """The lines that say to sbatch what is asked for."""
    wishes = {
        "job-name": "hwlottery",
        "nodes": str(nodes),
        "ntasks-per-node": "1",
        "time": time,
        "output": "hwlottery-%j.out",
        **({"gpus-per-node": str(gpus_per_node)} if gpus_per_node else {}),
        **({"partition": partition} if partition else {}),
    }
    return [*(f"#SBATCH --{name}={value}" for name, value in wishes.items()), "#SBATCH --exclusive", "#SBATCH --mem=0"]


def _command(words: list[str]) -> tuple[str, list[str]]:
    """What is started on the nodes, and its arguments."""
    return ("recheck", words[1:]) if words[:1] == ["recheck"] else ("run", words)


def _bringing(bundle: Path) -> list[str]:
    """The lines that copy a bundle to a folder of the job's own on each node.

    The run removes it as soon as it is unpacked there, and what was unpacked when it ends; the trap is for a copy
    that fails.
    """
    return [
        "# hwlottery is brought to each node, and removed (--once), also when the job is cancelled or times out.",
        'place="/tmp/hwlottery-$SLURM_JOB_ID"',
        "trap 'srun --ntasks-per-node=1 rm -rf \"$place\"' EXIT",
        'srun --ntasks-per-node=1 mkdir -m 700 "$place"',
        f'sbcast {shlex.quote(str(bundle))} "$place/bundle.pyz"',
    ]
