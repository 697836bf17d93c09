"""Defects of the evidence that no file shows by itself: records that contradict each other, their plan or run.json.

Reading finds what is lost, torn or altered in files (Run.problems). This finds what a consistently written run must not
have; together they decide evidence.complete, and `verify` shows both.
"""

import hashlib
from collections.abc import Iterable, Iterator

from ..evidence import Event, Measurement, NotMeasured, Problem, Run, parse_subject
from .happenings import GRAVE, SILENCE, Happenings
from .joined import join_problems, standing
from .resumed import mixed_figures
from .scope import nodes_of
from .values import Values
from .words import counted, several

# Values that sensors bring beside a trial stand in no plan: their number is in trial_ended.
_BESIDE = "health."
_ALWAYS = "inventory"  # --only never leaves it out
_SHOWN = 3


def defects(run: Run, values: Values | None = None, happenings: Happenings | None = None) -> list[Problem]:
    """Everything beyond Run.problems that shows that records are lost, doubled, altered, foreign or unfinished."""
    values, happenings = values or Values(run), happenings or Happenings(run)
    return [
        *_promises(run),
        *_altered_documents(run),
        *_trials(run, happenings),
        *_unplanned(run, values),
        *_unanswered(values),
        *_miscounted(run, happenings),
        *_strangers(run),
        *_grave_without_node(run),
        *_stopped(run),
        *_left_out(run),
        *join_problems(run.header),
        *mixed_figures(standing(run)),
    ]


def _promises(run: Run) -> Iterator[Problem]:
    header = run.header
    if not header.promised or not all(node.ranks for node in header.promised):
        yield _in_header("missing", "run.json promises no node, or a node with nothing to work on")
    if not header.segments:
        yield _in_header("missing", "run.json names no start of the run")
    starts = [segment.start for segment in header.segments]
    if len(set(starts)) < len(starts):
        yield _in_header("duplicate", "run.json names two starts of the run at the same time")
    names = [node.node for node in header.promised]
    doubled = sorted({name for name in names if names.count(name) > 1})
    doubled += [
        f"{n.node}/{rank}" for n in header.promised for rank in sorted({r for r in n.ranks if n.ranks.count(r) > 1})
    ]
    if doubled:
        yield _in_header("duplicate", f"promised more than once: {several(doubled, _SHOWN)}")
    odd = [name for name in names if _kind(name) != "node"]
    kinds = {"cuda": "gpu", "cpu": "slot"}
    odd += [f"{n.node}/{r}" for n in header.promised for r in n.ranks if _kind(f"{n.node}/{r}") != kinds[n.device]]
    if odd:
        yield _in_header("foreign", f"promised and no node, or no rank of its device: {several(odd, _SHOWN)}")


def _in_header(kind: str, detail: str) -> Problem:
    return Problem(kind=kind, place="run.json", detail=detail)  # type: ignore[arg-type]  # one of Problem's kinds


def _kind(subject: str) -> str | None:
    try:
        return parse_subject(subject).kind
    except ValueError:
        return None


def _altered_documents(run: Run) -> Iterator[Problem]:
    """A profile or policy that is not the one whose SHA-256 run.json names."""
    for what, document in (("policy", run.header.policy), ("profile", run.header.profile)):
        if hashlib.sha256(document.text.encode()).hexdigest() != document.sha256:
            yield _in_header("checksum", f"the {what}'s text is not the one of its SHA-256")


def _trials(run: Run, happenings: Happenings) -> Iterator[Problem]:
    """Trials that did not end, or whose last end says nothing or that they were stopped."""
    planned = sorted({plan.trial for plan in run.plans if plan.trial})
    still_open = [trial for trial in planned if trial not in happenings.ended]
    if still_open:
        yield _event("unfinished", f"{counted(len(still_open), 'trial')} did not end: {several(still_open)}")
    stopped = sorted(t for t, end in happenings.ended.items() if end.outcome in (None, "interrupted"))
    if stopped:
        yield _event("unfinished", f"{counted(len(stopped), 'trial')} ended without an outcome: {several(stopped)}")

    absent = {record.trial for record in run.not_measured}
    whole = [
        plan.trial
        for plan in run.plans
        if plan.trial and plan.fills and plan.trial not in absent and _outcome(happenings, plan.trial) == "raised"
    ]
    if whole:
        yield _event("count", f"{counted(len(whole), 'trial')} raised and lack no value: {several(whole)}")


def _outcome(happenings: Happenings, trial: str | None) -> str | None:
    end = happenings.ended.get(trial or "")
    return None if end is None else end.outcome


def _event(kind: str, detail: str) -> Problem:
    return Problem(kind=kind, place="events.jsonl", detail=detail)  # type: ignore[arg-type]  # one of Problem's kinds


