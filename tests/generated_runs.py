"""Run directories made from a seed, written by the real RunWriter: healthy ones, and ones with known faults.

    write_run(tmp_path / "run", nodes=4, accelerators=8, faults=["slow@n01/gpu3=0.78", "never_joined@n02"])

Faults are written kind@subject, some with a severity behind '=':

    slow@n01/gpu3=0.78       matmul and burn-in compute of one accelerator at that share, seen again in a retest
    intermittent@n01/gpu3    slow at first, as fast as the others in the retest
    wrong_elements@n01=4     so many wrong elements in the node's all-reduce
    mismatch@n01/gpu3=2      so many elements differ when the same product is computed again
    ecc@n01/gpu3=1           uncorrected memory errors under load, in one trial of two that watched
    slow_memory@n01/gpu3=0.85 its memory copies at that share, measured once
    throttled@n01/gpu3=0.4   share of readings with a slowdown
    mismatch_once@n01/gpu3=2 the same, and none in the retest
    never_joined@n01         promised, never there
    lost@n01                 the node's worker ended in its last trial
    hung@n01/gpu3            the last matmul trial of the node passed its deadline
    hung_aside@n01           a trial that brings nothing a policy asks for passed its deadline
    raised@n01               the memory trial of the node raised
    nan@n01/gpu3             one sample of matmul is NaN
    missing@n01/gpu3         the memory copy of one accelerator never came
    tool_missing@n01         no fio on the node
    unfinished@cluster       cut off: no run_finished, no checksums
    kernel@n01               another kernel than the other nodes have
    loss_rises@cluster       burn-in does not learn
    hash@cluster=1           so many ranks' parameter hashes disagree
    slow_node@n01=0.6        the node's pairs at that share, with everybody
    slow_link@n00~n01=0.6    one pair at that share
    unsteady_link@n00~n01    one pair slow in the tournament, well alone
    lossy_node@n01           small messages of the node's pairs stall
    busy_node@n01            they stall in the tournament, and not in retests
    wrong_pair@n00~n01=3     so many wrong elements between two nodes
    no_pair@n00~n01          the trial of one pair ran out of time
    two_levels@cluster=0.5   pairs of nodes of the first and of the second half at that share
    contention@cluster=0.5   pairs keep that share to all of their speed beside others, each its own
    leaves@cluster=4         the cables are known: node after node on the next of so many leaf switches
    rails@cluster=8          so many rails of each node were measured with two partners
    slow_rail@n01=5          that rail of a node at half
    oversubscribed@cluster=0.7 pairs beside others at that share of what they reach alone
    slow_rail@n01/rail1=0.6  one rail of a node, or n00~n01/rail1 of a pair, at that share (without rails@cluster)
    slow_rails@cluster=0.5   all rails of all nodes at that share
    wrong_rail@n00~n01/rail1=2 so many wrong elements on one rail of a pair
    wrong_all_to_all@cluster=2 so many wrong elements in that collective over all nodes
    sockets@n01              NCCL talks over sockets there
    no_gpudirect@n01         NCCL goes round by host memory there
    kept@cluster             a checkpoint that an earlier run left was looked for, and is as it was
    kept_gone@cluster=2      the same, and so many of its files are gone
    kept_altered@cluster=1   the same, and so many of its files are altered
"""

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from hwlottery.evidence import (
    AnyRecord,
    Device,
    Document,
    Event,
    Fact,
    Fill,
    Launcher,
    Measurement,
    NotMeasured,
    Promised,
    Run,
    RunHeader,
    RunWriter,
    Segment,
    Tier,
    TrialPlan,
    measured,
)
from hwlottery.evidence.records import Reason, TrialOutcome
from hwlottery.scoring import load_policy

START = datetime(2026, 11, 28, 14, 2, tzinfo=UTC)
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Chip:
    """What a healthy accelerator of this kind shows: TFLOPS by dtype, GB/s of memory and of all-reduce."""

    name: str
    memory_bytes: int
    power_limit_w: float
    tflops: dict[str, float]
    copy: float
    host: float
    busbw: dict[int, float]
    shape: int
    more_shapes: tuple[int, ...] = ()  # whose products are timed too
    model_tflops: float


