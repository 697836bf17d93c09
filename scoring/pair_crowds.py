"""What is said of the cluster where too many pairs are slow for single faults: its levels, or that nothing tells."""

import msgspec

from ..fabric import Blame
from .pairs import PairFigures
from .verdict import Finding
from .words import counted, figure, percent, several

_MOST_NAMED = 3


def of_crowd(blank: Finding, pairs: PairFigures, blame: Blame, most_trials: int) -> Finding | None:
    """A finding on the cluster, where slow pairs do not stand for themselves; `blank` is of the cluster."""
    crowd = blame.crowd
    if not (crowd.split or crowd.unsampled):
        return None
    shown = pairs.evidence(crowd.shown if crowd.split else crowd.unsampled)[:most_trials]
    expected = f"pairs within {percent(blame.levels.thresholds.effect)} of good ones"
    told = msgspec.structs.replace(blank, metric=None, params={}, unit="", expected=expected, evidence=shown)
    return _levels(told, pairs, blame) if crowd.split else _not_told(told, blame)


def contention(blame: Blame | None) -> str:
    """What is to be added to a finding that no link is slow: pairs that were slow beside others, and why they are not
    blamed; nothing where there are none."""
    if blame is None or not blame.crowd.contended:
        return ""
    crowd = blame.crowd
    slow = sum(pair in crowd.single for pair in crowd.sampled)
    return (
        f"; {counted(len(crowd.contended), 'pair')} more {_was(len(crowd.contended))} slow beside others and not "
        f"measured alone: of {len(crowd.sampled)} such pairs that were, {slow or 'none'} {_is(slow)} slow alone"
    )


def _levels(blank: Finding, pairs: PairFigures, blame: Blame) -> Finding:
    crowd, every = blame.crowd, len(blame.levels.of)
    slowest = sorted(crowd.shown, key=lambda pair: blame.levels.of[pair].share)
    low = figure(blame.levels.of[slowest[0]].share * pairs.ceiling(), "GB/s")
    good = figure(pairs.ceiling(), "GB/s")
    alone = f"{len(crowd.shown)} of {len(crowd.sampled)} measured alone are slow there too"
    names = several([pairs.subjects.get(pair) or "~".join(pair) for pair in slowest], _MOST_NAMED)
    return msgspec.structs.replace(
        blank,
        observed=f"{len(crowd.split)} of {counted(every, 'pair')} slow",
        confidence="medium",
        detail=f"{len(crowd.split)} of {counted(every, 'pair')} are slower than good ones, and {alone} ({names}): "
        "levels of the fabric, not single faults",
        action="Compare the slow pairs with the cabling: nodes on different leaves, or an oversubscribed level.",
        statement=f"The fabric has levels: {len(crowd.split)} of {counted(every, 'pair')} of nodes are slower than "
        f"good ones ({good}) by more than {percent(blame.levels.thresholds.effect)}, down to {low} ({names}), and "
        f"{alone}. So many are no single faults: nodes on different leaves, or an oversubscribed level.",
    )


def _not_told(blank: Finding, blame: Blame) -> Finding:
    crowd, every = blame.crowd, len(blame.levels.of)
    wanted = len(crowd.sampled) + crowd.lacking
    said = (
        f"{len(crowd.unsampled)} of {counted(every, 'pair')} were slow beside others, and of {wanted} wanted "
        f"{len(crowd.sampled)} {_was(len(crowd.sampled))} measured alone: nothing tells levels of the fabric from "
        "what pairs cost each other"
    )
    return msgspec.structs.replace(
        blank,
        reason="not_retested",
        confidence="low",
        detail=said,
        action="Run pairs again with room for retests (most_retests): pairs that are slow alone too show levels.",
        statement=f"Not known of the fabric: {said}.",
    )


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _is(count: int) -> str:
    return "is" if count <= 1 else "are"
