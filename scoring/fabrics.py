"""Which fabric lies between nodes, as the facts of their NICs tell it: technology, number and rate, platform."""

from collections.abc import Iterator, Mapping

from ..evidence.records import Scalar
from ..references import Fabric, Network, Technology
from .derived import Figures
from .facts import Facts, finite
from .policy_model import Check

COLLECTIVES = ("all_reduce.", "all_gather.", "reduce_scatter.", "all_to_all.", "rail.")
NOT_KNOWN = "the facts do not tell which fabric this is"


def between_nodes(check: Check) -> bool:
    """Whether a check's reference is a matter of the fabric between nodes, not of accelerators."""
    across = check.each in ("cluster", "pair") and check.nodes_at_least > 1
    return across and (check.metric or "").startswith(COLLECTIVES)


def fabric_of(figures: Figures, nodes: tuple[str, ...]) -> tuple[Fabric | None, str]:
    """The one fabric that all these nodes have, or None and why: unlike or unknown ones have no reference."""
    networks = {network_of(figures, node) for node in nodes}
    if len(networks) != 1 or None in networks:
        return None, "the nodes' networks differ" if len(networks - {None}) > 1 else NOT_KNOWN
    network = networks.pop()
    assert network is not None
    found = figures.facts.references.fabric(network)
    shown = f"{network.nics} x {network.gbit:g} Gbit/s {network.technology}"
    return found, "" if found else f"a fabric of {shown} has no reference with these accelerators"


def network_of(figures: Figures, node: str) -> Network | None:
    """A node's NICs of the fastest kind that are up, those with RDMA before others; None where none is known."""
    nics = list(_nics(figures.facts, node))
    rdma = [nic for nic in nics if nic[0] != "ethernet"]
    if not nics:
        return None
    technology, gbit = max(rdma or nics, key=lambda nic: nic[1])
    promised = figures.node(node)
    kind = figures.facts.accelerator_of_node(promised) if promised is not None else None
    return Network(
        technology=technology,
        nics=sum(nic == (technology, gbit) for nic in nics),
        gbit=gbit,
        vendor=str(figures.facts.get(node, "machine.vendor") or ""),
        accelerators=(kind.key,) if kind else (),
    )


def _nics(facts: Facts, node: str) -> Iterator[tuple[Technology, float]]:
    """Technology and Gbit/s of each NIC whose link is up."""
    for found in facts.of_node(node).values():
        rate = finite(found.get("port1.rate", found.get("nic.speed")))
        if "nic.driver" in found and rate and _up(found):
            yield _technology(found), rate / 1e9


def _technology(found: Mapping[str, Scalar]) -> Technology:
    if found["nic.driver"] == "efa":
        return "efa"
    layer = found.get("port1.link_layer")
    return "infiniband" if layer == "InfiniBand" else "roce" if layer == "Ethernet" else "ethernet"


def _up(found: Mapping[str, Scalar]) -> bool:
    return found.get("port1.state") == "ACTIVE" if "port1.rate" in found else found.get("nic.state") == "up"
