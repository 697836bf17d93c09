"""What happened during a run, by node and by trial."""

from collections.abc import Iterator

from ..evidence import Event, Run
from .scope import nodes_of

# A node that did one of these did not respond for all of the run.
SILENCE = {
    "node_lost": "was lost",
    "worker_lost": "lost a process",
    "hang": "hung",
    "stuck_in_kernel": "had a process stuck in the kernel",
}
GRAVE = ("error", "fatal")


class Happenings:
    """What happened during the run, by node and by trial, gathered once."""

    def __init__(self, run: Run, whole: Run | None = None) -> None:
        """`run` holds the records that stand for the nodes as they are now, `whole` all of them (joined.standing)."""
        self.run = run
        self.whole = whole or run
        self.joined: set[str] = set()
        self.silent: dict[str, list[Event]] = {}
        self.trouble: dict[str, list[Event]] = {}
        self.said_aside: dict[str, list[Event]] = {}  # errors of what stands beside the measuring
        self.ended: dict[str, Event] = {}
        self._blamed_trials = {e.trial or "" for e in self.whole.events if e.kind in SILENCE and nodes_of(e.subject)}
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
        elif event.kind in SILENCE and nodes:
            for node in nodes:
                self.silent.setdefault(node, []).append(event)
        elif event.severity in GRAVE:
            where = self.said_aside if event.kind == "note" and event.severity == "error" else self.trouble
            for node in nodes:
                where.setdefault(node, []).append(event)

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
