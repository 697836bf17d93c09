"""From the results of ranks to the outcome of a trial: which failure was the cause, and which only followed."""

from .orders import PartResult, RankResult
from .stacks import AT
from .trials import Finished, Outcome, Raised, TimedOut, Trial, WorkerLost


def merged(trial: Trial, parts: list[PartResult], lost_nodes: tuple[str, ...]) -> Outcome:
    """The outcome of a trial. A death comes first: when one rank of a collective dies its peers raise or wait. Then the
    deadline: where one node ends its late ranks, their peers elsewhere raise. Then an exception, first of all one that
    was not raised inside a collective: those may only follow."""
    results = {rank.subject: rank for part in parts for rank in part.ranks}
    ordered = [results[rank.subject] for rank in trial.ranks if rank.subject in results]
    readings = tuple(reading for rank in ordered for reading in rank.readings)
    died = _of(ordered, "died")
    if lost_nodes:
        return WorkerLost(subjects=lost_nodes, message="the node's worker is gone", readings=readings)
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


def _of(ranks: list[RankResult], fate: str) -> list[RankResult]:
    return [rank for rank in ranks if rank.fate == fate]


def _names(ranks: list[RankResult]) -> tuple[str, ...]:
    return tuple(rank.subject for rank in ranks)


def _culprits(late: list[RankResult]) -> list[RankResult]:
    """Of ranks of a collective that were late together, those that were stopped or stuck in the kernel; else those
    whose stack was in their own work, not in a collective as the others'; all where there is no telling."""
    held = [rank for rank in late if rank.stuck or rank.message.startswith(("stopped", "in the kernel"))]
    return held or [rank for rank in late if rank.message.startswith(AT)] or late
