"""Which pairs to measure again, alone, before anybody is blamed.

A suspect node meets two partners that do well with others; a suspect link is measured again, and so is each of its
ends with the best other partner; of too many slow links a sample is; an undecided set is measured with what would
settle it. A few good pairs are measured
alone too, always: what a pair does alone has to be known to judge a retest by it, and how it repeats itself to say how
sure any figure is.
"""

from collections.abc import Iterable, Iterator, Mapping

from .crowds import sample_of
from .judgement import Blame, Culprit, Undecided
from .levels import Levels, Pair

REPEATS = 3  # retests of a pair at most: two where they are clear
CONTROLS = 3
CONTROL_REPEATS = 2  # of each, where nobody is suspected
FEWEST_AT_ONCE = 4  # nodes; of fewer no two pairs run at once, and none has to be told from itself alone
_PARTNERS = 2  # that a suspect node is measured again with


def wanted_retests(found: Blame, tried: Mapping[Pair, int]) -> list[Pair]:
    """The pairs to measure once more; none when all is settled or has been tried often enough.

    `tried` counts the retests made so far, those that brought no value too.
    """
    return retests_of_parts([found], found.levels, tried)


def retests_of_parts(parts: Iterable[Blame], whole: Levels, tried: Mapping[Pair, int]) -> list[Pair]:
    """The same where parts of the fabric that never meet (rails) are judged one by one: suspects of each part, and the
    good pairs to compare with of the whole."""
    suspects = list(dict.fromkeys(pair for part in parts for pair in _of_suspects(part, tried)))
    again = [pair for pair in suspects if tried.get(pair, 0) < REPEATS]
    if not again and len(whole.nodes) < FEWEST_AT_ONCE:
        return []
    times = REPEATS if again else CONTROL_REPEATS
    return again + [pair for pair in controls(whole) if tried.get(pair, 0) < times and pair not in again]


def controls(levels: Levels) -> list[Pair]:
    """Good pairs nearest the ceiling, disjoint: neither flattered by noise nor spoilt by a fault."""
    seen = {pair: level for pair, level in levels.of.items() if level.first is not None}
    good = [pair for pair, level in seen.items() if level.share >= 1 - levels.thresholds.effect]
    chosen: list[Pair] = []
    for pair in sorted(good, key=lambda pair: (abs((seen[pair].first or 0.0) - 1), pair)):
        if len(chosen) < CONTROLS and not any(set(pair) & set(other) for other in chosen):
            chosen.append(pair)
    return chosen


def _of_suspects(found: Blame, tried: Mapping[Pair, int]) -> Iterator[Pair]:
    for culprit in found.nodes:
        if not culprit.confirmed:
            yield from _of_node(found, culprit, tried)
    for culprit in found.links:
        if not culprit.confirmed:
            yield from _of_link(found, culprit, tried)
    for undecided in found.undecided:
        yield from _of_undecided(undecided)
    given_up = {pair for pair, times in tried.items() if times >= REPEATS}
    yield from sample_of(found.levels, found.crowd, {pair for pair, times in tried.items() if times}, given_up)


def _of_node(found: Blame, culprit: Culprit, tried: Mapping[Pair, int]) -> list[Pair]:
    """Its two best pairs with better partners, which would clear it first; those that were begun with are kept, and
    what is best now is added."""
    of = found.levels.of
    ordered = sorted(culprit.evidence, key=lambda pair: (not tried.get(pair), -of[pair].share, pair))
    best = max(culprit.evidence, key=lambda pair: of[pair].share)
    return list(dict.fromkeys([*ordered[:_PARTNERS], best]))


def _of_link(found: Blame, culprit: Culprit, tried: Mapping[Pair, int]) -> Iterator[Pair]:
    assert culprit.pair is not None
    yield culprit.pair
    for node in culprit.pair:
        others = [pair for pair in found.levels.of if node in pair and pair != culprit.pair]
        best = max(others, key=lambda pair: found.levels.of[pair].share, default=None)
        if best is not None and not any(tried.get(pair, 0) for pair in others):
            yield best


def _of_undecided(undecided: Undecided) -> Iterator[Pair]:
    if not undecided.confirmed:
        yield undecided.shown_by
    yield from undecided.settle
