"""What was promised, as a cluster to plan for and as subjects to answer for."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..cluster import Cluster, Joining, Node, Rank
from ..cluster.node_sets import refuse_odd_names
from ..evidence import Device, Promised, RunError, RunHeader


def cluster_of(promised: tuple[Promised, ...], scratch: Path, joining: Joining | None = None) -> Cluster:
    """The promised nodes as a cluster, before anything is known of them."""
    nodes = tuple(
        Node(
            name=node.node,
            scratch=str(scratch),
            ranks=tuple(
                Rank(subject=f"{node.node}/{short}", node=node.node, index=index, device=node.device)
                for index, short in enumerate(node.ranks)
            ),
        )
        for node in promised
    )
    device: Device = "cuda" if all(node.device == "cuda" for node in promised) else "cpu"
    return Cluster(nodes=nodes, device=device, joining=joining)


def cluster_now(header: RunHeader) -> Cluster:
    """The nodes that are measured now. Raises RunError where the run names no filesystem."""
    scratch = scratch_of(header)
    if scratch is None:
        raise RunError(f"run {header.run_id} names no filesystem: it cannot be gone on with")
    promised = cluster_of(header.taking_part, scratch, joining_of(header))
    return msgspec.structs.replace(promised, keep=header.keep)


def refuse_odd_names_of(header: RunHeader, where: str) -> None:
    """Raises RunError where a node's name in a run directory, which may be anybody's, would not do in --hosts: it goes
    to ssh, and to what the user's own ssh configuration starts."""
    refuse_odd_names((node.node for node in header.known), f"{where}/run.json")
    for join in header.joins:
        refuse_odd_names((*join.newcomers, *join.partners), f"{where}/run.json")


def scratch_of(header: RunHeader) -> Path | None:
    """Where filesystem work writes on each node; None where the run does not say."""
    return Path(header.filesystems[0].partition("/fs:")[2]) if header.filesystems else None


def joining_of(header: RunHeader) -> Joining | None:
    """Whose partners the accepted nodes of a join are; None where everybody is to be measured."""
    if not header.joins or header.joins[-1].again:
        return None
    return Joining(number=len(header.joins), accepted=frozenset(header.joins[-1].partners))


def promised_subjects(header: RunHeader, kinds: tuple[str, ...]) -> Iterator[str]:
    """The promised subjects of these kinds, as far as they are known before anything is measured."""
    if "cluster" in kinds:
        yield "cluster"
    if "filesystem" in kinds:
        yield from header.filesystems
    for node in header.promised:
        if "node" in kinds:
            yield node.node
        for short in node.ranks:
            if short.rstrip("0123456789") in kinds:
                yield f"{node.node}/{short}"
