"""One start or resume of a run, under way: probe's plan -> gangs -> records."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from .. import __version__
from ..cluster import Cluster, Doubts, Node, Outcome, Rank, Round
from ..cluster.control import ControlPlane, Returned, Sent
from ..cluster.node_tasks import died_idle_here
from ..evidence import (
    AnyRecord,
    Event,
    Observed,
    Promised,
    Run,
    RunError,
    RunHeader,
    RunWriter,
    Segment,
    Tier,
)
from ..evidence.records import Scalar
from ..evidence.writing import now
from ..probes import PROBES
from ..probes.profiles import Profile
from ..probes.protocol import Probe, would_measure
from .clock_records import clock_records
from .identify import Identified, differences, identify_here
from .joining import Reach, join, plane_for, unlike_records
from .preview import preview, wanted
from .progress import Progress
from .telemetry import TelemetryFiles, take_windows_here
from .trial_records import idle_death, plan_record, recorded_outcomes, result_records, skipped, trial_id

Show = Callable[[Progress], None]
# From a run's header and the facts seen so far to what tells values that are to be measured again.
MakeDoubts = Callable[[RunHeader, Mapping[tuple[str, str], Scalar]], Doubts]


def cluster_of(promised: tuple[Promised, ...], scratch: Path) -> Cluster:
    """The promised nodes as a cluster, before anything is known of them."""
    nodes = tuple(
        Node(
            name=node.node,
            scratch=str(scratch),
            ranks=tuple(
                Rank(subject=f"{node.node}/{short}", node=node.node, index=index, device=node.device)
                for index, short in enumerate(node.ranks)
            ),
        )
        for node in promised
    )
    return Cluster(nodes=nodes, device="cuda" if all(node.device == "cuda" for node in promised) else "cpu")


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
    recorded: dict[str, Outcome] = field(default_factory=dict)
    state: Progress = field(default_factory=lambda: Progress(probe="start", probe_number=0, probes=len(PROBES)))

    def drive(self) -> None:
        """Start the nodes, run every probe, and end the nodes."""
        header = self.writer.header
        expected = preview(PROBES, self.profile, self._promised_cluster(), header.only, None)
        self._tell(doing="starting nodes", expected_s=expected.expected_s, nodes=len(self.writer.header.promised))
        with plane_for(header, self.reach) as plane:
            self._join(plane)
            for number, probe in enumerate(PROBES, start=1):
                self._tell(probe=probe.name, probe_number=number, round=0, rounds=expected.probes[number - 1].rounds)
                self._run_probe(plane, probe)
                self._keep_telemetry(plane)
                self._tell(done_s=expected.start_s + sum(part.expected_s for part in expected.probes[:number]))
            self._note_idle_deaths(plane)

    def _promised_cluster(self) -> Cluster:
        header = self.writer.header
        if not header.filesystems:
            raise RunError(f"{self.writer.path}/run.json names no filesystem: it cannot be gone on with")
        return cluster_of(header.promised, Path(header.filesystems[0].partition("/fs:")[2]))

    def _join(self, plane: ControlPlane) -> None:
        """Start each promised node's worker, learn what it is, and open the run's segment."""
        cluster, log_of = self._promised_cluster(), self.writer.log_path

        def tell(doing: str) -> None:
            self._tell(doing=doing)

        joined = self._tell_joined
        here = join(plane, self.writer.header, cluster, self.reach, log_of=log_of, tell=tell, joined=joined)
        found: dict[str, Identified] = self._asked(plane, here, identify_here)
        self._open_segment(found)
        self._write(
            [
                Event(time=now(), kind="run_started", detail="" if self.earlier is None else "resumed"),
                *(Event(time=now(), kind="node_joined", subject=name) for name in here if name not in plane.lost),
            ]
        )
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
        """Add this start to run.json. On a resume, refuse to mix figures of unlike software, hardware or methods."""
        header = self.writer.header
        segment = Segment(
            start=now(),
            hwlottery=__version__,
            methods={probe.name: probe.method for probe in PROBES},
            software={name: identified.software for name, identified in found.items()},
            hardware={name: identified.hardware for name, identified in found.items()},
            command=self.command,
        )
        if self.earlier is not None:
            changed = differences(header.segments[-1], segment) if header.segments else []
            if changed and not self.rerun_changed:
                raise RunError(
                    f"{self.writer.path} was measured with something else: {'; '.join(changed)}. Its figures would be "
                    "mixed with others: give --rerun-changed to measure everything again, or start a new run"
                )
            if not changed:
                self.recorded = recorded_outcomes(self.earlier)
        self.writer.write_header(msgspec.structs.replace(header, segments=(*header.segments, segment)))

    def _run_probe(self, plane: ControlPlane, probe: Probe) -> None:
        header = self.writer.header
        self._note_lost(plane)
        cluster = self._current_cluster(plane)
        settings = self.profile.settings(probe.name, header.device)
        if settings is None or not wanted(probe.name, header.only):
            why = f"profile {self.profile.name}" if settings is None else f"--only {' '.join(header.only)}"
            self._skip(probe, f"left out by {why}")
            return
        self._write([Event(time=now(), kind="probe_started", detail=probe.name)])
        if cluster.nodes:
            self._tell(ranks=len(cluster.ranks))
            self._follow(plane, probe, cluster, settings)
        self._write([Event(time=now(), kind="probe_finished", detail=probe.name)])

    def _follow(self, plane: ControlPlane, probe: Probe, cluster: Cluster, settings: Any) -> None:
        """Follow a probe's plan round by round. A plan that raises ends its probe alone."""
        plan = probe.plan(cluster, settings, self.writer.header.seed)
        outcomes: list[Outcome] | None = None
        while True:
            try:
                trials = next(plan) if outcomes is None else plan.send(outcomes)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001  # a defect of one probe must not cost the run
                detail = f"the plan of {probe.name} raised {type(error).__name__}: {error}"[:500]
                self._write([Event(time=now(), kind="note", severity="error", detail=detail)])
                return
            outcomes = self._run_round(plane, probe, trials)

    def _run_round(self, plane: ControlPlane, probe: Probe, trials: Round) -> list[Outcome]:
        hardware = self.writer.header.segments[-1].hardware
        identities = [trial_id(probe, trial, hardware) for trial in trials]
        todo = [
            Sent(id=identity, trial=trial, seed=self.writer.header.seed)
            for identity, trial in zip(identities, trials, strict=True)
            if identity not in self.recorded
        ]
        self._write([plan_record(probe, sent.trial, sent.id) for sent in todo])
        if todo:
            self._tell(round=self.state.round + 1, ranks_busy=sum(len(sent.trial.ranks) for sent in todo))
            for sent, returned in zip(todo, plane.run_round(todo), strict=True):
                self._keep(plane, sent, returned)
            self._tell(ranks_busy=0, done_s=self.state.done_s + max(sent.trial.expected_s for sent in todo))
        outcomes = [msgspec.structs.replace(self.recorded[identity], trial=identity) for identity in identities]
        for outcome in outcomes:
            self._learn(outcome)
        return outcomes

    def _keep(self, plane: ControlPlane, sent: Sent, returned: Returned) -> None:
        """Write what came back of a trial; it is on disk before the next round."""
        for subject, text in returned.logs.items():
            with self.writer.log_path(f"{sent.id}-{subject.replace('/', '-')}.log").open("a") as log:
                log.write(text)
        self._write(result_records(sent.trial, sent.id, returned))
        self.recorded[sent.id] = returned.outcome
        self._note_lost(plane)

    def _learn(self, outcome: Outcome) -> None:
        """Keep the facts that a plan may know, and each node's access tier in run.json."""
        tiers: dict[str, Tier] = {}
        for reading in outcome.readings:
            if isinstance(reading, Observed):
                self.facts[(reading.subject, reading.key)] = reading.value
                if reading.key == "node.tier":
                    tiers[reading.subject] = msgspec.convert(reading.value, Tier)
        if tiers:
            header = self.writer.header
            *before, last = header.segments
            last = msgspec.structs.replace(last, tiers={**last.tiers, **tiers})
            self.writer.write_header(msgspec.structs.replace(header, segments=(*before, last)))

    def _current_cluster(self, plane: ControlPlane) -> Cluster:
        """The nodes that are still here, with the facts seen so far."""
        promised = self._promised_cluster()
        nodes = tuple(node for node in promised.nodes if node.name not in plane.lost)
        facts = dict(self.facts)
        doubts = self.doubts(self.writer.header, facts) if self.doubts is not None else None
        return Cluster(nodes=nodes, device=promised.device, facts=facts, doubts=doubts)

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
            for subject in _promised_subjects(header, would_measure(probe, name, len(header.promised)))
        )

    def _note_idle_deaths(self, plane: ControlPlane) -> None:
        """Ranks that died after their last trial are found at the end: no trial will."""
        nodes = [node.name for node in self._current_cluster(plane).nodes]
        for died in self._asked(plane, nodes, died_idle_here).values():
            self._write(idle_death(subject, now()) for subject in died)

    def _keep_telemetry(self, plane: ControlPlane) -> None:
        files = TelemetryFiles(self.writer.path / "telemetry")
        nodes = [node.name for node in self._current_cluster(plane).nodes]
        for node, windows in self._asked(plane, nodes, take_windows_here).items():
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


def _promised_subjects(header: RunHeader, kinds: tuple[str, ...]) -> Iterator[str]:
    """The promised subjects of these kinds, as far as they are known before anything is measured."""
    if "cluster" in kinds:
        yield "cluster"
    if "filesystem" in kinds:
        yield from header.filesystems
    for node in header.promised:
        if "node" in kinds:
            yield node.node
        for short in node.ranks:
            if short.rstrip("0123456789") in kinds:
                yield f"{node.node}/{short}"
