"""The scope of a check: `each` expanded over the promised nodes, never over what answered."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

from msgspec import Struct

from ..evidence import Device, Promised, RunHeader, parse_subject
from .facts import Facts
from .policy_model import Check

MOST_NUMA_NODES = 256


class Target(Struct, frozen=True, kw_only=True):
    """A subject that a check is about. `nodes` are the promised nodes behind it; `also` another way to write it.

    `unknown` says why the subject itself is not known: the check is then not measured on the node that has it.
    """

    subject: str
    nodes: tuple[str, ...]
    also: str | None = None
    unknown: str = ""


@lru_cache(maxsize=2**17)
def nodes_of(subject: str) -> tuple[str, ...]:
    """The nodes behind a subject; none for the cluster, and none for what is no subject."""
    try:
        return parse_subject(subject).nodes
    except ValueError:
        return ()


def targets(check: Check, header: RunHeader, facts: Facts, *, sought: bool) -> Iterator[Target]:
    """The subjects on which a check is demanded. `sought`: trials were to bring its metric. What is asked of runs
    beside a baseline is then asked though run.json names none: nobody plans it otherwise."""
    alone = check.beside_baseline and header.baseline is None and not sought
    if len(header.promised) < check.nodes_at_least or alone:
        return
    nodes = [node for node in header.promised if _concerns(check, node.device, len(node.ranks))]
    if check.each == "cluster":
        everyone = tuple(node.node for node in header.promised)
        if _concerns(check, header.device, sum(len(node.ranks) for node in header.promised)):
            yield Target(subject="cluster", nodes=everyone)
    elif check.each == "node":
        yield from (Target(subject=node.node, nodes=(node.node,)) for node in nodes)
    elif check.each == "accelerator":
        yield from (Target(subject=f"{n.node}/{rank}", nodes=(n.node,)) for n in nodes for rank in n.ranks)
    elif check.each == "numa":
        yield from (target for node in nodes for target in _numa(node, facts))
    elif check.each == "filesystem":
        yield from _filesystems(nodes, header)
    else:
        for one, other in combinations(nodes, 2):
            yield Target(
                subject=f"{one.node}~{other.node}", nodes=(one.node, other.node), also=f"{other.node}~{one.node}"
            )


def _concerns(check: Check, device: Device, ranks: int) -> bool:
    """Whether a check is about such a node or cluster. One rank at least is what every promise has: no condition."""
    enough = check.ranks_at_least == 1 or ranks >= check.ranks_at_least
    return enough and (check.device is None or check.device == device)


def _numa(node: Promised, facts: Facts) -> Iterator[Target]:
    """NUMA nodes are not promised: inventory counts them, and without its count nothing about them is known.

    Those without CPUs (memory of an accelerator, say) are left out; where the platform shows none, the first stands
    for the whole node, as in the probe.
    """
    count, closed = facts.number(node.node, "numa.nodes"), facts.why_not(node.node, "numa.nodes")
    if count is None and closed is None:
        why = "how many NUMA nodes there are was not recorded"
        yield Target(subject=node.node, nodes=(node.node,), unknown=why)
        return
    for index in range(max(1, min(int(count or 1), MOST_NUMA_NODES))):
        subject = f"{node.node}/numa{index}"
        if facts.get(subject, "numa.cpus") != "":
            yield Target(subject=subject, nodes=(node.node,))


def _filesystems(nodes: list[Promised], header: RunHeader) -> Iterator[Target]:
    """The filesystems that were promised; a node that none belongs to is a target without one."""
    shared: list[str] = []
    own: dict[str, list[str]] = {}
    for name in header.filesystems:
        subject = name if "fs:" in name else f"fs:{name}"
        node = subject.partition("/fs:")[0]
        if subject.startswith("fs:"):
            shared.append(subject)
        else:
            own.setdefault(node, []).append(subject)
    everyone = tuple(node.node for node in nodes)
    yield from (Target(subject=name, nodes=everyone) for name in shared if nodes)
    for promised in nodes:
        here = own.get(promised.node, [])
        yield from (Target(subject=name, nodes=(promised.node,)) for name in here)
        if not here and not shared:
            unknown = "no filesystem of this node was named"
            yield Target(subject=promised.node, nodes=(promised.node,), unknown=unknown)
