"""What a node's NICs can carry by their line rate, from the RDMA ports that inventory saw up."""

from collections import Counter

from ..evidence import Promised
from .facts import Facts, finite

MOST_PORTS = 4  # of one NIC


def rdma_ports(facts: Facts, node: str) -> dict[str, float]:
    """The line rate in GB/s of each port that is up, by NIC and port: {"n03/mlx5_0 port1": 50.0}."""
    found = {}
    for number in range(1, MOST_PORTS + 1):
        for nic, state in facts.of_parts(node, f"port{number}.state").items():
            rate = finite(facts.get(nic, f"port{number}.rate"))
            if state == "ACTIVE" and rate:
                found[f"{nic} port{number}"] = rate / 8e9
    return found


def rail_line_rate(facts: Facts, node: Promised) -> float | None:
    """GB/s that one accelerator's share of the NICs carries; None where no RDMA port was seen up.

    The rate that most ports have counts, for those of storage and management may have another. Where there are more
    such ports than accelerators each has as many to itself as divide up evenly; where there are fewer they are shared.
    """
    rates = Counter(rdma_ports(facts, node.node).values())
    if not rates or not node.ranks:
        return None
    common, ports = max(rates.items(), key=lambda one: (one[1], one[0]))
    rails = len(node.ranks)
    return common * (ports // rails if ports >= rails else ports / rails)
