"""The appendix: policy, settings, how to reproduce, trials, events, defects of the evidence, glossary."""

import shlex
from collections import Counter

from msgspec import Struct

from ..evidence import Document, Event, Run
from ..scoring.joined import measured_when
from ..scoring.verdict import Measured
from .layout import Cell, Column, Table, number, text
from .numbers import lasting, number_of, utc
from .plain_text import listed, natural, printable, printable_lines

MOST_TRIALS = 200
MOST_EVENTS = 100
MOST_NODES = 100
MOST_PROBLEMS = 50
LONGEST_DOCUMENT = 60_000
_NOTABLE = frozenset({"warning", "error", "fatal"})

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("95 % interval", "Where the true value lies, by the spread of what was measured; a bound where one end is open."),
    ("access tier", "How far a tenant sees on a node: from bare metal with root down to a container without."),
    ("bus bandwidth", "All-reduce bandwidth made comparable over numbers of ranks: 2(n-1)/n of bytes over time."),
    ("CONDITIONAL", "GO without the subjects named under what to exclude."),
    ("dense peak", "The accelerator's published peak without sparsity, at its clock and power limit of the sheet."),
    ("GO", "Everything the policy requires was measured and passed."),
    ("goodput", "Share of paid time that makes progress, after checkpoints, failures and restarts."),
    (
        "INCONCLUSIVE",
        "Something the policy requires is not measured: nothing to sign, and the page says how to get it.",
    ),
    ("layer", "What judged a value: a rule, the contract, a reference, its peers, or the last accepted run."),
    ("leaf", "A switch of the lowest row of the fabric, into which nodes are cabled."),
    ("MFU", "Model FLOPs utilisation: the model's FLOPs a second over the accelerator's dense peak."),
    ("NO-GO", "A required check failed on what cannot be taken out, or too much would have to be."),
    ("node-day", "One node observed for one day."),
    ("not measured", "Not there, not finite, or not readable, with the reason. Never counted as a pass."),
    ("PFLOP-day", "10^15 floating-point operations a second for a day: 8.64 x 10^19 of them."),
    ("rail", "The NICs of the same place in all nodes, cabled into the same switches."),
    ("signable", "The policy allows this verdict to be signed as an acceptance."),
    ("straggler", "The slowest rank of a step: all others wait for it."),
    ("trial", "One piece of work on a set of ranks under a deadline; its id is a hash of what it ran on what."),
    ("Xid", "A number by which NVIDIA's driver reports an error of a GPU to the kernel log."),
)


class Appendix(Struct, frozen=True, kw_only=True):
    """What the appendix shows."""

    policy: Document
    policy_text: str
    profile: Document
    profile_text: str
    commands: tuple[str, ...]
    segments: Table
    nodes: Table | None
    methods: str
    trials: Table
    events: Table | None
    problems: tuple[str, ...]
    problems_left_out: int
    glossary: tuple[tuple[str, str], ...] = GLOSSARY


def appendix(run: Run) -> Appendix:
    """The appendix of a run."""
    header = run.header
    methods = header.segments[-1].methods if header.segments else {}
    return Appendix(
        policy=header.policy,
        policy_text=printable_lines(header.policy.text, LONGEST_DOCUMENT),
        profile=header.profile,
        profile_text=printable_lines(header.profile.text, LONGEST_DOCUMENT),
        commands=commands(run),
        segments=_segments(run),
        nodes=_nodes(run),
        methods=", ".join(
            f"{printable(name, 60)} {printable(version, 20)}" for name, version in sorted(methods.items())
        ),
        trials=_trials(run),
        events=_events(run),
        problems=tuple(printable(problem, 300) for problem in run.problems[:MOST_PROBLEMS]),
        problems_left_out=max(0, len(run.problems) - MOST_PROBLEMS),
    )


def commands(run: Run) -> tuple[str, ...]:
    """The command of each start, ready to be given to a shell."""
    given = [shlex.join(printable(part, 1000) for part in each.command) for each in run.header.segments if each.command]
    return tuple(dict.fromkeys(given))


