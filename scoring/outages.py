"""Outages of nodes as intervals: what the run found, what tickets say, and what replacements took."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from ..evidence import Run
from .happenings import SILENCE
from .provider_record import ProviderRecord
from .scope import nodes_of
from .verdict import Finding, Verdict


class Outage(Struct, frozen=True, kw_only=True):
    """A node that could not be used as promised, from `start` to `end`; without an end it goes on. `source`: the run,
    or a ticket's id."""

    node: str
    start: datetime
    end: datetime | None
    why: str
    source: str
    clause: str | None


def outages(run: Run, verdict: Verdict, record: ProviderRecord, seen_since: Mapping[str, datetime]) -> list[Outage]:
    """Every outage, the earliest first. `seen_since`: when each trial that a finding rests on began to measure.

    A run shows an outage of a node that a required check fails on and that has to be taken out: from when that was
    first seen to the end of the run, and no longer, for nothing is known of later.
    """
    found = [*_of_run(run, verdict, record, seen_since), *_of_tickets(record), *_of_replacements(record)]
    return sorted(found, key=lambda each: (each.start, each.node, each.source))


def hours(found: Iterable[Outage], now: datetime) -> float:
    """The hours that outages cover together: where two overlap, once. Those that go on count up to `now`."""
    total, covered = timedelta(), None
    for each in sorted(found, key=lambda one: one.start):
        start, end = max(each.start, covered or each.start), each.end or now
        if end > start:
            total += end - start
            covered = end
    return total / timedelta(hours=1)


def claim_by(found: Outage, window_days: int | None) -> date | None:
    """The last day on which an outage may be claimed: so many days after its end. None while it goes on, and where no
    window is stated."""
    if window_days is None or found.end is None:
        return None
    return found.end.astimezone(UTC).date() + timedelta(days=window_days)


def _of_run(run: Run, verdict: Verdict, record: ProviderRecord, seen_since: Mapping[str, datetime]) -> Iterator[Outage]:
    """One outage a node: from the earliest that its findings tell."""
    silent = {
        node: event.time for event in reversed(run.events) if event.kind in SILENCE for node in nodes_of(event.subject)
    }
    by_node: dict[str, list[Finding]] = {}
    for each in verdict.findings:
        behind = nodes_of(each.excludes or "")
        if each.required and each.result == "fail" and len(behind) == 1:
            by_node.setdefault(behind[0], []).append(each)
    for node, findings in by_node.items():
        times = [seen_since[trial] for each in findings for trial in each.evidence if trial in seen_since]
        start = min([*times, *([silent[node]] if node in silent else [])], default=run.started)
        if start is not None and run.ended is not None:
            why = "; ".join(dict.fromkeys((each.statement or each.check).rstrip(".") for each in findings))
            yield Outage(node=node, start=start, end=run.ended, why=why, source=f"run {run.header.run_id}",
                         clause=record.sla.clause)  # fmt: skip


def _of_tickets(record: ProviderRecord) -> Iterator[Outage]:
    for ticket in record.tickets:
        for node in ticket.concerns if ticket.outage else ():
            yield Outage(node=node, start=ticket.opened, end=ticket.solved, why=ticket.what,
                         source=f"ticket {ticket.id}", clause=ticket.clause or record.sla.clause)  # fmt: skip


def _of_replacements(record: ProviderRecord) -> Iterator[Outage]:
    for each in record.replaced:
        yield Outage(node=each.node, start=each.asked, end=each.replaced, why="waited to be replaced",
                     source="replacement", clause=record.sla.clause)  # fmt: skip
