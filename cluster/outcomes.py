"""From the results of ranks to the outcome of a trial: which failure was the cause, and which only followed."""

from collections.abc import Mapping

from .orders import PartResult, RankResult
from .stacks import AT
from .trials import Finished, Outcome, Raised, TimedOut, Trial, WorkerLost


def merged(trial: Trial, parts: list[PartResult], lost: Mapping[str, str]) -> Outcome:
    """The outcome of a trial; `lost` says of each node that is lost why. A death comes first: when one rank of a
    collective dies its peers raise or wait. Then the deadline: where one node ends its late ranks, their peers
    elsewhere raise. Then an exception, first of all one that was not raised inside a collective: those may only
    follow."""
    results = {rank.subject: rank for part in parts for rank in part.ranks}
    ordered = [results[rank.subject] for rank in trial.ranks if rank.subject in results]
    readings = tuple(reading for rank in ordered for reading in rank.readings)
    died = _of(ordered, "died")
    if lost:
        return WorkerLost(subjects=tuple(lost), message=_why(lost), readings=readings)
    if died:
        return WorkerLost(subjects=_names(died), message=died[0].message, readings=readings)
    raised = sorted(_of(ordered, "raised"), key=lambda rank: rank.follows)
    overdue = trial.collective and _of(ordered, "timed_out")
    if raised and not overdue:
        return Raised(subject=raised[0].subject, message=raised[0].message, readings=readings)
    late = _of(ordered, "timed_out") + _of(ordered, "ended")
    if late:
        culprits = _culprits(late) if trial.collective else late
        return TimedOut(
            subjects=_names(culprits),
            stuck=tuple(rank.subject for rank in late if rank.stuck),
            doing={rank.subject: rank.message for rank in culprits if rank.message},
            readings=readings,
        )
    return Finished(readings=readings)


def _why(lost: Mapping[str, str]) -> str:
    """Of several nodes that are lost, each by its name."""
    return "; ".join(f"{node}: {why}" for node, why in lost.items()) if len(lost) > 1 else next(iter(lost.values()))


def _of(ranks: list[RankResult], fate: str) -> list[RankResult]:
    return [rank for rank in ranks if rank.fate == fate]


def _names(ranks: list[RankResult]) -> tuple[str, ...]:
    return tuple(rank.subject for rank in ranks)


def _culprits(late: list[RankResult]) -> list[RankResult]:
    """Of ranks of a collective that were late together, those that were stopped or stuck in the kernel; else those
    whose stack was in their own work, not in a collective as the others'; all where there is no telling."""
    held = [rank for rank in late if rank.stuck or rank.message.startswith(("stopped", "in the kernel"))]
    return held or [rank for rank in late if rank.message.startswith(AT)] or late
