"""What a run that is gone on with has brought so far: trials that need not run again, and what each node was."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ..cluster import Outcome
from ..evidence import Joined, Run, RunHeader, Segment, TrialPlan, parse_subject
from .trial_records import recorded_outcomes


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """`outcomes` of ended trials by trial id; `took_part` names by probe the nodes of those trials."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    took_part: Mapping[str, frozenset[str]] = field(default_factory=dict)


def earlier_of(run: Run, header: RunHeader) -> Earlier:
    """What of a run's records stands for those who take part now.

    Of an accepted run that is joined, nothing that a newcomer had a part in: it was another node, or is to be measured
    once more.
    """
    join = header.joins[-1] if header.joins else None
    standing = {plan.trial: plan for plan in run.plans if plan.trial and not _superseded(plan, join)}
    outcomes = {trial: outcome for trial, outcome in recorded_outcomes(run).items() if trial in standing}
    took_part: dict[str, frozenset[str]] = {}
    for trial in outcomes:
        plan = standing[trial]
        took_part[plan.probe] = took_part.get(plan.probe, frozenset()) | _nodes_of(plan)
    return Earlier(outcomes=outcomes, took_part=took_part)


def _superseded(plan: TrialPlan, join: Joined | None) -> bool:
    if join is None or (plan.number or 0) > join.last_number:
        return False
    return join.again or bool(_nodes_of(plan) & set(join.newcomers))


def _nodes_of(plan: TrialPlan) -> frozenset[str]:
    return frozenset(node for rank in plan.ranks for node in parse_subject(rank).nodes)


def last_seen(header: RunHeader) -> Segment | None:
    """The last start, with what software and hardware each node showed when it was last there; None without a start.

    A newcomer counts from its join on: what was known by its name before was another node.
    """
    if not header.segments:
        return None
    join = header.joins[-1] if header.joins else None
    software: dict[str, dict[str, str]] = {}
    hardware: dict[str, str] = {}
    for place, segment in enumerate(header.segments):
        new = set(join.newcomers) if join is not None and place < join.starts else set()
        software |= {node: found for node, found in segment.software.items() if node not in new}
        hardware |= {node: found for node, found in segment.hardware.items() if node not in new}
    return msgspec.structs.replace(header.segments[-1], software=software, hardware=hardware)
