"""From what came back of a trial to the records of a run, and back again for a resume."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import isfinite

import msgspec

from ..cluster import Finished, Outcome, Raised, TimedOut, Trial, WorkerLost
from ..cluster.control import Returned
from ..evidence import (
    AnyReading,
    AnyRecord,
    Event,
    Fact,
    Measurement,
    Missing,
    Noticed,
    NotMeasured,
    Observed,
    Reading,
    Run,
    TrialPlan,
    is_metric,
    measured,
    parse_subject,
)
from ..evidence.records import Reason, Scalar, TrialOutcome
from ..evidence.writing import file_of
from ..probes.protocol import Probe

_OUTCOMES: dict[type, TrialOutcome] = {
    Finished: "finished",
    Raised: "raised",
    TimedOut: "timed_out",
    WorkerLost: "worker_lost",
}
_UNFILLED: dict[type, Reason] = {
    Finished: "not_returned",
    Raised: "raised",
    TimedOut: "timeout",
    WorkerLost: "died",
}


def trial_id(probe: Probe, trial: Trial, hardware: Mapping[str, str]) -> str:
    """A hash of probe, method version, function, params, env, the hardware behind the trial's ranks, and attempt."""
    what = (
        probe.name,
        probe.method,
        trial.function,
        dict(trial.params),
        dict(trial.env),
        [(rank.subject, hardware.get(rank.node)) for rank in trial.ranks],
        trial.attempt,
    )
    canonical = msgspec.json.encode(what, order="deterministic")
    return f"{probe.name}-{hashlib.sha256(canonical).hexdigest()[:16]}"


def plan_record(probe: Probe, trial: Trial, identity: str) -> TrialPlan:
    """The record of a trial that is about to run."""
    return TrialPlan(
        trial=identity,
        probe=probe.name,
        function=trial.function,
        method=probe.method,
        ranks=tuple(rank.subject for rank in trial.ranks),
        params=dict(trial.params),
        env=dict(trial.env),
        deadline_s=trial.deadline_s,
        fills=trial.fills,
        attempt=trial.attempt,
        retest_of=trial.retest_of,
    )


def result_records(trial: Trial, identity: str, returned: Returned) -> list[AnyRecord]:
    """All records of a trial that has ended: what it brought, what it did not bring and why, and what happened.

    The last, trial_ended, counts the others by file: what stands in no fill (a sensor's value) is missed too when it is
    gone.
    """
    readings = (*returned.outcome.readings, *returned.beside)
    records = [record for reading in readings for record in _records(reading, trial, identity, returned)]
    records += _unfilled(trial, identity, returned, records)
    records += _happenings(identity, returned)
    records.append(
        Event(
            time=returned.end,
            kind="trial_ended",
            trial=identity,
            subject=trial.ranks[0].subject if len(trial.ranks) == 1 else "cluster",
            severity="info" if isinstance(returned.outcome, Finished) else "error",
            outcome=_OUTCOMES[type(returned.outcome)],
            detail=told(returned.outcome),
            counts=dict(Counter(file_of(record) for record in records)),
        )
    )
    return records


def told(outcome: Outcome) -> str:
    """An outcome in one line; empty for a trial that finished."""
    match outcome:
        case Raised(subject=subject, message=message):
            return f"{subject} raised {message}"
        case TimedOut(subjects=subjects, stuck=stuck):
            held = f" ({', '.join(stuck)} stuck in the kernel)" if stuck else ""
            return f"deadline passed, waiting for {', '.join(subjects)}{held}"
        case WorkerLost(subjects=subjects, message=message):
            return f"{', '.join(subjects)} lost: {message}"
    return ""


def _records(reading: AnyReading, trial: Trial, identity: str, returned: Returned) -> Iterator[AnyRecord]:
    """The record of one reading. One that names no metric or subject of ours is a defect, said in an event."""
    wrong = _wrong(reading)
    if wrong:
        yield Event(time=returned.end, kind="note", severity="error", trial=identity, detail=wrong)
        return
    match reading:
        case Reading():
            yield measured(
                metric=reading.metric,
                subject=reading.subject,
                params={key: _plain(value) for key, value in reading.params.items()},
                samples=reading.samples,
                trial=identity,
                attempt=trial.attempt,
                retest_of=trial.retest_of,
                start=returned.start,
                end=returned.end,
            )
        case Missing():
            yield NotMeasured(
                metric=reading.metric,
                subject=reading.subject,
                params=reading.params,
                reason=reading.reason,
                detail=reading.detail[:4000],
                trial=identity,
                attempt=trial.attempt,
                retest_of=trial.retest_of,
            )
        case Observed():
            yield Fact(subject=reading.subject, key=reading.key, value=_plain(reading.value), trial=identity)
        case Noticed():
            yield Event(
                time=returned.end,
                kind=reading.kind,
                subject=reading.subject,
                severity=reading.severity,
                detail=reading.detail[:4000],
                trial=identity,
            )


def _plain(value: Scalar) -> Scalar:
    """A value of exactly JSON's types: torch's version, for one, is a str of its own kind."""
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"not a fact's value: {value!r}")


