"""The place of this process in a run that a launcher started once a node or once a GPU."""

import socket
from collections.abc import Mapping

from msgspec import Struct

from ..evidence import RunError, node_name

_LONGEST_NUMBER = 12
HEAD, NODE, NODES = "HWLOTTERY_HEAD", "HWLOTTERY_NODE", "HWLOTTERY_NODES"


class Place(Struct, frozen=True, kw_only=True):
    """Which of a launcher's processes this is. Rank 0 leads; one process a node takes part, that of local rank 0.

    `number` counts nodes, of which there are `count`, in one step of `processes`. `nodes` are their names where the
    launcher knows them, and `heads` where the head may be found, in the order of trying.
    """

    launcher: str
    why: str
    node: str
    number: int
    count: int
    rank: int
    local_rank: int
    processes: int
    nodes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()

    @property
    def leads(self) -> bool:
        """Whether this process is the head."""
        return self.rank == 0


def whole(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A count or an index among a launcher's variables. Raises RunError where there is none and no default."""
    text = env.get(name, "" if default is None else str(default))
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
        raise RunError(
            f"{name}={text[:40]!r} is no number: unset the launcher's variables, or start this with the launcher"
        )
    return int(text)


def own_name(env: Mapping[str, str]) -> str:
    """This node's name where its launcher gives none: HWLOTTERY_NODE, else the hostname."""
    return node_name(env.get(NODE) or socket.gethostname())


def nodes_of(rank: int, processes: int, local_rank: int, local_processes: int, named: str) -> int:
    """How many nodes there are with as many processes each as this one has. `named` says whose variables these are.

    Raises RunError where the numbers contradict each other.
    """
    if not (rank < processes and local_rank < local_processes <= processes):
        raise RunError(
            f"{named} say rank {rank} of {processes} and, on this node, {local_rank} of {local_processes}: "
            "they contradict each other"
        )
    if processes % local_processes:
        raise RunError(
            f"{named} say {processes} processes, {local_processes} of them on this node: start as many on each, "
            "best one a node"
        )
    return processes // local_processes
