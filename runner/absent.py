"""Trials that name nodes which did not come back in this start of a run."""

from collections.abc import Set as AbstractSet

import msgspec

from ..cluster import Trial
from ..evidence import parse_subject


def absent_from(trial: Trial, absent: AbstractSet[str]) -> tuple[str, ...]:
    """The nodes of a trial that are absent, each once."""
    return tuple(dict.fromkeys(rank.node for rank in trial.ranks if rank.node in absent))


def with_those_here(trial: Trial, absent: AbstractSet[str]) -> Trial:
    """A trial of ranks that work each for itself, without those of absent nodes, where any other is left.

    A collective stays as it is: without a rank it is another one, and its probe decides which.
    """
    ranks = tuple(rank for rank in trial.ranks if rank.node not in absent)
    if trial.collective or not ranks or len(ranks) == len(trial.ranks):
        return trial
    fills = tuple(fill for fill in trial.fills if not absent & set(parse_subject(fill.subject).nodes))
    return msgspec.structs.replace(trial, ranks=ranks, fills=fills)
