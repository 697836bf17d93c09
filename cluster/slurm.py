"""Inside a Slurm step: which nodes there are, which of them is the head, and which is this one.

The same `hwlottery run` is started once a node (srun --ntasks-per-node=1). The first task is the head; the others
fetch their summons from it. They share the run's identity by an environment variable, or by a file of mode 0600.
"""

import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ..evidence import RunError, node_name
from .identity import Identity

IDENTITY = "HWLOTTERY_IDENTITY"
IDENTITY_FILE = "HWLOTTERY_IDENTITY_FILE"
_ASKING_S = 20.0


class Allocation(Struct, frozen=True, kw_only=True):
    """A step on several nodes as this task sees it. `local_rank` counts this node's tasks; the first task leads."""

    nodes: tuple[str, ...]
    node: str
    rank: int
    local_rank: int
    why: str

    @property
    def head(self) -> str:
        """The node of the first task."""
        return self.nodes[0]

    @property
    def leads(self) -> bool:
        """Whether this task is the head."""
        return self.rank == 0


def allocation(env: Mapping[str, str] = os.environ) -> Allocation | None:
    """The step that this process is a task of; None outside one, and in a step of one node. Raises RunError where
    Slurm's variables contradict each other."""
    if int(env.get("SLURM_STEP_NUM_NODES", "1")) < 2 or "SLURM_PROCID" not in env:
        return None
    from ClusterShell.NodeSet import NodeSet

    named = env.get("SLURM_STEP_NODELIST", "")
    nodes = tuple(str(name) for name in NodeSet(named))
    node = env.get("SLURMD_NODENAME", socket.gethostname())
    if node not in nodes:
        raise RunError(f"this is {node}, and Slurm's step is on {named}: clear SLURM_STEP_NODELIST or use srun")
    if [node_name(name) for name in nodes] != list(nodes):
        raise RunError(f"{named}: names that are no plain host names")
    return Allocation(
        nodes=nodes,
        node=node,
        rank=int(env["SLURM_PROCID"]),
        local_rank=int(env.get("SLURM_LOCALID", "0")),
        why=f"a Slurm step on {named} (SLURM_STEP_NODELIST, job {env.get('SLURM_JOB_ID', 'unknown')})",
    )


def take_identity(env: "os._Environ[str]" = os.environ) -> Identity:
    """The run's identity as the job gave it; it is taken out of the environment, which child processes inherit.

    Raises RunError where there is none, or where others may read its file: nothing listens without one.
    """
    given, file = env.pop(IDENTITY, None), env.pop(IDENTITY_FILE, None)
    if given is None and file is not None:
        given = _private(Path(file))
    if given is None:
        raise RunError(
            f"no identity for this run, so nothing may listen: set {IDENTITY} in the job script, or {IDENTITY_FILE} to "
            "a file of mode 0600 on storage that all nodes see (hwlottery launch slurm prints such a script)"
        )
    try:
        return msgspec.json.decode(given, type=Identity)
    except msgspec.MsgspecError:
        raise RunError(
            f"{IDENTITY} or its file holds no identity: make one with python -m hwlottery.cluster.identity"
        ) from None


def _private(file: Path) -> str:
    try:
        if file.stat().st_mode & 0o077:
            raise RunError(f"{file} may be read by others: chmod 600 {file}")
        return file.read_text("utf-8")
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}") from error


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
