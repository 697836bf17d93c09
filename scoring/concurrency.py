"""What pairs keep of their lone bandwidth when all talk at once: below one, some level of the fabric is shared."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..evidence import parse_subject
from .values import Value
from .words import counted

if TYPE_CHECKING:
    from .derived import Figures

BUSBW = "all_reduce.busbw"
FEWEST_PAIRS = 3
FEWEST_NODES = 4  # of fewer no two pairs run at once
GOOD = 0.85  # of the lone pairs near the top: a pair that is slow alone is slow for another reason


def concurrency_kept(figures: Figures, _subject: str) -> list[Value]:
    """The median over good pairs of their bandwidth beside others over that alone, at the largest size.

    Attempt 1 of a pair ran beside others, later ones alone. Not measured with fewer than three such pairs.
    """
    if len(figures.header.promised) < FEWEST_NODES:
        return [_none("unsupported", f"needs {FEWEST_NODES} nodes: with fewer no two pairs run at once")]
    both = [found for values in _by_level(figures).values() for found in _both_ways(values)]
    if len(both) < FEWEST_PAIRS:
        known = counted(len(both), "good pair")
        return [_none("not_returned", f"{known} measured both beside others and alone, {FEWEST_PAIRS} are wanted")]
    kept = [together / alone for together, alone, _ in both]
    trials = tuple(dict.fromkeys(trial for _, _, value in both for trial in value.trials))
    size = both[0][2].params.get("bytes", 0)
    return [Value(params={"bytes": size}, value=statistics.median(kept), trials=trials, samples=len(kept))]


def _by_level(figures: Figures) -> dict[str, list[Value]]:
    """The pairs' values at the largest size, by the level of the fabric that their params name."""
    subjects = [one for one in figures.measured.subjects(BUSBW) if _is_pair(one)]
    values = [value for subject in subjects for value in figures.of(BUSBW, subject)]
    sizes = [size for value in values if isinstance(size := value.params.get("bytes"), int)]
    largest = max(sizes, default=0)
    found: dict[str, list[Value]] = {}
    for value in values:
        if value.params.get("bytes") == largest:
            found.setdefault(str(value.params.get("level", "")), []).append(value)
    return found


def _is_pair(subject: str) -> bool:
    try:
        return parse_subject(subject).kind == "pair"
    except ValueError:
        return False


def _both_ways(values: list[Value]) -> Iterator[tuple[float, float, Value]]:
    """Beside others and alone, of the pairs that are good alone."""
    found = []
    for value in values:
        together = [one.value for one in value.by_attempt if one.number == 1 and one.value > 0]
        alone = [one.value for one in value.by_attempt if one.number > 1 and one.value > 0]
        if value.value is not None and together and alone:
            found.append((together[0], statistics.median(alone), value))
    top = max((alone for _, alone, _ in found), default=0.0)
    yield from (one for one in found if one[1] >= GOOD * top)


def _none(reason: str, detail: str) -> Value:
    return Value(params={}, value=None, reason=reason, detail=detail)
