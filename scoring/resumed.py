"""Runs that were resumed: figures taken with unlike software, methods or hardware must not stand beside each other."""

from collections.abc import Iterator
from datetime import datetime

from ..evidence import Problem, Run, Segment
from .scope import nodes_of
from .words import several


def mixed_figures(run: Run) -> Iterator[Problem]:
    """Trials that ended before their node's software or hardware, or their probe's method, became another one."""
    segments = sorted(run.header.segments, key=lambda segment: segment.start)
    if len(segments) < 2:
        return
    nodes = {
        node.node: _last_change([_of_node(s, node.node) for s in segments], segments) for node in run.header.promised
    }
    probes = {plan.probe for plan in run.plans}
    methods = {probe: _last_change([s.methods.get(probe) for s in segments], segments) for probe in probes}
    ended = {event.trial: event.time for event in run.events if event.kind == "trial_ended"}
    old: set[str] = set()
    for plan in run.plans:
        at = ended.get(plan.trial)
        if at is None:
            continue
        if _before(at, methods[plan.probe]):
            old.add(plan.probe)
        old |= {node for rank in plan.ranks for node in nodes_of(rank) if _before(at, nodes.get(node))}
    if old:
        detail = "figures of unlike software, methods or hardware stand beside each other: " + several(sorted(old), 3)
        yield Problem(kind="foreign", place="run.json", detail=detail)


def _of_node(segment: Segment, node: str) -> object:
    """What a start of the run found on a node; None where the node was not there."""
    software, hardware = segment.software.get(node), segment.hardware.get(node)
    return None if software is None and hardware is None else (software, hardware)


def _last_change(found: list[object], segments: list[Segment]) -> datetime | None:
    """The start of the last segment that found something else than the one before it that found anything."""
    changed: datetime | None = None
    before: object = None
    for now, segment in zip(found, segments, strict=True):
        if now is not None and before is not None and now != before:
            changed = segment.start
        before = now if now is not None else before
    return changed


def _before(at: datetime, change: datetime | None) -> bool:
    return change is not None and at <= change
