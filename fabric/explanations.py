"""The smallest sets of faults that explain the pairs of a few nodes of which nothing is proven.

Tried out, smallest first: a node as slow as its best pair, or a link as slow as its pair. What stands in every smallest
set is to blame; where there are several sets, nothing tells the rest of their members apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from .levels import Pair

Part = str | Pair  # a node or a link
MOST_FAULTS = 3
MOST_PARTS = 24  # with more, the sets to try are too many, and so are their explanations


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """`certain`: parts of every smallest set. `either`: parts of some and not of all. Both empty: no fault is needed,
    or (`too_many`) none of the sets that were tried explains it."""

    certain: frozenset[Part] = frozenset()
    either: frozenset[Part] = frozenset()
    too_many: bool = False


def explain(shares: Mapping[Pair, float], known: Mapping[str, float], effect: float) -> Explained:
    """Explain these pairs' shares of the ceiling, to within `effect`; `known` is what nodes can do, where known."""
    case = _Case(shares=shares, known=known, least=1 - effect)
    parts = dict(case.parts())
    if len(parts) > MOST_PARTS:
        return Explained(too_many=True)
    for size in range(MOST_FAULTS + 1):
        found = [frozenset(chosen) for chosen in combinations(parts, size) if case.fits({p: parts[p] for p in chosen})]
        if found:
            certain = frozenset.intersection(*found)
            return Explained(certain=certain, either=frozenset.union(*found) - certain)
    return Explained(too_many=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    shares: Mapping[Pair, float]
    known: Mapping[str, float]
    least: float

    def parts(self) -> Iterator[tuple[Part, float]]:
        """What may be at fault, with the level that it then has."""
        for node in sorted({node for pair in self.shares for node in pair} - self.known.keys()):
            yield node, max(share for pair, share in self.shares.items() if node in pair)
        yield from self.shares.items()

    def fits(self, faults: Mapping[Part, float]) -> bool:
        """Whether the pairs are as these faults would make them."""
        return all(self._near(share, self._predicted(pair, faults)) for pair, share in self.shares.items())

    def _predicted(self, pair: Pair, faults: Mapping[Part, float]) -> float:
        able = [self.known.get(node, 1.0) for node in pair]
        return min(*able, *(faults.get(part, 1.0) for part in (*pair, pair)))

    def _near(self, share: float, predicted: float) -> bool:
        return self.least * predicted <= share <= predicted / self.least