def _unplanned(run: Run, values: Values) -> Iterator[Problem]:
    """Trials without a plan, and values without a trial, beside their plan, or of another attempt than it says."""
    plans = {plan.trial: plan for plan in run.plans if plan.trial}
    recorded = {r.trial for r in (*run.measurements, *run.not_measured, *run.facts, *run.events) if r.trial}
    unplanned = sorted(recorded - plans.keys())
    if unplanned:
        yield Problem(
            kind="foreign",
            place="plan.jsonl",
            detail=f"{counted(len(unplanned), 'trial')} ran without a plan: {several(unplanned)}",
        )
    without = [record for record in run.measurements if record.trial is None]
    if without:
        yield _values("foreign", without, "without a trial")
    beside = [record for record in values.unforeseen if not record.metric.startswith(_BESIDE)]
    if beside:
        yield _values("foreign", beside, "that their trial's plan does not name")
    tried = {trial: (plan.attempt, plan.retest_of) for trial, plan in plans.items()}
    found: list[Measurement | NotMeasured] = [*run.measurements, *run.not_measured]
    other = [r for r in found if r.trial in tried and (r.attempt, r.retest_of) != tried[r.trial]]
    if other:
        yield _values("foreign", other, "of another attempt than their plan's")


def _values(kind: str, records: Iterable[Measurement | NotMeasured], what: str) -> Problem:
    named = [f"{record.metric} on {record.subject}" for record in records]
    detail = f"{counted(len(named), 'value')} {what}: {several(named, _SHOWN)}"
    return Problem(kind=kind, place="measurements.jsonl", detail=detail)  # type: ignore[arg-type]  # as above


def _unanswered(values: Values) -> Iterator[Problem]:
    gone = [f"{metric} on {subject}" for metric, subject in values.unanswered()]
    if gone:
        detail = f"{counted(len(gone), 'planned value')} with neither value nor reason: {several(gone, _SHOWN)}"
        yield Problem(kind="missing", place="measurements.jsonl", detail=detail)


def _miscounted(run: Run, happenings: Happenings) -> Iterator[Problem]:
    """Trials whose end counts other records than are there."""
    counted_ends = {trial: end.counts for trial, end in happenings.ended.items() if end.counts is not None}
    if not counted_ends:
        return
    found: dict[str, dict[str, int]] = {trial: {} for trial in counted_ends}
    files = (
        ("facts.jsonl", run.facts),
        ("measurements.jsonl", run.measurements),
        ("measurements.jsonl", run.not_measured),
        ("events.jsonl", run.events),
    )
    for name, records in files:
        for record in records:
            if record.trial in found and not (isinstance(record, Event) and record.kind == "trial_ended"):
                found[record.trial][name] = found[record.trial].get(name, 0) + 1
    wrong = sorted(trial for trial, counts in counted_ends.items() if found[trial] != counts)
    if wrong:
        detail = f"{counted(len(wrong), 'trial')} with other records than its end counts: {several(wrong)}"
        yield _event("count", detail)


def _strangers(run: Run) -> Iterator[Problem]:
    """Records of nodes and accelerators that run.json does not promise: the promise, or a record, was altered."""
    nodes = {node.node for node in run.header.known}
    ranks = {f"{node.node}/{rank}" for node in run.header.known for rank in node.ranks}
    subjects = {r.subject for r in run.measurements} | {r.subject for r in run.not_measured}
    subjects |= {rank for plan in run.plans for rank in plan.ranks}
    subjects |= {fill.subject for plan in run.plans for fill in plan.fills}
    strange = {s for s in subjects if _kind(s) is None or (_kind(s) in ("gpu", "slot") and s not in ranks)}
    spoken_of = (
        subjects | {r.subject for r in run.facts} | {r.subject for r in run.events} | set(run.header.filesystems)
    )
    strange |= {subject for subject in spoken_of if not nodes.issuperset(nodes_of(subject))}
    if strange:
        yield Problem(
            kind="foreign", place="records", detail=f"of what was not promised: {several(sorted(strange), _SHOWN)}"
        )


def _grave_without_node(run: Run) -> Iterator[Problem]:
    """Errors that blame no promised node: nothing may be signed before somebody knows what they mean."""
    nodes = {node.node for node in run.header.known}
    loose = [
        e
        for e in run.events
        if (e.severity in GRAVE or e.kind in SILENCE)
        and e.kind != "trial_ended"
        and not nodes & set(nodes_of(e.subject))
    ]
    if loose:
        told = several([f"{event.kind} {event.detail}".strip()[:200] for event in loose], _SHOWN)
        yield _event("foreign", f"{counted(len(loose), 'error')} of no promised node: {told}")


def _stopped(run: Run) -> Iterator[Problem]:
    """A run that was stopped and did not go on."""
    stops = [event.number or 0 for event in run.events if event.kind == "interrupted"]
    went_on = [event.number or 0 for event in run.events if event.kind == "run_started"]
    went_on += [plan.number or 0 for plan in run.plans]
    if stops and max(stops) > max(went_on, default=0):
        yield _event("unfinished", "the run was stopped and did not go on")


def _left_out(run: Run) -> Iterator[Problem]:
    """Trials of probes that --only leaves out."""
    kept = {_ALWAYS, *run.header.only}
    ran = sorted({plan.probe for plan in run.plans} - kept) if run.header.only else []
    if ran:
        yield Problem(
            kind="foreign", place="plan.jsonl", detail=f"ran though run.json leaves them out: {several(ran, _SHOWN)}"
        )
