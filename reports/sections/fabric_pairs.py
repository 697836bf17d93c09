"""Fabric, pair by pair: what is slow, who is to blame and what to do next."""

from collections import Counter
from collections.abc import Iterator

from ..layout import Part
from ..measured import Measured
from ..numbers import number_of, size
from ..pairs_seen import PairsSeen
from ..plain_text import listed, printable
from .fabric_matrix import pair_matrix
from .fabric_worst import undecided_sets, worst_pairs


def every_pair(measured: Measured, seen: PairsSeen) -> Part:
    """The part on pairs."""
    tables = (worst_pairs(seen), undecided_sets(seen))
    return Part(
        title="Every pair of nodes" if not seen.sampled else "Pairs of nodes",
        answer=" ".join(_answer(seen)),
        matrix=pair_matrix(measured, seen),
        tables=tuple(table for table in tables if table),
    )


def _answer(seen: PairsSeen) -> Iterator[str]:
    yield _measured_words(seen)
    yield from _without_value(seen)
    yield from _culprits(seen)
    blame, crowd = seen.blame, seen.blame.crowd
    if not (blame.nodes or blame.links or blame.undecided or blame.unsteady or crowd.split or crowd.unsampled):
        yield _none(seen)
    yield from _crowded(seen)
    if seen.sampled and not seen.blame.split:
        yield "A slow link between two nodes that did not meet does not show."


def _measured_words(seen: PairsSeen) -> str:
    count, good = len(seen.levels.of), f"a good pair reaches {seen.rate(1.0)} at {size(seen.figures.bytes)}"
    if count == 1:
        (pair,) = seen.levels.of
        return f"{seen.name(pair)}, the only pair, reaches {seen.rate(seen.level(pair).share)} at {_size(seen)}."
    if seen.sampled:
        met = _partners(seen)
        return (
            f"{count:,} of {number_of(seen.of_all, 'pair')} were measured, a hypercube's and those that settle doubts: "
            f"each node met {met} partners, not everybody; {good}."
        )
    if count < seen.of_all:
        return f"{count:,} of {number_of(seen.of_all, 'pair')} have a value; {good}."
    return f"All {number_of(count, 'pair')} were measured; {good}."


def _size(seen: PairsSeen) -> str:
    return size(seen.figures.bytes)


def _partners(seen: PairsSeen) -> str:
    met = Counter(node for pair in seen.levels.of for node in pair)
    counts = [met[node] for node in seen.nodes]
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _culprits(seen: PairsSeen) -> Iterator[str]:
    """Who is slow and what to do, at most three of a kind."""
    nodes = [f"{printable(each.node, 80)} ({seen.rate(each.share)})" for each in seen.blame.nodes if each.confirmed]
    if nodes:
        many = len(nodes) > 1
        yield (
            f"Slow with each partner: {listed(nodes, 3)}. Look at {'their' if many else 'its'} NICs, cables and PCIe "
            f"links; take {'them' if many else 'it'} out until mended."
        )
    links = [f"{seen.name(each.pair)} ({seen.rate(each.share)})" for each in seen.blame.links if each.pair]
    if links:
        yield (
            f"Slow though both ends do better with others: {listed(links, 3)}. Look at the path between: cables, "
            "switch ports, routes."
        )
    for doubt in seen.blame.undecided[:3]:
        yield f"Not told apart: {seen.one_of(doubt)} is slow. {seen.settling(doubt)}"
    if seen.blame.unsteady:
        names = listed(map(seen.name, seen.blame.unsteady), 3)
        yield f"Slow beside others and well alone: {names}. See what shares the path, then run again."


def _crowded(seen: PairsSeen) -> Iterator[str]:
    """Where too many are slow for single faults: levels of the fabric, contention, or that nothing tells."""
    crowd, measured = seen.blame.crowd, number_of(len(seen.blame.crowd.sampled), "such pair")
    if crowd.split:
        yield (
            f"{number_of(len(crowd.split), 'pair')} are slower than the best by more than {_loss(seen)}, and alone too "
            f"({len(crowd.shown)} of {measured} measured so): two levels of the fabric, not single faults. Compare "
            "with the cabling."
        )
    if crowd.unsampled:
        yield (
            f"{number_of(len(crowd.unsampled), 'pair')} were slow beside others, and too few of them were measured "
            "alone to tell levels of the fabric from contention."
        )
    if crowd.contended:
        yield (
            f"{number_of(len(crowd.contended), 'pair')} not measured alone were slow beside others only, as {measured} "
            "measured alone show: contention, not single faults."
        )


def _without_value(seen: PairsSeen) -> Iterator[str]:
    told = [f"{seen.name(pair)} ({printable(why, 80)})" for pair, why in sorted(seen.figures.missing.items())]
    if told:
        yield f"No value came of {listed(told, 3)}."


def _none(seen: PairsSeen) -> str:
    told = seen.levels.of.keys() - set(seen.blame.crowd.contended)
    pair = min(told, key=lambda one: (seen.level(one).share, one))
    if len(seen.levels.of) == 1:
        return "One pair has no other to be compared with: only a reference could tell whether it is slow."
    return f"None is slower by more than {_loss(seen)}; the slowest, {seen.name(pair)}, has {seen.share(pair)} of that."


def _loss(seen: PairsSeen) -> str:
    return f"{100 * (1 - seen.least):.0f} %"
