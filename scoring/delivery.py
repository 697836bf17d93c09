"""What a provider's record says against what was promised: by the contract's terms, else by the record's own.

No part of the verdict: it rests on what somebody wrote down, and not on evidence of the run.
"""

import statistics
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from ..evidence import Run
from .policy import policy_from_text
from .policy_terms import Terms
from .provider_record import ProviderRecord

Kept = Literal["kept", "broken", "open"]


class Times(Struct, frozen=True, kw_only=True):
    """Durations in hours. `count` have ended; `waiting` have not, the longest of them for `longest_wait` so far."""

    count: int
    median: float | None = None
    mean: float | None = None
    worst: float | None = None
    waiting: int = 0
    longest_wait: float = 0.0

    @property
    def longest(self) -> float:
        """The longest, whether it has ended or not."""
        return max(self.worst or 0.0, self.longest_wait)


class Promise(Struct, frozen=True, kw_only=True):
    """One promise: what came against it. open: neither kept nor broken yet, or nothing is known of it."""

    name: str
    promised: str
    came: str
    kept: Kept


class Delivery(Struct, frozen=True, kw_only=True):
    """A provider's delivery and support, as of a day. `days_late` counts to that day where something is still due, and
    is None without a promised date. `mean` of `solving` is the MTTR."""

    as_of: date
    promised_nodes: int | None
    delivered_nodes: int | None
    promised_date: date | None
    delivered_date: date | None  # when all that was promised was there
    days_late: int | None
    tickets: int
    answering: Times
    solving: Times
    replacing: Times
    blamed: dict[str, int]
    checkpoints_lost: int
    stack_changes: int
    promises: tuple[Promise, ...]

    @property
    def broken(self) -> tuple[Promise, ...]:
        """The promises that were not kept."""
        return tuple(each for each in self.promises if each.kept == "broken")


def delivery_of(record: ProviderRecord, terms: Terms, as_of: date) -> Delivery:
    """What the record says as of a day: the end of the run, or today. Promises of the contract go before its own."""
    nodes = terms.nodes or (record.promised.nodes if record.promised else None)
    due = terms.delivery or (record.promised.date if record.promised else None)
    came = [each for each in sorted(record.delivered, key=lambda each: each.date) if each.date <= as_of]
    there = sum(each.nodes for each in came) if record.delivered else None
    whole = _whole_on([(each.date, each.nodes) for each in came], nodes)
    now = datetime.combine(as_of, datetime.max.time(), UTC)
    answering = _times(((each.opened, each.answered or each.solved) for each in record.tickets), now)
    solving = _times(((each.opened, each.solved) for each in record.tickets), now)
    replacing = _times(((each.asked, each.replaced) for each in record.replaced), now)
    late = max(0, ((whole or as_of) - due).days) if due is not None and record.delivered else None
    sla = record.sla
    promises = (
        _on_time(due, whole, late, as_of),
        _enough(nodes, there, due, as_of),
        _within("answers to tickets", sla.answer_hours, answering),
        _within("tickets solved", sla.solve_hours or _hours(terms.days_to_cure), solving),
        _within("nodes replaced", terms.replacement_hours or sla.replacement_hours, replacing),
    )
    return Delivery(
        as_of=as_of,
        promised_nodes=nodes,
        delivered_nodes=there,
        promised_date=due,
        delivered_date=whole,
        days_late=late,
        tickets=len(record.tickets),
        answering=answering,
        solving=solving,
        replacing=replacing,
        blamed=dict(sorted(Counter(each.blamed for each in record.tickets if each.blamed).items())),
        checkpoints_lost=len(record.checkpoints_lost),
        stack_changes=len(record.stack_changes),
        promises=tuple(each for each in promises if each),
    )


def judged_delivery(run: Run, record: ProviderRecord, as_of: date | None = None) -> Delivery:
    """The record held against the terms of the run's policy, as of a day or the last day that either speaks of."""
    policy = policy_from_text(run.header.policy.text, "run.json policy")
    last = run.ended or run.started
    return delivery_of(record, policy.terms, as_of or record.told_until(last.date() if last else date.min))


def _whole_on(came: list[tuple[date, int]], nodes: int | None) -> date | None:
    """The day on which all promised nodes were there; without a number promised, that of the last delivery."""
    sums = accumulate(count for _, count in came)
    reached = (day for (day, _), total in zip(came, sums, strict=True) if nodes is not None and total >= nodes)
    return next(reached, None) if nodes is not None else (came[-1][0] if came else None)


def _times(spans: Iterable[tuple[datetime, datetime | None]], now: datetime) -> Times:
    """What ended later than `now` waits still; what began later is not there yet."""
    begun = [(start, end if end is not None and end <= now else None) for start, end in spans if start <= now]
    done = [_span(start, end) for start, end in begun if end is not None]
    waits = [_span(start, now) for start, end in begun if end is None]
    if not done:
        return Times(count=0, waiting=len(waits), longest_wait=max(waits, default=0.0))
    return Times(
        count=len(done),
        median=statistics.median(done),
        mean=statistics.fmean(done),
        worst=max(done),
        waiting=len(waits),
        longest_wait=max(waits, default=0.0),
    )


def _span(start: datetime, end: datetime) -> float:
    return (end - start) / timedelta(hours=1)


def _hours(days: float | None) -> float | None:
    return None if days is None else days * 24


def _on_time(due: date | None, whole: date | None, late: int | None, as_of: date) -> Promise | None:
    if due is None:
        return None
    if late is None:
        return Promise(name="delivery", promised=f"by {due}", came="not recorded", kept="open")
    came = f"on {whole}" if whole else f"not complete on {as_of}"
    return Promise(
        name="delivery",
        promised=f"by {due}",
        came=f"{came}, {late} days late" if late else came,
        kept="broken" if late else "kept" if whole else "open",
    )


def _enough(nodes: int | None, there: int | None, due: date | None, as_of: date) -> Promise | None:
    if nodes is None:
        return None
    if there is None:
        return Promise(name="nodes", promised=f"{nodes:,}", came="not recorded", kept="open")
    short: Kept = "open" if due is not None and as_of <= due else "broken"
    return Promise(name="nodes", promised=f"{nodes:,}", came=f"{there:,}", kept="kept" if there >= nodes else short)


def _within(name: str, limit: float | None, found: Times) -> Promise | None:
    if limit is None or not (found.count or found.waiting):
        return None
    ended = f"up to {found.worst:,.1f} h" if found.worst is not None else ""
    waits = f"{found.waiting} waiting for up to {found.longest_wait:,.1f} h" if found.waiting else ""
    kept: Kept = "broken" if found.longest > limit else "open" if found.waiting else "kept"
    return Promise(
        name=name, promised=f"within {limit:g} h", came=", ".join(part for part in (ended, waits) if part), kept=kept
    )
