"""Many slow links at once: a structure of the fabric, or what pairs cost each other in the tournament.

A few slow links are measured again one by one, alone. Of many a sample is, from the slowest to the fastest. Only where
the sample is slow alone too is the fabric said to have levels; where it is well alone, the figures of the tournament
show contention, and the pairs that were not measured alone are neither blamed nor called good by their own figure.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .levels import Levels, Pair

SAMPLE = 8  # pairs
MOST_SINGLE = 32  # slow links that are all measured again one by one: more would take all retests there are
LEAST_RETESTS = 2  # of a pair, before it is slow alone; once well is well


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """Slow links, sorted out. `single`: each stands for itself. `unsampled`: too many for that, and too few of them
    were measured alone, `lacking` more are wanted. `split`: levels of the fabric, as `shown` were slow alone too.
    `contended`: slow beside others and never measured alone, while of the sample few or none is slow alone. `sampled`:
    all that were measured alone, in each of these cases."""

    single: tuple[Pair, ...] = ()
    unsampled: tuple[Pair, ...] = ()
    lacking: int = 0
    split: tuple[Pair, ...] = ()
    shown: tuple[Pair, ...] = ()
    contended: tuple[Pair, ...] = ()
    sampled: tuple[Pair, ...] = ()


def crowd_of(
    levels: Levels, slow: Sequence[Pair], confirmed: Collection[Pair], well: Sequence[Pair], most: float
) -> Crowd:  # fmt: skip
    """Sort slow links out. `well`: links that were slow at first and are not alone. More than `most` are no set of
    single faults; how many there are the sample's share of confirmed ones tells."""
    if len(slow) <= min(most, MOST_SINGLE):
        return Crowd(single=tuple(slow))
    alone = [pair for pair in slow if levels.of[pair].retests >= LEAST_RETESTS]
    every, sampled = len(slow) + len(well), (*alone, *well)
    if len(sampled) < min(SAMPLE, every):
        return Crowd(unsampled=tuple(slow), lacking=min(SAMPLE, every) - len(sampled), sampled=sampled)
    shown = tuple(pair for pair in alone if pair in confirmed)
    if every * len(shown) / len(sampled) > most:
        return Crowd(split=tuple(slow), shown=shown, sampled=sampled)
    return _contention(levels, slow, alone, shown, sampled)


def _contention(
    levels: Levels, slow: Sequence[Pair], alone: Sequence[Pair], shown: Sequence[Pair], sampled: tuple[Pair, ...]
) -> Crowd:  # fmt: skip
    """Those measured alone stand for themselves, and so does who is no faster than one that is slow alone."""
    bar = max((first for pair in shown if (first := levels.of[pair].first) is not None), default=0.0)
    single = [pair for pair in slow if pair in alone or (levels.of[pair].first or 0.0) <= bar]
    return Crowd(
        single=tuple(single), contended=tuple(pair for pair in slow if pair not in single), sampled=sampled
    )  # fmt: skip


def sample_of(levels: Levels, crowd: Crowd, tried: Collection[Pair], given_up: Collection[Pair]) -> list[Pair]:
    """The pairs of a crowd to measure alone once more: those begun with, then fresh ones, evenly from the slowest."""
    left = [pair for pair in crowd.unsampled if pair not in given_up and pair not in crowd.sampled]
    begun = [pair for pair in left if pair in tried]
    fresh = sorted((p for p in left if p not in tried), key=lambda pair: (levels.of[pair].first or 0.0, pair))
    count = min(max(0, crowd.lacking - len(begun)), len(fresh))
    last = len(fresh) - 1
    return begun + [fresh[round(place * last / max(1, count - 1))] for place in range(count)]