def _wrong(reading: AnyReading) -> str | None:
    if isinstance(reading, Reading | Missing) and not is_metric(reading.metric):
        return f"a rank returned the unknown metric {reading.metric!r}"
    if isinstance(reading, Observed) and (
        not isinstance(reading.value, Scalar) or (isinstance(reading.value, float) and not isfinite(reading.value))
    ):
        return f"a rank returned the fact {reading.key!r} with the value {reading.value!r}"[:500]
    try:
        parse_subject(reading.subject)
    except ValueError as error:
        return f"a rank returned what is {error}"
    return None


def _unfilled(trial: Trial, identity: str, returned: Returned, records: list[AnyRecord]) -> Iterator[NotMeasured]:
    """What the trial was to bring and did not, with the outcome as the reason."""
    filled = {_key(r.metric, r.subject, r.params) for r in records if not isinstance(r, Fact | Event | TrialPlan)}
    for fill in trial.fills:
        if _key(fill.metric, fill.subject, fill.params) not in filled:
            yield NotMeasured(
                metric=fill.metric,
                subject=fill.subject,
                params=fill.params,
                reason=_UNFILLED[type(returned.outcome)],
                detail=told(returned.outcome)[:4000],
                trial=identity,
                attempt=trial.attempt,
                retest_of=trial.retest_of,
            )


def _key(metric: str, subject: str, params: Mapping[str, object]) -> tuple[str, str, str]:
    return metric, subject, repr(sorted(params.items()))


def _happenings(identity: str, returned: Returned) -> Iterator[Event]:
    """Events of ranks that hung, died, were stuck in the kernel, or were replaced."""
    outcome, at = returned.outcome, returned.end
    if isinstance(outcome, TimedOut):
        for subject in outcome.subjects:
            yield Event(time=at, kind="hang", subject=subject, severity="error", trial=identity, detail=told(outcome))
        for subject in outcome.stuck:
            yield Event(
                time=at,
                kind="stuck_in_kernel",
                subject=subject,
                severity="error",
                trial=identity,
                detail="its process does not end on SIGKILL: it is left behind, and nothing waits for it",
            )
    if isinstance(outcome, WorkerLost):
        for subject in outcome.subjects:
            yield Event(
                time=at, kind="worker_lost", subject=subject, severity="error", trial=identity, detail=outcome.message
            )
    for subject in returned.died_idle:
        yield idle_death(subject, at, identity)
    for subject in returned.replaced:
        yield Event(time=at, kind="rank_replaced", subject=subject, severity="warning", trial=identity)


def idle_death(subject: str, at: datetime, identity: str | None = None) -> Event:
    """A rank's process that ended while nothing was asked of it: the kernel's out-of-memory killer does that."""
    detail = "its process ended between trials, while nothing was asked of it"
    return Event(time=at, kind="worker_lost", subject=subject, severity="error", trial=identity, detail=detail)


def recorded_outcomes(run: Run) -> dict[str, Outcome]:
    """The outcomes of a run's ended trials, by trial id, rebuilt from its records for a resume."""
    readings: dict[str, list[AnyReading]] = {}
    brought: list[Fact | Measurement | NotMeasured] = [*run.facts, *run.measurements, *run.not_measured]
    for record in sorted(brought, key=lambda record: record.number or 0):
        if record.trial is not None:
            readings.setdefault(record.trial, []).append(_reading(record))
    happened: dict[str, list[Event]] = {}
    for event in run.events:
        if event.trial is not None:
            happened.setdefault(event.trial, []).append(event)
    outcomes: dict[str, Outcome] = {}
    for trial, events in happened.items():
        ended = [event for event in events if event.kind == "trial_ended"]
        if ended and ended[-1].outcome is not None:
            outcomes[trial] = _outcome(ended[-1], events, tuple(readings.get(trial, ())))
    return outcomes


def _reading(record: Fact | Measurement | NotMeasured) -> AnyReading:
    match record:
        case Fact():
            return Observed(subject=record.subject, key=record.key, value=record.value)
        case NotMeasured():
            return Missing(
                metric=record.metric,
                subject=record.subject,
                params=record.params,
                reason=record.reason,
                detail=record.detail,
            )
    return Reading(metric=record.metric, subject=record.subject, params=record.params, samples=record.numbers())


def _outcome(ended: Event, events: list[Event], readings: tuple[AnyReading, ...]) -> Outcome:
    def subjects(kind: str) -> tuple[str, ...]:
        return tuple(event.subject for event in events if event.kind == kind)

    match ended.outcome:
        case "timed_out":
            return TimedOut(subjects=subjects("hang"), stuck=subjects("stuck_in_kernel"), readings=readings)
        case "worker_lost":
            return WorkerLost(subjects=subjects("worker_lost"), message=ended.detail, readings=readings)
        case "raised":
            return Raised(subject=ended.subject, message=ended.detail, readings=readings)
    return Finished(readings=readings)


def skipped(metric_name: str, subject: str, reason: Reason, detail: str) -> NotMeasured:
    """NotMeasured for a metric whose probe does not run at all."""
    return NotMeasured(metric=metric_name, subject=subject, reason=reason, detail=detail)
