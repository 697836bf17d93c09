"""A run that a launcher starts once a node or once a GPU: who takes part, who leads, and where the results lie."""

import socket
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.console import Console

from ..cluster import mpi
from ..cluster.bundle_main import UNLIKE
from ..cluster.desk import Arrival, fetch_summons
from ..cluster.identity import Identity, forget_identity, take_identity
from ..cluster.launchers import place_of
from ..cluster.node_main import own_software, unlike
from ..cluster.place import Place
from ..cluster.roll_call import count_nodes
from ..cluster.slurm import address_of
from ..cluster.workers import attend
from ..evidence import RunError
from .joining import SLURM, Reach


def attended(hosts: str | None, join_within_s: float) -> bool:
    """Where this is a process of a launcher that does not lead: take part as a node until the run ends, or say why not.

    It ends well whatever becomes of it: some launchers end every node when one process fails. Raises RunError where no
    identity was given, or where the launcher's variables contradict each other or --hosts.
    """
    place = place_of()
    if place is None:
        return False
    if hosts is not None and place.processes > 1:
        raise RunError(
            f"--hosts starts the nodes by ssh, and this is one of {place.processes} processes of {place.why}: "
            "give one of the two"
        )
    if place.launcher == "mpi":
        mpi.unbind()
    if place.leads:
        return False
    if place.local_rank:
        _say(f"one process a node is enough: rank {place.rank} on {place.node} has nothing to do")
    else:
        _take_part(place, take_identity(), join_within_s)
    return True


def _take_part(place: Place, identity: Identity, join_within_s: float) -> None:
    """Fetch this node's summons and be its worker, or tell the head and the user why not."""
    heads = tuple(address_of(head) for head in place.heads) if place.launcher == SLURM else place.heads
    arrival = Arrival(name=place.node, number=place.number, count=place.count)
    try:
        summons = fetch_summons(identity, heads, arrival, join_within_s)
        different = unlike(summons.software, own_software())
        if different:
            refusal = msgspec.structs.replace(arrival, refuses=UNLIKE + different)
            fetch_summons(identity, heads, refusal, join_within_s)
            raise RunError(f"its software {different}")
    except RunError as error:
        _say(f"{place.node} does not take part: {error}")
    else:
        attend(summons)


def within_launcher(reach: Reach, hosts: str | None) -> Reach:
    """With the launcher's step that this process leads, and its identity. Raises RunError without one."""
    place = place_of()
    if place is None or hosts is not None:
        forget_identity()
        return reach
    if place.count == 1:  # nothing listens
        forget_identity()
        return replace(reach, step=_named(place, (place.node,)))
    return replace(reach, step=place, identity=take_identity())


def counted(reach: Reach, console: Console) -> Reach:
    """With the names of the nodes, which announce themselves where the launcher does not know them.

    Raises RunError where what they say is contradictory.
    """
    step, identity = reach.step, reach.identity
    if step is None or step.nodes or identity is None:
        return reach
    console.print(f"waiting up to {reach.join_within_s:.0f} s for {step.count - 1} more nodes", markup=False)
    call = count_nodes(step, identity, reach.listening[0] if reach.listen else None, reach.join_within_s)
    console.print(
        f"{len(call.here)} of {step.count} nodes are here: {', '.join(call.here)}", markup=False, soft_wrap=True
    )
    names = (*call.here, *call.missing)
    return replace(reach, step=_named(step, names), missing=call.missing, met_at=call.address)


def say_where(reach: Reach, out: Path, console: Console) -> None:
    """On which machine the results lie, and where the verdict is read where the launcher keeps the exit code."""
    if reach.step is None:
        return
    machine = f"{socket.gethostname()}:{out.absolute()}"
    console.print(f"the report lies on {machine}/report.html", markup=False, soft_wrap=True)
    if reach.step.launcher != SLURM:
        said = f"{reach.step.launcher} may not pass on the exit code: read the verdict in {machine}/verdict.json"
        console.print(said, markup=False, soft_wrap=True)


def _named(place: Place, names: tuple[str, ...]) -> Place:
    return msgspec.structs.replace(place, nodes=names)


def _say(text: str) -> None:
    sys.stderr.write(f"hwlottery: {text}\n")
