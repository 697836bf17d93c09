"""Runs that took nodes into an accepted one: which records stand for the nodes that are promised now, and from when.

What was measured of a node that another stands in for stays in the directory as evidence, and is not judged. Nor is
what was measured of the whole cluster while that node was part of it.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime

import msgspec

from ..evidence import AnyRecord, Event, Problem, Run, RunHeader, Segment, TrialPlan
from .scope import nodes_of
from .verdict import Measured
from .words import several


def standing(run: Run) -> Run:
    """The run without the records of nodes that are no longer what they were; the run itself where none is left out."""
    if not any(join.former or join.again for join in run.header.joins):
        return run
    former = _Former(run)
    return msgspec.structs.replace(
        run,
        plans=[kept for plan in run.plans if (kept := former.of_plan(plan)) is not None],
        facts=[record for record in run.facts if former.stands(record)],
        measurements=[record for record in run.measurements if former.stands(record)],
        not_measured=[record for record in run.not_measured if former.stands(record)],
        events=[record for record in run.events if former.stands(record)],
    )


class _Former:
    """Who is no longer what he was, by record number: up to a join's last number all for whom a newcomer stands."""

    def __init__(self, run: Run) -> None:
        joins = sorted(run.header.joins, key=lambda join: join.last_number)
        self._until = [join.last_number for join in joins]
        self._again = max((join.last_number for join in joins if join.again), default=0)
        self._gone = [frozenset(node.node for join in joins[at:] for node in join.former) for at in range(len(joins))]
        self._mixed = {plan.trial for plan in run.plans if self._of(plan) & _ranked(plan)}

    def _of(self, record: AnyRecord) -> frozenset[str]:
        at = bisect_left(self._until, record.number or 0)
        return self._gone[at] if at < len(self._gone) else frozenset()

    def stands(self, record: AnyRecord) -> bool:
        """Whether a record is of nodes that are still what they were. A trial's end tells how it ended for all."""
        if (record.number or 0) <= self._again:
            return False
        gone = self._of(record)
        if not gone or isinstance(record, TrialPlan):
            return True
        nodes = nodes_of(record.subject)
        if nodes or isinstance(record, Event):
            return not gone & set(nodes)
        return record.subject != "cluster" or record.trial not in self._mixed

    def of_plan(self, plan: TrialPlan) -> TrialPlan | None:
        """The plan as far as it stands; None where nothing of it does."""
        if (plan.number or 0) <= self._again:
            return None
        gone = self._of(plan)
        if plan.trial not in self._mixed and not any(gone & set(nodes_of(fill.subject)) for fill in plan.fills):
            return plan
        ranks = tuple(rank for rank in plan.ranks if not gone & set(nodes_of(rank)))
        fills = tuple(f for f in plan.fills if f.subject != "cluster" and not gone & set(nodes_of(f.subject)))
        return msgspec.structs.replace(plan, ranks=ranks, fills=fills) if ranks else None


def _ranked(plan: TrialPlan) -> set[str]:
    return {node for rank in plan.ranks for node in nodes_of(rank)}


def epoch_of(header: RunHeader, number: int) -> int:
    """0 for a record of the first accepted run, 1 for one of the first join, and so on."""
    return sum(join.last_number < number for join in header.joins)


def taken_in(header: RunHeader, node: str) -> int:
    """The epoch in which a promised node was taken in."""
    epochs = [at for at, join in enumerate(header.joins, 1) if join.again or node in join.newcomers]
    return max(epochs, default=0)


def members(header: RunHeader, epoch: int) -> frozenset[str]:
    """The promised nodes that were measured in an epoch as what they are now."""
    names = {node.node for node in header.promised}
    part = {*header.joins[epoch - 1].newcomers, *header.joins[epoch - 1].partners} if epoch else names
    taken = {name: taken_in(header, name) for name in names}
    return frozenset(name for name in names if taken[name] == epoch or (name in part and taken[name] < epoch))


def join_problems(header: RunHeader) -> Iterator[Problem]:
    """What run.json says of joins and cannot be: nodes that nobody promised, stand-ins for nobody."""
    known = {node.node for node in header.known}
    ends = [join.last_number for join in header.joins]
    if ends != sorted(set(ends)):
        yield Problem(kind="duplicate", place="run.json", detail="its joins do not follow one another")
    for join in header.joins:
        strange = {*join.newcomers, *join.partners} - known
        strange |= join.replaces.keys() - set(join.newcomers)
        strange |= {node.node for node in join.former} ^ set(join.replaces.values())
        strange |= set(join.newcomers) & set(join.partners)
        if strange or not join.newcomers or not 1 <= join.starts < max(2, len(header.segments)):
            detail = f"a join that cannot be: {several(sorted(strange), 3) if strange else 'of nobody, or never begun'}"
            yield Problem(kind="foreign", place="run.json", detail=detail)


def measured_when(header: RunHeader) -> tuple[Measured, ...]:
    """Of each promised node, the starts of the run that it took part in as what it is now. Empty for a run that was
    started once: it was then."""
    if len(header.segments) < 2:
        return ()
    return tuple(_of_node(header, node.node) for node in header.promised)


def _of_node(header: RunHeader, node: str) -> Measured:
    epoch = taken_in(header, node)
    first = header.joins[epoch - 1].starts if epoch else 0
    starts = tuple(segment.start for segment in header.segments[first:] if _was_there(segment, node))
    former = header.joins[epoch - 1].replaces.get(node) if epoch else None
    return Measured(
        node=node,
        starts=starts,
        accepted_in=header.joins[epoch].run_id if epoch < len(header.joins) else None,
        replaces=former,
        hardware_changed=_changed(header, node, former, first),
    )


def _was_there(segment: Segment, node: str) -> bool:
    return node in segment.software or node in segment.hardware


def _changed(header: RunHeader, node: str, former: str | None, first: int) -> bool | None:
    """Whether a stand-in has other hardware than whom it stands for; None for nobody, or where nobody knows."""
    before = [s.hardware[former] for s in header.segments[:first] if former in s.hardware] if former else []
    now = [segment.hardware[node] for segment in header.segments[first:] if node in segment.hardware]
    return now[0] != before[-1] if before and now else None


def told_when(header: RunHeader) -> str:
    """Which node was measured when, in one sentence; empty where nobody joined an accepted run."""
    if not header.joins:
        return ""
    groups: dict[tuple[datetime | None, str], list[str]] = {}
    for each in measured_when(header):
        groups.setdefault((each.starts[0] if each.starts else None, _how(each)), []).append(each.node)
    parts = [f"{several(nodes, 4)}{how} {_day(at)}" for (at, how), nodes in groups.items()]
    return f"Not measured at one time: {'; '.join(parts)}."


def _how(each: Measured) -> str:
    if each.replaces is None:
        return ""
    if each.replaces != each.node:
        return f" (in place of {each.replaces})"
    return " (its hardware changed)" if each.hardware_changed else " (again)"


def _day(at: datetime | None) -> str:
    return f"on {at:%Y-%m-%d %H:%M} UTC" if at else "never"
