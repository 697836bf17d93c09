"""Pairs whose small messages stall, and which of them to measure again before a node is blamed.

A count is how many of a trial's small messages waited for a retransmission. A host that was busy for a moment makes
one or two, once; a cable that loses packets makes them again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from .levels import Pair

FEWEST_STALLS = 2  # in one trial of a pair, or in its retests together
_RETESTS = 2  # of a pair
_PAIRS_OF_A_NODE = 3  # two partners blame a node, and one of three may fail


def stalls(counts: Sequence[float]) -> bool:
    """Whether any trial of a pair shows more than a hiccup."""
    return max(counts, default=0.0) >= FEWEST_STALLS


def stalls_again(retests: Sequence[float]) -> bool:
    """Whether the retests of a pair, together, do."""
    return sum(retests) >= FEWEST_STALLS


def wanted_stall_retests(counts: Mapping[Pair, Sequence[float]], tried: Mapping[Pair, int]) -> list[Pair]:
    """The stalling pairs to measure once more; of many with one node in common a few.

    `counts` are those of each pair's trials, `tried` its retests so far, those that brought no value too.
    """
    stalling = [pair for pair, found in counts.items() if stalls(found)]
    of_node = Counter(node for pair in stalling for node in pair)
    chosen: Counter[str] = Counter()
    wanted = []
    for pair in sorted(stalling, key=lambda pair: (not tried.get(pair), -max(counts[pair]), pair)):
        suspect = max(pair, key=lambda node: (of_node[node], node))
        chosen[suspect] += 1
        if chosen[suspect] <= _PAIRS_OF_A_NODE and tried.get(pair, 0) < _RETESTS:
            wanted.append(pair)
    return wanted
