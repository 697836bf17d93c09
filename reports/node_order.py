"""In which order nodes stand beside each other in a matrix, and where the borders between groups of them are."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from ..evidence import parse_subject
from .measured import Measured
from .pairs_seen import PairsSeen
from .plain_text import listed, natural, printable


class Order(Struct, frozen=True, kw_only=True):
    """Nodes in order; the groups that they form, each with its length, none where nothing groups them; and by what."""

    names: tuple[str, ...]
    groups: tuple[tuple[str, int], ...] = ()
    by: str = "by name"


def node_order(measured: Measured, seen: PairsSeen) -> Order:
    """By the leaf switches that their links name; else by the groups within which pairs are fast, where the pairs have
    shown two levels; else by name. Names in natural order: n2 before n10."""
    leaves = _leaves(measured)
    if len({leaves.get(node) for node in seen.nodes}) > 1:
        return _grouped(seen.nodes, lambda node: leaves.get(node, "leaf not known"), "by leaf switch")
    if seen.blame.split:
        islands = _islands(seen)
        return _grouped(seen.nodes, islands.__getitem__, "by the groups within which pairs are fast")
    return Order(names=tuple(seen.nodes))


def _grouped(nodes: Iterable[str], group_of: Callable[[str], str], by: str) -> Order:
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(group_of(node), []).append(node)
    ordered = sorted(groups, key=natural)
    names = tuple(node for group in ordered for node in groups[group])
    return Order(names=names, groups=tuple((group, len(groups[group])) for group in ordered), by=by)


def _leaves(measured: Measured) -> dict[str, str]:
    """The leaf of each node, or its leaves where its rails go to several, from subjects like leaf1:17=n03/mlx5_2."""
    found: dict[str, set[str]] = {}
    for subject in measured.subjects:
        node = _node_of_link(subject) if "=" in subject else None
        if node is not None:
            found.setdefault(node, set()).add(subject.partition(":")[0])
    return {node: printable(listed(sorted(leaves, key=natural), 2), 60) for node, leaves in found.items()}


def _node_of_link(subject: str) -> str | None:
    try:
        parsed = parse_subject(subject)
    except ValueError:
        return None
    return parsed.node if parsed.kind == "link" else None


def _islands(seen: PairsSeen) -> dict[str, str]:
    """Nodes that fast pairs connect, named by their first."""
    first = {node: node for node in seen.nodes}

    def root(node: str) -> str:
        while first[node] != node:
            first[node] = first[first[node]]
            node = first[node]
        return node

    for pair, level in seen.levels.of.items():
        if level.share >= seen.least:
            one, other = sorted(map(root, pair), key=natural)
            first[other] = one
    return {node: f"with {printable(root(node), 60)}" for node in seen.nodes}
