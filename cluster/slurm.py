"""Inside a Slurm step: which nodes there are, which of them is the head, and which is this one.

The same `hwlottery run` is started once a node (srun --ntasks-per-node=1). The first task is the head; the others
fetch their summons from it.
"""

import os
import re
import socket
import subprocess
from collections.abc import Mapping

from ..evidence import RunError
from .identity import IDENTITY, IDENTITY_FILE
from .node_sets import node_set
from .place import Place, whole

_ASKING_S = 20.0


def in_slurm_step(env: Mapping[str, str] = os.environ) -> Place | None:
    """The task that this process is in a step of several tasks, or in one that was given the identity of a run, be it
    of one node; else None: a shell that Slurm started. Raises RunError where Slurm's variables contradict each
    other."""
    tasks = whole(env, "SLURM_STEP_NUM_TASKS", whole(env, "SLURM_STEP_NUM_NODES", 1))
    if "SLURM_PROCID" not in env or (tasks < 2 and not {IDENTITY, IDENTITY_FILE} & env.keys()):
        return None
    named = env.get("SLURM_STEP_NODELIST", "")
    nodes = node_set(named, "SLURM_STEP_NODELIST")
    node = env.get("SLURMD_NODENAME", socket.gethostname())
    if node not in nodes:
        raise RunError(f"this is {node}, and Slurm's step is on {named}: clear SLURM_STEP_NODELIST or use srun")
    return Place(
        launcher="slurm",
        why=f"a Slurm step on {named} (SLURM_STEP_NODELIST, job {env.get('SLURM_JOB_ID', 'unknown')})",
        node=node,
        number=nodes.index(node),
        count=len(nodes),
        rank=whole(env, "SLURM_PROCID"),
        local_rank=whole(env, "SLURM_LOCALID", 0),
        processes=tasks,
        nodes=nodes,
        heads=(nodes[0],),
    )


def address_of(node: str) -> str:
    """A node's address as Slurm knows it (NodeAddr), else its name."""
    try:
        said = subprocess.run(
            ["scontrol", "--oneliner", "show", "node", node],
            capture_output=True,
            text=True,
            timeout=_ASKING_S,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return node
    found = re.search(r"\bNodeAddr=(\S+)", said)
    return found[1] if found else node