def _segments(run: Run) -> Table:
    rows = tuple(
        (text(utc(each.start)), text(printable(each.hwlottery, 40)), number(len(each.tiers), f"{len(each.tiers):,}"))
        for each in run.header.segments
    )
    columns = (Column(title="started"), Column(title="hwlottery"), Column(title="nodes that joined", numeric=True))
    return Table(caption="Starts of this run", columns=columns, rows=rows)


def _nodes(run: Run) -> Table | None:
    """Which node was measured when; None where nobody joined an accepted run or missed a start."""
    found = measured_when(run.header)
    if len({each.starts for each in found}) < 2 and not run.header.joins:
        return None
    rows = tuple(
        (
            text(printable(each.node, 80), code=True),
            text(", ".join(utc(start) for start in each.starts) or "never"),
            text(printable(each.accepted_in or "this run", 80), code=each.accepted_in is not None),
            text(printable(_stands_for(each), 120)),
        )
        for each in sorted(found, key=lambda one: natural(one.node))[:MOST_NODES]
    )
    columns = tuple(Column(title=head) for head in ("node", "measured in the starts of", "accepted in", "in place of"))
    left = f"{len(found) - MOST_NODES} more are in verdict.json." if len(found) > MOST_NODES else ""
    return Table(caption="Which node was measured when", columns=columns, rows=rows, note=left, on_paper="whole")


def _stands_for(each: Measured) -> str:
    """For whom a node stands, and whether it is other hardware."""
    if each.replaces is None:
        return ""
    known = {True: "other hardware", False: "the same hardware", None: "hardware not known"}[each.hardware_changed]
    return f"{each.replaces}, {known}"


def _trials(run: Run) -> Table:
    """Trials with how they ended, those that did not finish first."""
    ends = {event.trial: event for event in run.events if event.kind == "trial_ended" and event.trial}
    brought = Counter(record.trial for record in (*run.measurements, *run.facts))
    order = sorted(run.plans, key=lambda plan: (_outcome(ends.get(plan.trial or "")) == "finished", plan.number or 0))
    rows = tuple(
        (
            text(printable(plan.trial or "\N{EM DASH}", 60), code=True),
            text(printable(plan.function, 80), code=True),
            text(printable(listed(sorted(plan.ranks, key=natural), 3), 200)),
            number(plan.attempt, str(plan.attempt)),
            _outcome_cell(ends.get(plan.trial or "")),
            number(brought[plan.trial], f"{brought[plan.trial]:,}"),
            number(plan.deadline_s, f"{plan.deadline_s:,.0f} s"),
        )
        for plan in order[:MOST_TRIALS]
    )
    heads = ("trial", "function", "ranks", "attempt", "outcome", "records", "deadline")
    columns = tuple(Column(title=head, numeric=head in ("attempt", "records", "deadline")) for head in heads)
    left_out = len(order) - len(rows)
    note = f"{left_out:,} more that finished are in plan.jsonl." if left_out > 0 else ""
    return Table(
        caption=number_of(len(order), "trial"), columns=columns, rows=rows, note=note, folded=True, on_paper="none"
    )


def _outcome(event: Event | None) -> str:
    return event.outcome or "unknown" if event else "no end recorded"


def _outcome_cell(event: Event | None) -> Cell:
    word = _outcome(event)
    return text(word.replace("_", " "), tone="" if word == "finished" else "fail")


def _events(run: Run) -> Table | None:
    """Warnings and errors in the order they happened."""
    found = [event for event in run.events if event.severity in _NOTABLE]
    if not found:
        return None
    started = run.started or found[0].time
    rows = tuple(
        (
            Cell(text=f"{event.time:%Y-%m-%d %H:%M:%S}", sort=event.time.timestamp()),
            number((event.time - started).total_seconds(), lasting(event.time - started)),
            text(event.kind.replace("_", " ")),
            text(event.subject),
            text(event.severity, tone="warn" if event.severity == "warning" else "fail"),
            text(printable(event.detail, 300)),
        )
        for event in found[:MOST_EVENTS]
    )
    heads = ("time, UTC", "after", "event", "subject", "severity", "detail")
    columns = tuple(Column(title=head, numeric=head == "after") for head in heads)
    left_out = len(found) - len(rows)
    note = f"{left_out:,} more are in events.jsonl." if left_out > 0 else ""
    return Table(caption="Warnings and errors while it ran", columns=columns, rows=rows, note=note, on_paper="whole")
