"""Generated matrices of pair bandwidths with known faults, what they can decide at best, and how the rule does on them.

`explanations` is an oracle of its own: it tries all sets of faults, smallest first, on the matrix without noise, and
knows nothing of the rule in hwlottery.fabric.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations

from hwlottery.fabric import (
    Blame,
    Observation,
    Pair,
    Thresholds,
    blame,
    levels_of,
    pair_of,
    wanted_retests,
)

Fault = str | Pair  # a node or a link
SEVERITIES = (0.8, 0.65, 0.5, 0.3)  # what is left: losses of 20 % and more
CEILING = 47.5  # GB/s
MOST_ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A cluster's pairs: what each can truly do (missing pairs cannot be measured), and what is wrong with it."""

    nodes: tuple[str, ...]
    truth: Mapping[Pair, float]
    faults: Mapping[Fault, float] = field(default_factory=dict)


def make_matrix(source: random.Random, nodes: int, *, bad_nodes: int, bad_links: int, missing: float) -> Matrix:
    """Faults at random places with random severities; each pair is missing with that probability."""
    names = tuple(f"n{index:02d}" for index in range(nodes))
    pairs = [pair_of(*two) for two in combinations(names, 2)]
    places: list[Fault] = [*source.sample(names, bad_nodes), *source.sample(pairs, bad_links)]
    faults = {place: source.choice(SEVERITIES) for place in places}
    there = [pair for pair in pairs if source.random() >= missing]
    truth = {pair: min(faults.get(part, 1.0) for part in (*pair, pair)) for pair in there}
    return Matrix(nodes=names, truth=truth, faults=faults)


def judged(matrix: Matrix, source: random.Random, noise: float, thresholds: Thresholds) -> Blame | None:
    """Measure each pair once, then what the rule asks to have measured again, as the probe does; then judge."""
    seen = [_measured(matrix, pair, source, noise, alone=False) for pair in matrix.truth]
    tried: Counter[Pair] = Counter()
    for _ in range(MOST_ROUNDS):
        levels = levels_of(seen, thresholds)
        if levels is None:
            return None
        found = blame(levels)
        again = wanted_retests(found, tried)
        if not again:
            return found
        tried.update(again)
        seen += [_measured(matrix, pair, source, noise, alone=True) for pair in again if pair in matrix.truth]
    raise AssertionError("the retests do not come to an end")


def _measured(matrix: Matrix, pair: Pair, source: random.Random, noise: float, *, alone: bool) -> Observation:
    value = CEILING * matrix.truth[pair] * (1 + source.gauss(0, noise))
    # A trial's own iterations are quieter than one trial after another, as on real networks.
    return Observation(pair=pair, value=value, alone=alone, error=noise / 10)


def accused(found: Blame | None) -> frozenset[Fault]:
    """Who is blamed after retests."""
    if found is None:
        return frozenset()
    return frozenset(
        part for culprit in (*found.nodes, *found.links) if culprit.confirmed and (part := culprit.node or culprit.pair)
    )


def doubted(found: Blame | None) -> frozenset[Fault]:
    """Who is in a set of which one is to blame."""
    sets = found.undecided if found else ()
    return frozenset(chain.from_iterable((*one.nodes, *one.links) for one in sets if one.confirmed))


def explanations(truth: Mapping[Pair, float]) -> list[frozenset[Fault]]:
    """The smallest sets of faults that give this matrix, of at most three; none where it takes more.

    The best pair shows the ceiling. A node's fault is as bad as its best pair, a link's as its pair.
    """
    top = max(truth.values(), default=1.0)
    candidates = dict(_candidates(truth, top))
    for size in range(4):
        found = [set(one) for one in combinations(candidates, size) if _gives(truth, top, candidates, one)]
        if found:
            return [frozenset(one) for one in found]
    return []


def _candidates(truth: Mapping[Pair, float], top: float) -> Iterator[tuple[Fault, float]]:
    for node in sorted({node for pair in truth for node in pair}):
        best = max(value for pair, value in truth.items() if node in pair)
        if best < top:
            yield node, best
    yield from ((pair, value) for pair, value in truth.items() if value < top)


def _gives(
    truth: Mapping[Pair, float], top: float, levels: Mapping[Fault, float], chosen: Iterable[Fault]
) -> bool:  # fmt: skip
    faults = {fault: levels[fault] for fault in chosen}
    return all(value == min(faults.get(part, top) for part in (*pair, pair)) for pair, value in truth.items())


@dataclass(kw_only=True)
class Tally:
    """How a number of matrices of one kind were judged."""

    matrices: int = 0
    decided: int = 0  # the measured pairs leave one smallest explanation, and it is the truth
    exact: int = 0  # of those, all named and nobody else
    sound: int = 0  # of the rest, nobody wrongly blamed, and what shows is blamed or in doubt
    wronged: int = 0  # matrices in which somebody healthy was blamed

    def count(self, matrix: Matrix, found: Blame | None) -> None:
        """Count one judgement."""
        truth, named = frozenset(matrix.faults), accused(found)
        possible = explanations(matrix.truth)
        self.matrices += 1
        self.wronged += not named <= truth
        if possible == [truth]:
            self.decided += 1
            self.exact += named == truth
        else:
            shown = frozenset.intersection(*possible) & truth if possible else frozenset[Fault]()
            self.sound += named <= truth and shown <= named | doubted(found) and _doubt_is_said(possible, found)


def _doubt_is_said(possible: list[frozenset[Fault]], found: Blame | None) -> bool:
    """Where several explanations are as small, one of each is named or stands in an undecided set."""
    if len(possible) < 2:
        return True
    return all(one & (accused(found) | doubted(found)) for one in possible)


def tally(
    *, nodes: int, bad_nodes: int, bad_links: int, missing: float, noise: float, matrices: int, seed: int,
    thresholds: Thresholds,
) -> Tally:  # fmt: skip
    """Judge so many matrices of one kind; the same seed gives the same matrices."""
    source = random.Random(f"{seed}/{nodes}/{bad_nodes}/{bad_links}/{missing}/{noise}")
    counted = Tally()
    for _ in range(matrices):
        matrix = make_matrix(source, nodes, bad_nodes=bad_nodes, bad_links=bad_links, missing=missing)
        counted.count(matrix, judged(matrix, source, noise, thresholds))
    return counted