H100 = Chip(
    name="NVIDIA H100 80GB HBM3",
    memory_bytes=85_024_112_640,
    power_limit_w=700.0,
    tflops={"bf16": 731.0, "fp16": 725.0, "tf32": 390.0, "fp8": 1330.0},
    copy=2950.0,
    host=55.3,
    busbw={16 * 2**20: 215.0, GIB: 465.0, 8 * GIB: 478.0},
    shape=8192,
    model_tflops=386.0,
)
CPU_SLOT = Chip(
    name="cpu",
    memory_bytes=0,
    power_limit_w=0.0,
    tflops={"fp32": 0.11},
    copy=9.5,
    host=0.0,
    busbw={2**20: 0.8, 64 * 2**20: 1.4},
    shape=1024,
    model_tflops=0.06,
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One injected fault: see the list at the top of this file."""

    kind: str
    subject: str
    severity: float = 1.0


def parse_fault(text: str) -> Fault:
    """'slow@n01/gpu3=0.78' taken apart."""
    kind, _, rest = text.partition("@")
    subject, _, severity = rest.partition("=")
    return Fault(kind=kind, subject=subject, severity=float(severity or 1.0))


@dataclass(kw_only=True)
class _Rental:
    """A cluster being written down: its random source, its faults and the clock of the records."""

    nodes: list[str]
    accelerators: int
    device: Device
    chip: Chip
    tier: Tier
    faults: Sequence[Fault]
    random: random.Random
    hours: float
    all_pairs_up_to: int = 16
    clock: datetime = field(default=START)

    def ranks(self, node: str) -> list[str]:
        word = "gpu" if self.device == "cuda" else "slot"
        return [f"{node}/{word}{index}" for index in range(self.accelerators)]

    def fault(self, kind: str, subject: str) -> Fault | None:
        return next((fault for fault in self.faults if (fault.kind, fault.subject) == (kind, subject)), None)

    def joined(self) -> list[str]:
        return [node for node in self.nodes if not self.fault("never_joined", node)]

    def hit(self, kind: str, node: str) -> Fault | None:
        """The fault of that kind on any subject of a node."""
        found = (f for f in self.faults if f.kind == kind and f.subject.split("/")[0] == node)
        return next(found, None)

    def samples(self, typical: float, count: int = 20, noise: float = 0.004) -> list[float]:
        return [typical * (1 + self.random.gauss(0, noise)) for _ in range(count)]

    def pass_time(self, seconds: float) -> datetime:
        self.clock += timedelta(seconds=seconds)
        return self.clock


def write_run(path: Path, **wanted: object) -> Path:
    """Write a run directory; the arguments are those of `make_run`."""
    header, records = make_run(**wanted)  # type: ignore[arg-type]
    return write_records(path, header, records)


def write_records(path: Path, header: RunHeader, records: Iterable[AnyRecord]) -> Path:
    """Write these records with numbers and sums of their own; a run_finished among them is left out or made anew."""
    kept = list(records)
    unfinished = any(isinstance(r, Event) and r.kind == "interrupted" and r.detail == UNFINISHED for r in kept)
    writer = RunWriter.create(path, header)
    writer.write(kept)
    if unfinished:
        writer.close()
    else:
        writer.log_path("burn_in-1.log").write_text("step 1 loss 10.4\n")
        writer.finish()
    return path


def as_run(header: RunHeader, records: Iterable[AnyRecord]) -> Run:
    """The records as read_run gives those of a whole run, numbered anew: without the cost of a disk."""
    numbered = [msgspec.structs.replace(record, number=place) for place, record in enumerate(records, 1)]
    return Run(
        path=Path("run"),
        header=header,
        plans=[record for record in numbered if isinstance(record, TrialPlan)],
        facts=[record for record in numbered if isinstance(record, Fact)],
        measurements=[record for record in numbered if isinstance(record, Measurement)],
        not_measured=[record for record in numbered if isinstance(record, NotMeasured)],
        events=[record for record in numbered if isinstance(record, Event)],
        problems=[],
        last_number=len(numbered),
        line_counts={},
    )


UNFINISHED = "cut off"


def make_run(
    *,
    nodes: int = 4,
    accelerators: int = 8,
    device: Device = "cuda",
    seed: int = 1,
    faults: Iterable[str] = (),
    policy: str = "acceptance",
    policy_text: str | None = None,
    tier: Tier = "container-root",
    chip: Chip | None = None,
    hours: float = 48.0,
    price: float | None = 2.5,
    simulated: bool = False,
    all_pairs_up_to: int = 16,
) -> tuple[RunHeader, list[AnyRecord]]:
    """The header and the records of a run, unnumbered, run_finished left to the writer."""
    rental = _Rental(
        nodes=[f"n{index:02d}" for index in range(nodes)],
        accelerators=accelerators,
        device=device,
        chip=chip or (H100 if device == "cuda" else CPU_SLOT),
        tier=tier,
        faults=[parse_fault(text) for text in faults],
        random=random.Random(seed),
        hours=hours,
        all_pairs_up_to=all_pairs_up_to,
    )
    text = policy_text if policy_text is not None else load_policy(policy).text
    header = _header(rental, policy, text, seed, price, simulated)
    return header, list(_records(rental))


def _header(rental: _Rental, policy: str, text: str, seed: int, price: float | None, simulated: bool) -> RunHeader:
    names = [rank.split("/")[1] for rank in rental.ranks("n00")]
    joined = rental.joined()
    profile = f"name: {policy}\n"
    return RunHeader(
        format=1,
        run_id=f"generated-{seed}",
        provider="Provider A",
        cluster="fra-2",
        price_per_gpu_hour=price,
        profile=Document(name=policy, sha256=_sha256(profile), text=profile),
        policy=Document(name=policy, sha256=_sha256(text), text=text),
        seed=seed,
        launcher=Launcher(name="local", why="no launcher was found"),
        promised=tuple(Promised(node=node, device=rental.device, ranks=tuple(names)) for node in rental.nodes),
        filesystems=tuple(f"{node}/fs:/scratch" for node in rental.nodes),
        simulated=simulated,
        segments=(
            Segment(
                start=START,
                hwlottery="0.1.0",
                methods={"matmul": "1", "all_reduce": "1"},
                software={node: {"torch": "2.13.0"} for node in joined},
                tiers=dict.fromkeys(joined, rental.tier),
                command=("hwlottery", "run"),
            ),
        ),
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _records(rental: _Rental) -> Iterator[AnyRecord]:
    yield Event(time=rental.clock, kind="run_started")
    for node in rental.nodes:
        if rental.fault("never_joined", node):
            yield Event(time=rental.clock, kind="node_lost", subject=node, severity="error", detail="never joined")
        else:
            yield Event(time=rental.clock, kind="node_joined", subject=node)
    for name, trials in _PROBES.items():
        yield Event(time=rental.pass_time(1), kind="probe_started", detail=name)
        for node in rental.joined():
            yield from trials(rental, node)
        yield Event(time=rental.pass_time(1), kind="probe_finished", detail=name)
    yield from _across_nodes(rental)
    yield from pair_records(rental)
    yield from _kept(rental)
    yield from _burn_in(rental)
    if rental.fault("unfinished", "cluster"):
        yield Event(time=rental.pass_time(1), kind="interrupted", detail=UNFINISHED)


@dataclass(kw_only=True)
class _Work:
    """One trial: what it is to bring, what it brought, and how it ended."""

    probe: str
    function: str
    subjects: list[str]
    brought: list[AnyRecord]
    seconds: float = 30.0
    outcome: TrialOutcome = "finished"
    attempt: int = 1
    retest_of: str | None = None
    events: list[Event] = field(default_factory=list)
    beside: list[AnyRecord] = field(default_factory=list)  # what sensors saw meanwhile: not among the fills

    @property
    def trial(self) -> str:
        named = f"{self.function}{self.subjects}{self.attempt}"
        return f"{self.probe}-{_sha256(named)[:12]}"


def _written(rental: _Rental, work: _Work) -> Iterator[AnyRecord]:
    """A trial as the runner writes it: plan, then what came, then trial_ended with the counts of its records."""
    values = [r for r in work.brought if isinstance(r, Measurement | NotMeasured)]
    yield TrialPlan(
        trial=work.trial,
        probe=work.probe,
        function=work.function,
        method="1",
        ranks=tuple(work.subjects),
        deadline_s=work.seconds * 4,
        fills=tuple(Fill(metric=r.metric, subject=r.subject, params=r.params) for r in values),
        attempt=work.attempt,
        retest_of=work.retest_of,
    )
    for record in (*work.brought, *work.beside):
        yield _of_trial(record, work)
    end = rental.pass_time(work.seconds)
    yield from work.events
    written = (*work.brought, *work.beside)
    counts = Counter("facts.jsonl" if isinstance(r, Fact) else "measurements.jsonl" for r in written)
    counts["events.jsonl"] += len(work.events)
    yield Event(
        time=end,
        kind="trial_ended",
        trial=work.trial,
        detail=work.function,
        outcome=work.outcome,
        counts={name: count for name, count in counts.items() if count},
    )


def _of_trial(record: AnyRecord, work: _Work) -> AnyRecord:

    if isinstance(record, Measurement | NotMeasured):
        return msgspec.structs.replace(record, trial=work.trial, attempt=work.attempt, retest_of=work.retest_of)
    return msgspec.structs.replace(record, trial=work.trial)


def _value(metric: str, subject: str, samples: Iterable[float], **params: str | int) -> Measurement | NotMeasured:
    return measured(metric=metric, subject=subject, samples=samples, params=dict(params))


def _failed(work: _Work, reason: Reason, outcome: TrialOutcome) -> _Work:
    """The same trial, with nothing brought."""
    work.brought = [
        NotMeasured(metric=r.metric, subject=r.subject, params=r.params, reason=reason)
        for r in work.brought
        if isinstance(r, Measurement | NotMeasured)
    ]
    work.outcome, work.beside = outcome, []
    return work


# --- inventory ---------------------------------------------------------------------------------------------------


def _inventory(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    facts = [Fact(subject=node, key=key, value=value) for key, value in _node_facts(rental, node).items()]
    for rank in rental.ranks(node):
        facts += [Fact(subject=rank, key=key, value=value) for key, value in _chip_facts(rental, rank).items()]
    ranks = rental.ranks(node)[:1]
    from generated_rails import nic_facts

    brought: list[AnyRecord] = [*facts, *nic_facts(rental, node)]
    leaves = rental.fault("leaves", "cluster")
    if leaves:
        number, count = rental.nodes.index(node), int(leaves.severity)
        cable = f"leaf{number % count + 1}:{number // count + 1}={node}/mlx5_0"
        brought.append(Fact(subject=cable, key="link.state", value="active"))
    if len(rental.nodes) > 1:
        brought.append(_value("clock.offset", node, [0.0002]))
    yield from _written(rental, _Work(probe="inventory", function="inventory:look", subjects=ranks, brought=brought))


def _node_facts(rental: _Rental, node: str) -> dict[str, str | int | float | bool]:
    return {
        "node.tier": rental.tier,
        "hardware.identity": _sha256(node)[:16],
        "os.kernel": "6.9.0-odd" if rental.fault("kernel", node) else "6.8.0-31-generic",
        "software.torch": "2.13.0",
        "software.kernel": "6.9.0-odd" if rental.fault("kernel", node) else "6.8.0-31-generic",
        "software.driver": "570.86.15",
        "software.cuda": "12.8",
        "software.nccl": "2.26.2",
        "limit.memlock": 64 * GIB,
        "limit.nofile": 1_048_576,
        "shm.size": 64 * GIB,
        "numa.nodes": 2,
        "access.kernel_log": True,
    }


def _chip_facts(rental: _Rental, rank: str) -> dict[str, str | int | float | bool]:
    if rental.device == "cpu":
        return {"accelerator.name": rental.chip.name}
    return {
        "accelerator.name": rental.chip.name,
        "accelerator.memory": rental.chip.memory_bytes,
        "accelerator.power_limit": rental.chip.power_limit_w,
        "accelerator.uuid": "GPU-" + _sha256(rank)[:12],
        "accelerator.vbios": "96.00.74.00.01",
        "accelerator.pcie_width_max": 16,
        "accelerator.pcie_generation_max": 5,
        "accelerator.nvlinks": 18,
    }


# --- matmul ------------------------------------------------------------------------------------------------------


def _matmul(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    work = _matmul_work(rental, node, attempt=1)
    hung = rental.hit("hung", node)
    if hung:
        work = _failed(work, "timeout", "timed_out")
        work.events = [Event(time=rental.clock, kind="hang", subject=hung.subject, severity="error", trial=work.trial)]
    yield from _written(rental, work)
    suspects = {"slow", "intermittent", "mismatch_once"}
    if any(rental.hit(kind, node) for kind in suspects):
        again = _matmul_work(rental, node, attempt=2)
        again.retest_of = work.trial
        yield from _written(rental, again)


def _matmul_work(rental: _Rental, node: str, attempt: int) -> _Work:
    ranks = rental.ranks(node)
    brought = [record for rank in ranks for record in _products(rental, rank, attempt)]
    work = _Work(probe="matmul", function="matmul:products", subjects=ranks, brought=brought, attempt=attempt)
    work.beside = [one for rank in ranks for one in _health(rental, rank, ecc=False)]
    return work


def _products(rental: _Rental, rank: str, attempt: int) -> Iterator[AnyRecord]:
    size = rental.chip.shape
    for dtype, typical in rental.chip.tflops.items():
        for phase in ("burst", "sustained"):
            speed = typical * _pace(rental, rank, attempt) * (1.05 if phase == "burst" else 1.0)
            samples = rental.samples(speed)
            if rental.fault("nan", rank) and (dtype, phase) == (next(iter(rental.chip.tflops)), "sustained"):
                samples[3] = math.nan
            yield _value("matmul.tflops", rank, samples, dtype=dtype, m=size, n=size, k=size, phase=phase)
            for side in rental.chip.more_shapes:
                more = rental.samples(speed)
                yield _value("matmul.tflops", rank, more, dtype=dtype, m=side, n=side, k=side, phase=phase)
        once = rental.fault("mismatch_once", rank) if attempt == 1 else None
        mismatch = rental.fault("mismatch", rank) or once
        wrong = mismatch.severity if mismatch and dtype == next(iter(rental.chip.tflops)) else 0.0
        yield _value("matmul.mismatches", rank, [wrong], dtype=dtype, m=size, n=size, k=size)
        yield _value("matmul.nonfinite", rank, [0.0], dtype=dtype, m=size, n=size, k=size)


def _pace(rental: _Rental, rank: str, attempt: int) -> float:
    slow, once = rental.fault("slow", rank), rental.fault("intermittent", rank)
    if slow:
        return slow.severity
    return 0.78 if once and attempt == 1 else 1.0


# --- memory, all-reduce, storage ---------------------------------------------------------------------------------


def _memory(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    brought: list[AnyRecord] = []
    for rank in rental.ranks(node):
        slow = rental.fault("slow_memory", rank)
        copy = _value("memory.copy", rank, rental.samples(rental.chip.copy * (slow.severity if slow else 1.0)))
        gone = NotMeasured(metric="memory.copy", subject=rank, reason="not_returned")
        brought.append(gone if rental.fault("missing", rank) else copy)
        brought.append(_value("memory.triad", rank, rental.samples(rental.chip.copy * 1.01)))
        if rental.device == "cuda":
            brought.append(_value("memory.host_to_device", rank, rental.samples(rental.chip.host)))
            brought.append(_value("memory.device_to_host", rank, rental.samples(rental.chip.host * 0.99)))
    brought += [_value("memory.host_copy", f"{node}/numa{i}", rental.samples(180.0)) for i in range(2)]
    work = _Work(probe="memory", function="memory:copies", subjects=rental.ranks(node), brought=brought)
    work.beside = [one for rank in rental.ranks(node) for one in _health(rental, rank, ecc=True)]
    if rental.fault("raised", node):
        work = _failed(work, "raised", "raised")
    yield from _written(rental, work)


def _health(rental: _Rental, rank: str, *, ecc: bool) -> list[AnyRecord]:
    """What the sensors of a GPU say of one trial."""
    if rental.device == "cpu":
        return []
    throttled, errors = rental.fault("throttled", rank), rental.fault("ecc", rank) if ecc else None
    return [
        _value("health.throttled", rank, [throttled.severity if throttled else 0.0]),
        _value("health.ecc_uncorrected", rank, [errors.severity if errors else 0.0]),
        _value("health.remap_pending", rank, [0.0]),
        _value("health.temperature", rank, rental.samples(66.0)),
        _value("health.power", rank, rental.samples(rental.chip.power_limit_w * 0.97)),
        _value("health.clock", rank, rental.samples(1755.0)),
    ]


def _topology(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    if rental.device == "cpu":
        return
    seen = {"topology.pcie_width": 16.0, "topology.pcie_gts": 32.0, "topology.nvlinks_active": 18.0}
    brought: list[AnyRecord] = [
        _value(metric, rank, [value]) for rank in rental.ranks(node) for metric, value in seen.items()
    ]
    work = _Work(probe="topology", function="topology:links", subjects=rental.ranks(node)[:1], brought=brought)
    if rental.fault("hung_aside", node):
        work = _failed(work, "timeout", "timed_out")
        first = rental.ranks(node)[0]
        work.events = [Event(time=rental.clock, kind="hang", subject=first, severity="error", trial=work.trial)]
    yield from _written(rental, work)


def _all_reduce(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    brought: list[AnyRecord] = []
    wrong = rental.fault("wrong_elements", node)
    for index, (size, typical) in enumerate(rental.chip.busbw.items()):
        n = max(2, rental.accelerators)
        busbw = rental.samples(typical)
        seconds = [2 * (n - 1) / n * size / (one * 1e9) for one in busbw]
        brought.append(_value("all_reduce.busbw", node, busbw, bytes=size, dtype="fp32", ranks=rental.accelerators))
        brought.append(
            _value(
                "all_reduce.algbw",
                node,
                [size / one / 1e9 for one in seconds],
                bytes=size,
                dtype="fp32",
                ranks=rental.accelerators,
            )
        )
        brought.append(
            _value(
                "all_reduce.transfer",
                node,
                [one * 0.97 for one in seconds],
                bytes=size,
                dtype="fp32",
                ranks=rental.accelerators,
            )
        )
        brought.append(
            _value(
                "all_reduce.skew",
                node,
                [one * 0.03 for one in seconds],
                bytes=size,
                dtype="fp32",
                ranks=rental.accelerators,
            )
        )
        brought.append(
            _value(
                "all_reduce.batched_busbw", node, [typical * 1.02], bytes=size, dtype="fp32", ranks=rental.accelerators
            )
        )
        elements = wrong.severity if wrong and index == 0 else 0.0
        brought.append(
            _value("all_reduce.wrong_elements", node, [elements], bytes=size, dtype="fp32", ranks=rental.accelerators)
        )
    yield from _written(
        rental, _Work(probe="all_reduce", function="all_reduce:sizes", subjects=rental.ranks(node), brought=brought)
    )


def _nics(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    from generated_rails import nic_records

    brought = nic_records(rental, node)
    if brought and len(rental.nodes) > 1:
        yield from _written(
            rental,
            _Work(probe="nics", function="nics:round_the_nics", subjects=rental.ranks(node), brought=brought),
        )


def _checkpoint(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    disk = f"{node}/fs:/scratch"
    parts = {"stage": 0.6, "write": 2.1, "sync": 4.8, "commit": 0.02}
    brought: list[AnyRecord] = [
        _value(f"checkpoint.{part}", disk, rental.samples(typical, 10, 0.03)) for part, typical in parts.items()
    ]
    brought.append(_value("checkpoint.save", disk, rental.samples(sum(parts.values()), 10, 0.03)))
    brought.append(_value("checkpoint.write_rate", disk, rental.samples(3.4, 10, 0.03)))
    brought.append(_value("checkpoint.read_back", disk, rental.samples(5.2, 3, 0.03)))
    brought.append(_value("checkpoint.hash_mismatches", disk, [0.0]))
    yield from _written(
        rental, _Work(probe="checkpoint", function="checkpoint:saves", subjects=rental.ranks(node), brought=brought)
    )


def _kept(rental: _Rental) -> Iterator[AnyRecord]:
    """A look at the checkpoint that an earlier run left."""
    gone, altered = rental.fault("kept_gone", "cluster"), rental.fault("kept_altered", "cluster")
    if not (gone or altered or rental.fault("kept", "cluster")):
        return
    counts = {"gone": gone.severity if gone else 0.0, "altered": altered.severity if altered else 0.0, "age": 6e5}
    brought: list[AnyRecord] = [_value(f"retention.{name}", "cluster", [count]) for name, count in counts.items()]
    ranks = rental.ranks(rental.joined()[0])[:1]
    work = _Work(probe="retention", function="retention:look_and_leave", subjects=ranks, brought=brought)
    yield from _written(rental, work)


def _filesystem(rental: _Rental, node: str) -> Iterator[AnyRecord]:
    disk = f"{node}/fs:/scratch"
    typical = {"write_rate": 3.1, "direct_write_rate": 4.2, "read_rate": 6.0, "write_p99": 0.02}
    brought: list[AnyRecord] = [
        _value(f"filesystem.{name}", disk, rental.samples(value, 3, 0.02)) for name, value in typical.items()
    ]
    if rental.fault("tool_missing", node):
        brought = [
            NotMeasured(metric=f"filesystem.{name}", subject=disk, reason="tool_missing", detail="apt-get install fio")
            for name in typical
        ]
    work = _Work(probe="filesystem", function="filesystem:fio", subjects=rental.ranks(node)[:1], brought=brought)
    if rental.fault("lost", node):
        work = _failed(work, "died", "worker_lost")
        work.events = [Event(time=rental.clock, kind="node_lost", subject=node, severity="error", trial=work.trial)]
    yield from _written(rental, work)


_PROBES = {
    "inventory": _inventory,
    "matmul": _matmul,
    "memory": _memory,
    "topology": _topology,
    "all_reduce": _all_reduce,
    "nics": _nics,
    "checkpoint": _checkpoint,
    "filesystem": _filesystem,
}


# --- burn-in -----------------------------------------------------------------------------------------------------


def _across_nodes(rental: _Rental) -> Iterator[AnyRecord]:
    """An all-reduce over all nodes that are still there."""
    ranks = [rank for node in _present(rental) for rank in rental.ranks(node)]
    if len(_present(rental)) < 2:
        return
    brought: list[AnyRecord] = []
    for size, typical in rental.chip.busbw.items():
        params = {"bytes": size, "dtype": "fp32", "ranks": len(ranks)}
        brought.append(_value("all_reduce.busbw", "cluster", rental.samples(typical * 0.77), **params))
        brought.append(_value("all_reduce.wrong_elements", "cluster", [0.0], **params))
    yield from _written(
        rental, _Work(probe="all_reduce", function="all_reduce:across", subjects=ranks, brought=brought)
    )


def pair_records(rental: _Rental) -> Iterator[AnyRecord]:
    """The tournament of the nodes that are still there, rails, and the retests that they ask for."""
    from generated_pairs import pair_works
    from generated_rails import rail_works

    there = _present(rental)
    for works in (pair_works, rail_works) if len(there) > 1 else ():
        for work in works(rental, there):
            yield from _written(rental, work)


def _present(rental: _Rental) -> list[str]:
    return [node for node in rental.joined() if not rental.hit("lost", node) and not rental.hit("hung", node)]


def _burn_in(rental: _Rental) -> Iterator[AnyRecord]:
    """One trial over all ranks that are still there."""
    ranks = [rank for node in _present(rental) for rank in rental.ranks(node)]
    if not ranks:
        return
    step = 1.9 if rental.device == "cuda" else 0.4
    brought: list[AnyRecord] = []
    for rank in ranks:
        compute = step * 0.8 / _pace(rental, rank, 2)
        brought.append(_value("burn_in.step", rank, rental.samples(step, 50)))
        brought.append(_value("burn_in.compute", rank, rental.samples(compute, 50)))
        brought.append(_value("burn_in.model_tflops", rank, rental.samples(rental.chip.model_tflops, 50)))
    disagreeing = rental.fault("hash", "cluster")
    whole = {
        "burn_in.tokens_per_second": rental.samples(6600.0 * len(ranks), 50),
        "burn_in.loss_drop": [-0.4 if rental.fault("loss_rises", "cluster") else 3.1],
        "burn_in.nonfinite_losses": [0.0],
        "burn_in.hash_disagreements": [disagreeing.severity if disagreeing else 0.0],
        "burn_in.checkpoint": rental.samples(12.0, 20, 0.05),
    }
    brought += [_value(metric, "cluster", samples) for metric, samples in whole.items()]
    seconds = rental.hours * 3600
    yield from _written(
        rental, _Work(probe="burn_in", function="burn_in:train", subjects=ranks, brought=brought, seconds=seconds)
    )
