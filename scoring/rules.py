"""Named rules: what a policy can demand that is no single metric or fact. Each judges one promised subject."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from ..evidence import Event, Run
from .derived import Figures
from .policy_model import RuleName
from .reliability import observed_seconds
from .scope import nodes_of
from .verdict import Result
from .words import counted, several

# A node that did one of these did not respond for all of the run.
_SILENCE = {
    "node_lost": "was lost",
    "worker_lost": "lost a process",
    "hang": "hung",
    "stuck_in_kernel": "had a process stuck in the kernel",
}
_TROUBLE = ("xid", "ecc", "link_down")


class Ruled(Struct, frozen=True, kw_only=True):
    """What a rule says of one subject."""

    result: Result
    observed: str
    expected: str
    reason: str = ""
    detail: str = ""
    trials: tuple[str, ...] = ()
    number: float | None = None  # what the contract of a check compares, where the rule has a figure
    unit: str = ""


class Happenings:
    """What happened during the run, by node and by trial, gathered once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.joined: set[str] = set()
        self.silent: dict[str, list[Event]] = {}
        self.trouble: dict[str, list[Event]] = {}
        self.ended: dict[str, Event] = {}
        self._blamed_trials: set[str] = set()
        for event in run.events:
            self._note(event)
        self.seen = self._nodes_with_records()
        self.unexplained = set(self._unexplained_nodes())
        self.log_watched = self._nodes_with_watched_logs()

    def _note(self, event: Event) -> None:
        nodes = nodes_of(event.subject)
        if event.kind == "node_joined":
            self.joined.update(nodes)
        elif event.kind == "trial_ended" and event.trial:
            self.ended[event.trial] = event
        elif event.kind in _SILENCE and nodes:
            for node in nodes:
                self.silent.setdefault(node, []).append(event)
            self._blamed_trials.add(event.trial or "")
        elif event.kind in _TROUBLE and event.severity in ("error", "fatal"):
            for node in nodes:
                self.trouble.setdefault(node, []).append(event)

    def _nodes_with_records(self) -> set[str]:
        """Nodes that took part in something: work was planned on them, or facts came from them."""
        subjects = {rank for plan in self.run.plans for rank in plan.ranks}
        subjects |= {fact.subject for fact in self.run.facts}
        return {node for subject in subjects for node in nodes_of(subject)}

    def _nodes_with_watched_logs(self) -> set[str]:
        """Nodes whose kernel log was watched all the time: said so, and never said to have been lost sight of."""
        said = [fact for fact in self.run.facts if fact.key == "kernel_log.watched"]
        blind = {fact.subject for fact in said if fact.value is not True}
        return {fact.subject for fact in said} - blind

    def _unexplained_nodes(self) -> Iterator[str]:
        """Nodes of trials that died or ran out of time while no event says which node it was."""
        for plan in self.run.plans:
            end = self.ended.get(plan.trial or "")
            broken = end is not None and end.outcome in ("timed_out", "worker_lost")
            if broken and plan.trial not in self._blamed_trials:
                yield from {node for rank in plan.ranks for node in nodes_of(rank)}


def evidence_defects(run: Run, figures: Figures, happenings: Happenings) -> list[str]:
    """Everything that shows that records are lost, doubled, torn, altered or unfinished, each in a few words."""
    defects = [str(problem) for problem in run.problems]
    planned = {plan.trial for plan in run.plans if plan.trial}
    open_trials = sorted(trial for trial in planned if trial not in happenings.ended)
    if open_trials:
        defects.append(f"{counted(len(open_trials), 'trial')} did not end: {several(open_trials)}")
    recorded = {r.trial for r in (*run.measurements, *run.not_measured, *run.facts, *run.events) if r.trial}
    unplanned = sorted(recorded - planned)
    if unplanned:
        defects.append(f"{counted(len(unplanned), 'trial')} ran without a plan: {several(unplanned)}")
    gone = [f"{metric} on {subject}" for metric, subject in figures.measured.unanswered()]
    if gone:
        defects.append(f"{counted(len(gone), 'planned value')} with neither value nor reason: {several(gone, 3)}")
    defects += _miscounted(run, happenings)
    if not run.header.promised or not all(node.ranks for node in run.header.promised):
        defects.append("run.json promises no node, or a node with nothing to work on")
    if not run.header.segments:
        defects.append("run.json names no start of the run")
    return defects


