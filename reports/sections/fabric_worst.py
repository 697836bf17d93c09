"""Fabric: the slowest pairs with their retests, and the sets of which one is slow."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from ...fabric import Pair
from ..layout import Cell, Column, Table, number, text
from ..numbers import figure, number_of
from ..pairs_seen import UNIT, PairsSeen
from ..tables import MOST_ROWS

_OF_ONE_KIND = 3  # rows that nobody measured again and that blame the same


def worst_pairs(seen: PairsSeen) -> Table | None:
    """Pairs that stand out, the worst first; of many alike those that were measured again. None without any."""
    slow = sorted((p for p in seen.levels.of if seen.stands_out(p)), key=lambda p: (seen.level(p).share, p))
    shown = list(_telling(seen, slow))[:MOST_ROWS]
    said: set[str] = set()
    if not shown:
        return None
    heads = ("pair", "beside others", "retests, alone", "share of usual", "to blame", "what next")
    return Table(
        caption="The slowest pairs and their retests",
        columns=tuple(Column(title=head, numeric=place in (1, 3)) for place, head in enumerate(heads)),
        rows=tuple(_row(seen, pair, said) for pair in shown),
        note=" ".join(_left_out(seen, len(slow) - len(shown))),
    )


def _telling(seen: PairsSeen, slow: Sequence[Pair]) -> Iterator[Pair]:
    """Each retested pair, and a few of those that blame the same node or level."""
    bare: Counter[str] = Counter()
    for pair in slow:
        blamed = seen.blamed(pair)[0]
        bare[blamed] += not seen.level(pair).retests
        if seen.level(pair).retests or bare[blamed] <= _OF_ONE_KIND:
            yield pair


def _row(seen: PairsSeen, pair: Pair, said: set[str]) -> tuple[Cell, ...]:
    """`said`: what the rows above tell to do, told once."""
    first, again, share = seen.beside.get(pair), seen.alone.get(pair), seen.level(pair).share
    blamed, todo = seen.blamed(pair)
    one = statistics.median(first) if first else None
    shown = "as above" if todo in said else todo or "\N{EM DASH}"
    said |= {todo} - {""}
    return (
        text(seen.name(pair), code=True),
        number(one, figure(one, UNIT)),
        text(_retests(again)),
        number(share, seen.share(pair), tone="fail" if share < seen.least else ""),
        text(blamed),
        text(shown),
    )


def _retests(again: Sequence[float] | None) -> str:
    if not again:
        return "not retested"
    return f"{', '.join(figure(one) for one in again)} {UNIT}"


def _left_out(seen: PairsSeen, count: int) -> Iterator[str]:
    if count > 0:
        yield f"{number_of(count, 'pair')} more, of nodes named here or less slow: `hwlottery export RUN --format csv`."
    if controls := seen.controls:
        middle = statistics.median(statistics.median(seen.alone[pair]) for pair in controls)
        reach = f"{figure(middle, UNIT)}" if len(controls) == 1 else f"{figure(middle, UNIT)} on their median"
        yield f"{number_of(len(controls), 'good pair')} measured alone to compare: {reach}."


def undecided_sets(seen: PairsSeen) -> Table | None:
    """Sets of which one is slow, with what would tell which; None without any."""
    if not seen.blame.undecided:
        return None
    rows = tuple(
        (
            text(seen.one_of(doubt).removeprefix("one of ")),
            text(seen.name(doubt.shown_by), code=True),
            number(doubt.share, seen.share(doubt.shown_by)),
            text("yes" if doubt.confirmed else "no"),
            text(seen.settling(doubt)),
        )
        for doubt in seen.blame.undecided[:MOST_ROWS]
    )
    heads = ("one of these is slow", "shown by", "share of usual", "seen again alone", "what next")
    columns = tuple(Column(title=head, numeric=head == "share of usual") for head in heads)
    return Table(caption="Not told apart", columns=columns, rows=rows)
