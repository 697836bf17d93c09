"""NVLink domains: which nodes share one (a GB200 NVL72 rack), and on which level of the fabric a pair then is.

Two nodes of one domain talk over NVLink, two of different ones over NICs: a tenth of it or less. The levels are
fabrics of their own; no pair of one is compared with one of the other.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal

from .levels import Pair

LevelName = Literal["", "domain", "between"]


def domains_of(seen: Mapping[str, Collection[str | None]]) -> dict[str, str]:
    """Each node's domain as D1, D2, ... in the order of the nodes, by what its accelerators say of theirs.

    Only a domain of two nodes or more is one, and only a node all of whose accelerators say the same is in it: None
    stands for an accelerator that says nothing.
    """
    own = {node: said for node, told in seen.items() if (said := _the_one(told)) is not None}
    sizes = Counter(own.values())
    names: dict[str, str] = {}
    for said in own.values():
        if sizes[said] > 1:
            names.setdefault(said, f"D{len(names) + 1}")
    return {node: names[said] for node, said in own.items() if said in names}


def level_of(pair: Pair, domains: Mapping[str, str]) -> LevelName:
    """Within a domain, or between two; nothing where there are no domains at all."""
    if not domains:
        return ""
    one, other = (domains.get(node) for node in pair)
    return "domain" if one is not None and one == other else "between"


def _the_one(told: Collection[str | None]) -> str | None:
    distinct = set(told)
    return distinct.pop() if len(distinct) == 1 else None