def _miscounted(run: Run, happenings: Happenings) -> Iterator[str]:
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
        yield f"{counted(len(wrong), 'trial')} with other records than its end counts: {several(wrong)}"


def _evidence_complete(_subject: str, figures: Figures, happenings: Happenings) -> Ruled:
    expected = "all records there, none altered, the run finished"
    defects = evidence_defects(happenings.run, figures, happenings)
    if not defects:
        return Ruled(result="pass", observed="whole", expected=expected)
    return Ruled(
        result="not_measured",
        observed="",
        expected=expected,
        reason="incomplete",
        detail=several(defects, 5)[:1500],
    )


def _node_responds(node: str, _figures: Figures, happenings: Happenings) -> Ruled:
    """Fails where a node never joined, died or hung. Where that cannot be told it is not measured."""
    expected = "joins, and answers until the run ends"
    silences = happenings.silent.get(node, [])
    if silences:
        what = list(dict.fromkeys(_SILENCE[event.kind] for event in silences))
        never = node not in happenings.joined and node not in happenings.seen
        trials = tuple(dict.fromkeys(event.trial for event in silences if event.trial))
        detail = next((event.detail for event in silences if event.detail), "")
        said = "never joined" if never else ", ".join(what)
        return Ruled(result="fail", observed=said, expected=expected, detail=detail[:500], trials=trials)
    if node in happenings.unexplained:
        detail = "a trial with this node died or ran out of time, and no record says on which node"
        return Ruled(result="not_measured", observed="", expected=expected, reason="incomplete", detail=detail)
    if node in happenings.joined:
        return Ruled(result="pass", observed="joined and answered", expected=expected)
    if node in happenings.seen:
        detail = "it has records and no record of its joining"
        return Ruled(result="not_measured", observed="", expected=expected, reason="incomplete", detail=detail)
    return Ruled(result="fail", observed="never joined", expected=expected)


def _node_accelerators(name: str, figures: Figures, _happenings: Happenings) -> Ruled:
    """A policy for accelerators says nothing of a node that has none."""
    node = figures.node(name)
    expected = "accelerators that torch reaches by CUDA"
    if node is not None and node.device == "cuda" and node.ranks:
        return Ruled(result="pass", observed=counted(len(node.ranks), "accelerator"), expected=expected)
    detail = "the node was taken into the run with its CPUs"
    return Ruled(result="not_measured", observed="", expected=expected, reason="unsupported", detail=detail)


def _health_events(node: str, figures: Figures, happenings: Happenings) -> Ruled:
    """Fails on an Xid, ECC or link event of severity error. None seen says nothing where the kernel log is closed."""
    expected = "no Xid, uncorrected error or lost link"
    events = happenings.trouble.get(node, [])
    if events:
        said = several([event.detail or event.kind for event in events], 3)
        return Ruled(result="fail", observed=said, expected=expected)
    if node in happenings.log_watched:
        return Ruled(result="pass", observed="none seen", expected=expected)
    closed = (figures.facts.why_not(node, "kernel_log.watched") or "") != ""
    return Ruled(
        result="not_measured",
        observed="",
        expected=expected,
        reason="closed_to_tenant" if closed else "not_returned",
        detail="the kernel log cannot be read from here" if closed else "the kernel log was not watched all the time",
    )


def _run_length(_subject: str, _figures: Figures, happenings: Happenings) -> Ruled:
    """How long the run looked, without the pauses between its starts. Too short is not measured, not a fault."""
    hours = observed_seconds(happenings.run) / 3600
    return Ruled(result="pass", observed="", expected="", number=hours, unit="h")


Rule = Callable[[str, Figures, Happenings], Ruled]
RULES: dict[RuleName, Rule] = {
    "evidence.complete": _evidence_complete,
    "node.responds": _node_responds,
    "node.accelerators": _node_accelerators,
    "health.events": _health_events,
    "run.length": _run_length,
}
