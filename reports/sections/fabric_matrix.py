"""Fabric: the matrix of all pairs of nodes, as the page's script draws it."""

import base64
import struct
from collections.abc import Iterator, Sequence

from ...fabric import pair_of
from ..colours import COLOURS
from ..layout import Mark, Matrix, Tick
from ..measured import Measured
from ..node_order import Order, node_order
from ..numbers import number_of, size
from ..pairs_seen import UNIT, PairsSeen
from ..plain_text import listed, natural, printable

MOST_NODES = 1024  # a matrix of 1.4 MB
_FULL = 65535  # of 16 bits; 0 is "not measured"
_FEWEST = 3  # nodes of a matrix: of two there is one pair


def pair_matrix(measured: Measured, seen: PairsSeen) -> Matrix | None:
    """The squares of all pairs, nodes in an order that shows the fabric; None for fewer than three nodes."""
    if len(seen.nodes) < _FEWEST:
        return None
    order = node_order(measured, seen)
    names = order.names[:MOST_NODES]
    place = {name: at for at, name in enumerate(names)}
    top = max(1.0, *(level.share for level in seen.levels.of.values()))
    left_out = f" {len(order.names) - MOST_NODES:,} more nodes are left out." if len(order.names) > MOST_NODES else ""
    marks = tuple(_marks(seen, place))
    return Matrix(
        title=_title(seen),
        names=tuple(printable(name, 80) for name in names),
        groups=order.groups if len(names) == len(order.names) else (),
        values=_packed(names, seen, top),
        top=top,
        usual=seen.levels.ceiling,
        alone=seen.levels.alone,
        unit=UNIT,
        colours=COLOURS,
        ticks=tuple(_ticks(seen, top)),
        key=tuple(_key(marks, whole=len(seen.levels.of) + len(seen.figures.missing) >= seen.of_all)),
        marks=marks,
        note=f"A square is a pair of nodes, all ranks of both, {size(seen.figures.bytes)}; retested pairs as they do "
        f"alone. Nodes stand {order.by}{_groups(order)}.{left_out}",
    )


def _groups(order: Order) -> str:
    return f": {listed((name for name, _ in order.groups), 8)}" if order.groups else ""


def _ticks(seen: PairsSeen, top: float) -> Iterator[Tick]:
    """Where on the scale nothing is, a pair begins to be slow, the usual is, and the best, where they are apart."""
    width = 10.0 * len(COLOURS)
    yield Tick(at=0, words="0")
    usual = width / top
    if top < 2:
        yield Tick(at=round(usual * seen.least, 1), words=f"slow below {seen.rate(seen.least)}", anchor="end")
    yield Tick(at=round(usual, 1), words=f"usual {seen.rate(1.0)}")
    if top > 1.6:
        yield Tick(at=width, words=f"best {seen.rate(top)}")


def _key(marks: Sequence[Mark], *, whole: bool) -> Iterator[tuple[str, str]]:
    kinds = {mark.kind for mark in marks}
    if "slow" in kinds:
        yield "slow", "stands out"
    if any(mark.retests for mark in marks):
        yield "retest", "measured again, alone"
    if "gap" in kinds:
        yield "gap", "tried, no value came"
    if not whole:
        yield "blank", "not measured"


def _title(seen: PairsSeen) -> str:
    outliers = sorted({node for each in seen.blame.nodes if (node := each.node)}, key=natural)
    outliers += [seen.name(each.pair) for each in seen.blame.links if each.pair]
    count, of_all = len(seen.levels.of), seen.of_all
    told = number_of(of_all, "pair") if count == of_all else f"{count:,} of {number_of(of_all, 'pair')}"
    outliers = outliers or [f"{seen.name(pair)}, beside others," for pair in seen.blame.unsteady]
    if outliers:
        return f"{told}: {listed((printable(one, 200) for one in outliers), 3)} {_stand(outliers)} out"
    if seen.blame.undecided:
        return f"{told}: {seen.one_of(seen.blame.undecided[0])} is slow"
    if seen.blame.split:
        return f"{told} show two levels of the fabric"
    return f"{told}, none stands out" if len(seen.levels.of) > 1 else told


def _stand(outliers: Sequence[str]) -> str:
    return "stands" if len(outliers) == 1 else "stand"


def _packed(names: Sequence[str], seen: PairsSeen, top: float) -> str:
    """The upper triangle row by row, 16 bits a pair, little endian, in base64: 1 to 65535 for 0 to `top`."""
    levels = seen.levels.of
    numbers = []
    for row, one in enumerate(names):
        for other in names[row + 1 :]:
            level = levels.get(pair_of(one, other))
            numbers.append(0 if level is None else max(1, round(_FULL * max(0.0, level.share / top))))
    return base64.b64encode(struct.pack(f"<{len(numbers)}H", *numbers)).decode()


def _marks(seen: PairsSeen, place: dict[str, int]) -> Iterator[Mark]:
    """The squares with something to say. Where the fabric has two levels, the slower one does not stand out."""
    split = set(seen.blame.split)
    for pair in sorted(seen.levels.of.keys() | seen.figures.missing.keys()):
        if not set(pair) <= place.keys():
            continue
        row, column = sorted(place[node] for node in pair)
        level = seen.levels.of.get(pair)
        kind = "gap" if level is None else "slow" if seen.stands_out(pair) and pair not in split else ""
        retests = level.retests if level else 0
        if kind or retests:
            yield Mark(row=row, column=column, kind=kind, retests=retests)
