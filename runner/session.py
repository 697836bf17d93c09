"""One start or resume of a run, under way: probe's plan -> gangs -> records."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..cluster import Cluster, Doubts, Outcome, Round, Trial, WorkerLost
from ..cluster.bounded_log import shortened
from ..cluster.control import ControlPlane, Returned, Sent
from ..cluster.node_tasks import died_idle_here
from ..evidence import AnyRecord, Event, Observed, Run, RunHeader, RunWriter, Tier
from ..evidence.records import Scalar
from ..evidence.writing import now
from ..probes import PROBES
from ..probes.profiles import Profile
from ..probes.protocol import Probe, would_measure
from .absent import absent_from, with_those_here
from .accepting import is_join_beginning
from .clock_records import clock_records
from .earlier import Earlier, earlier_of, last_seen
from .identify import Identified, identify_here
from .joining import Reach, join, plane_for, unlike_records
from .opening import opened, start_records, with_tiers
from .preview import preview, wanted
from .progress import Progress
from .promise import cluster_now, promised_subjects
from .telemetry import TelemetryFiles, take_windows_here
from .trial_records import idle_death, plan_record, result_records, skipped, trial_id

Show = Callable[[Progress], None]
# From a run's header and the facts seen so far to what tells values that are to be measured again.
MakeDoubts = Callable[[RunHeader, Mapping[tuple[str, str], Scalar]], Doubts]


@dataclass(kw_only=True, slots=True)
class Session:
    """One start or resume of a run, under way."""

    writer: RunWriter
    profile: Profile
    show: Show
    command: tuple[str, ...]
    earlier: Run | None = None
    rerun_changed: bool = False
    reach: Reach = field(default_factory=Reach)
    doubts: MakeDoubts | None = None
    facts: dict[tuple[str, str], Scalar] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    past: Earlier = field(default_factory=Earlier)
    recorded: dict[str, Outcome] = field(default_factory=dict)
    state: Progress = field(default_factory=lambda: Progress(probe="start", probe_number=0, probes=len(PROBES)))

    def drive(self) -> None:
        """Start the nodes, run every probe, and end the nodes."""
        header = self.writer.header
        expected = preview(PROBES, self.profile, cluster_now(header), header.only, None)
        self._tell(doing="starting nodes", expected_s=expected.expected_s, nodes=len(header.taking_part))
        with plane_for(header, self.reach) as plane:
            self._join(plane)
            for number, probe in enumerate(PROBES, start=1):
                self._tell(probe=probe.name, probe_number=number, round=0, rounds=expected.probes[number - 1].rounds)
                self._run_probe(plane, probe)
                self._keep_telemetry(plane)
                self._tell(done_s=expected.start_s + sum(part.expected_s for part in expected.probes[:number]))
            self._note_idle_deaths(plane)

    def _join(self, plane: ControlPlane) -> None:
        """Start each promised node's worker, learn what it is, and open the run's segment."""
        header, log_of = self.writer.header, self.writer.log_path

        def tell(doing: str) -> None:
            self._tell(doing=doing)

        joined = self._tell_joined
        here = join(plane, header, cluster_now(header), self.reach, log_of=log_of, tell=tell, joined=joined)
        found: dict[str, Identified] = self._asked(plane, here, identify_here)
        fresh = is_join_beginning(header)
        self._open_segment(found)
        self.absent = frozenset(plane.lost)
        told = "joined" if fresh else "" if self.earlier is None else "resumed"
        self._write(start_records(self.writer.header, told, [name for name in here if name not in plane.lost]))
        self._write(unlike_records({name: identified.software for name, identified in found.items()}))
        self._write(clock_records(plane, self.writer.header, tuple(found)))
        self._note_lost(plane)

    def _asked(self, plane: ControlPlane, nodes: Iterable[str], function: Callable[[], Any]) -> dict[str, Any]:
        """What a function says in the workers of nodes. Lost nodes are left out, and those where it raises, which is
        said in an event: what stands beside the measuring must not cost the run."""
        answers = plane.call_each(nodes, function)
        for node, answer in answers.items():
            if isinstance(answer, Exception):
                what = f"{function.__name__} raised {type(answer).__name__}: {answer}"
                self._write([Event(time=now(), kind="note", subject=node, severity="error", detail=what[:500])])
        return {node: answer for node, answer in answers.items() if not isinstance(answer, Exception)}

    def _open_segment(self, found: dict[str, Identified]) -> None:
        """Add this start to run.json, and take over what need not run again."""
        opening = opened(self.writer.header, found, command=self.command, rerun_changed=self.rerun_changed)
        self.writer.write_header(opening.header)
        seen = last_seen(opening.header)
        self.hardware = seen.hardware if seen else {}
        if self.earlier is not None and not opening.all_again:
            self.past = earlier_of(self.earlier, opening.header)
            self.recorded = dict(self.past.outcomes)

    def _run_probe(self, plane: ControlPlane, probe: Probe) -> None:
        header = self.writer.header
        self._note_lost(plane)
        here = self._nodes_here(plane)
        settings = self.profile.settings(probe.name, header.device)
        if settings is None or not wanted(probe.name, header.only):
            why = f"profile {self.profile.name}" if settings is None else f"--only {' '.join(header.only)}"
            self._skip(probe, f"left out by {why}")
            return
        self._write([Event(time=now(), kind="probe_started", detail=probe.name)])
        if here:
            self._follow_with_absent(plane, probe, here, settings) or self._follow(plane, probe, here, settings)
        self._write([Event(time=now(), kind="probe_finished", detail=probe.name)])

    def _follow_with_absent(self, plane: ControlPlane, probe: Probe, here: list[str], settings: Any) -> bool:
        """Where a part of this probe was done with nodes that did not come back: follow its plan with them, to find
        what has ended. False where there is none, or where the plan needs them for more than that."""
        known = self.absent & self.past.took_part.get(probe.name, frozenset())
        return bool(known) and self._follow(plane, probe, [*here, *known], settings)

    def _follow(self, plane: ControlPlane, probe: Probe, nodes: Collection[str], settings: Any) -> bool:
        """Follow a probe's plan round by round. A plan that raises ends its probe alone. False where it needs a node
        that is not there."""
        cluster = self._cluster_of(nodes)
        self._tell(ranks=len(cluster.ranks))
        plan = probe.plan(cluster, settings, self.writer.header.seed)
        outcomes: list[Outcome] | None = None
        while True:
            try:
                trials = next(plan) if outcomes is None else plan.send(outcomes)
            except StopIteration:
                return True
            except Exception as error:  # noqa: BLE001  # a defect of one probe must not cost the run
                detail = f"the plan of {probe.name} raised {type(error).__name__}: {error}"[:500]
                self._write([Event(time=now(), kind="note", severity="error", detail=detail)])
                return True
            trials = [t if self._has_ended(probe, t) else with_those_here(t, self.absent) for t in trials]
            if any(t.collective and absent_from(t, self.absent) and not self._has_ended(probe, t) for t in trials):
                plan.close()
                return False
            outcomes = self._run_round(plane, probe, trials)

    def _has_ended(self, probe: Probe, trial: Trial) -> bool:
        """Whether the trial has ended, in this start or before."""
        return trial_id(probe, trial, self.hardware) in self.recorded

    def _run_round(self, plane: ControlPlane, probe: Probe, trials: Round) -> list[Outcome]:
        """The outcomes of a round: recorded ones as they are, the others after they ran. What would need only nodes
        that did not come back is not begun."""
        identities = [trial_id(probe, trial, self.hardware) for trial in trials]
        todo = [
            Sent(id=identity, trial=trial, seed=self.writer.header.seed)
            for identity, trial in zip(identities, trials, strict=True)
            if identity not in self.recorded and not absent_from(trial, self.absent)
        ]
        self._write([plan_record(probe, sent.trial, sent.id) for sent in todo])
        if todo:
            self._tell(round=self.state.round + 1, ranks_busy=sum(len(sent.trial.ranks) for sent in todo))
            records: list[AnyRecord] = []
            for sent, returned in zip(todo, plane.run_round(todo), strict=True):
                records += self._kept(sent, returned)
            self._write(records)
            self._note_lost(plane)
            self._tell(ranks_busy=0, done_s=self.state.done_s + max(sent.trial.expected_s for sent in todo))
        outcomes = [
            msgspec.structs.replace(self.recorded[identity], trial=identity)
            if identity in self.recorded
            else WorkerLost(subjects=absent_from(trial, self.absent), message="did not come back")
            for identity, trial in zip(identities, trials, strict=True)
        ]
        self._learn(outcomes)
        return outcomes

    def _kept(self, sent: Sent, returned: Returned) -> list[AnyRecord]:
        """Keep what came back of a trial: its logs and its outcome now, its records with those of its round, which are
        on disk before the next one."""
        for subject, text in returned.logs.items():
            with self.writer.log_path(f"{sent.id}-{subject.replace('/', '-')}.log").open("a") as log:
                log.write(shortened(text))
        self.recorded[sent.id] = returned.outcome
        return result_records(sent.trial, sent.id, returned)

    def _learn(self, outcomes: Iterable[Outcome]) -> None:
        """Keep the facts that a plan may know, and each node's access tier in run.json."""
        tiers: dict[str, Tier] = {}
        for reading in (reading for outcome in outcomes for reading in outcome.readings):
            if isinstance(reading, Observed):
                self.facts[(reading.subject, reading.key)] = reading.value
                if reading.key == "node.tier":
                    tiers[reading.subject] = msgspec.convert(reading.value, Tier)
        if tiers:
            self.writer.write_header(with_tiers(self.writer.header, tiers))

    def _nodes_here(self, plane: ControlPlane) -> list[str]:
        return [node.node for node in self.writer.header.taking_part if node.node not in plane.lost]

    def _cluster_of(self, nodes: Collection[str]) -> Cluster:
        """These nodes of those that are measured now, with the facts seen so far."""
        promised = cluster_now(self.writer.header)
        chosen = tuple(node for node in promised.nodes if node.name in nodes)
        facts = dict(self.facts)
        doubts = self.doubts(self.writer.header, facts) if self.doubts is not None else None
        return msgspec.structs.replace(promised, nodes=chosen, facts=facts, doubts=doubts)

    def _note_lost(self, plane: ControlPlane) -> None:
        """Say of each node that is gone, once, that it is and why."""
        new = [name for name in plane.lost if name not in self.state.nodes_lost]
        self._write(
            Event(time=now(), kind="node_lost", subject=name, severity="fatal", detail=plane.lost[name]) for name in new
        )
        if new:
            lost = (*self.state.nodes_lost, *new)
            self._tell(nodes_lost=lost, nodes_here=self.state.nodes - len(lost))

    def _skip(self, probe: Probe, detail: str) -> None:
        """A probe that is left out is said for each of its metrics and each subject that it would have measured."""
        header = self.writer.header
        self._write(
            skipped(name, subject, "skipped_by_profile", detail)
            for name in probe.metrics
            for subject in promised_subjects(header, would_measure(probe, name, len(header.promised)))
        )

    def _note_idle_deaths(self, plane: ControlPlane) -> None:
        """Ranks that died after their last trial are found at the end: no trial will."""
        for died in self._asked(plane, self._nodes_here(plane), died_idle_here).values():
            self._write(idle_death(subject, now()) for subject in died)

    def _keep_telemetry(self, plane: ControlPlane) -> None:
        files = TelemetryFiles(self.writer.path / "telemetry")
        for node, windows in self._asked(plane, self._nodes_here(plane), take_windows_here).items():
            files.add(node, windows)

    def _write(self, records: Any) -> None:
        listed: list[AnyRecord] = list(records)
        if listed:
            self.writer.write(listed)

    def _tell_joined(self, count: int) -> None:
        if count != self.state.nodes_here:
            self._tell(nodes_here=count)

    def _tell(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        self.show(self.state)
