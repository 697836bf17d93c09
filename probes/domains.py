"""The NVLink domains of a cluster, by the facts that inventory brought (fabric/domains.py)."""

from ..cluster import Cluster
from ..fabric import domains_of

FACT = "accelerator.nvlink_domain"


def nvlink_domains(cluster: Cluster) -> dict[str, str]:
    """Each node that shares its NVLink domain with another, with the domain's name: {"n03": "D1"}."""
    said = {node.name: [_text(cluster.fact(rank.subject, FACT)) for rank in node.ranks] for node in cluster.nodes}
    return domains_of(said)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
