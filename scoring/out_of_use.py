"""Which nodes a user cannot use: the one answer for verdict, money, comparison, page and lists."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from .scope import nodes_of
from .words import natural, several


@lru_cache(maxsize=64)
def nodes_out(excluded: tuple[str, ...]) -> frozenset[str]:
    """The whole nodes that are lost by taking these subjects out.

    With a device its node: no launcher starts on part of one. Of a link one of its two nodes, or a job may use it; of
    several links as few nodes as are enough, of equals the last by name.
    """
    behind = [nodes for each in excluded if (nodes := nodes_of(each))]
    out = {nodes[0] for nodes in behind if len(nodes) == 1}
    return frozenset(out | _one_of_each({frozenset(nodes) for nodes in behind if out.isdisjoint(nodes)}))


def out_in_words(excluded: tuple[str, ...], most: int = 4) -> str:
    """'n02, n05 (for the link n00~n05)': the nodes that are out, those that a link alone takes with what it is."""
    named = {node for each in excluded if len(nodes := nodes_of(each)) == 1 for node in nodes}
    return several([_in_words(node, named, excluded) for node in sorted(nodes_out(excluded), key=natural)], most)


def _in_words(node: str, named: Iterable[str], excluded: Iterable[str]) -> str:
    if node in named:
        return node
    links = links_of(node, excluded)
    return f"{node} (for the {'link' if len(links) == 1 else 'links'} {several(links, 2)})"


def links_of(node: str, excluded: Iterable[str]) -> list[str]:
    """The links of a node that are taken out."""
    return [each for each in excluded if len(nodes_of(each)) > 1 and node in nodes_of(each)]


def _one_of_each(links: set[frozenset[str]]) -> set[str]:
    """Nodes with which every link has an end: of a link whose one end has no other link the other end, which is never
    worse; where there is no such link the node with the most."""
    out: set[str] = set()
    while links:
        count = Counter(node for link in links for node in link)
        ends = {node for link in links if 1 in map(count.__getitem__, link) for node in link}
        taken = max(ends or count, key=lambda node: (count[node], natural(node)))
        out.add(taken)
        links = {link for link in links if taken not in link}
    return out
