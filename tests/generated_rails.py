"""The rails of a generated run, and what its NICs and NCCL say of themselves."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from generated_runs import _Rental, _value, _Work

from hwlottery.evidence import AnyRecord, Fact, Measurement, value_of
from hwlottery.fabric import (
    Observation,
    Pair,
    Thresholds,
    blame_of_rails,
    levels_of,
    node_and_rail,
    places_of,
    rail_subject,
    retests_of_parts,
)
from hwlottery.probes.tournament import ring

GIB = 2**30
TYPICAL = {"cuda": 97.0, "cpu": 0.11}  # GB/s; of a line of 100
LINE_BITS = 800_000_000_000


def nic_facts(rental: _Rental, node: str) -> Iterator[Fact]:
    """A NIC an accelerator, all up, and what NCCL said of its network; on CPUs nothing."""
    if rental.device == "cpu":
        return
    for index, rank in enumerate(rental.ranks(node)):
        for key, value in (("port1.state", "ACTIVE"), ("port1.rate", LINE_BITS)):
            yield Fact(subject=f"{node}/mlx5_{index}", key=key, value=value)
        sockets = rental.fault("sockets", node)
        yield Fact(subject=rank, key="fabric.network", value="Socket" if sockets else "IB")
        if not sockets:
            yield Fact(subject=rank, key="fabric.gpudirect", value=not rental.fault("no_gpudirect", node))


def rail_works(rental: _Rental, nodes: Sequence[str]) -> Iterator[_Work]:
    """Every rail of every node with its neighbours, then those of suspects alone."""
    if rental.fault("rails", "cluster"):
        return  # those of generated_pairs
    source = random.Random(f"rails {nodes}")
    seen: list[Observation] = []
    first: dict[Pair, str] = {}
    tried: Counter[Pair] = Counter()
    for one, other in (meeting for meetings in ring(len(nodes)) for meeting in meetings):
        for rail in range(rental.accelerators):
            places = places_of(nodes[one], nodes[other], rail)
            work = _trial(rental, places, source, attempt=1, retest_of=None)
            first[places] = work.trial
            seen += _observed(places, work)
            yield work
    for places in list(first) if len(nodes) == 2 else ():
        tried[places] += 1
        work = _trial(rental, places, source, attempt=2, retest_of=first[places])
        seen += _observed(places, work)
        yield work
    while (levels := levels_of(seen, Thresholds())) and (
        again := retests_of_parts(blame_of_rails(levels).values(), levels, tried)
    ):
        for places in again:
            tried[places] += 1
            work = _trial(rental, places, source, attempt=1 + tried[places], retest_of=first.get(places))
            first.setdefault(places, work.trial)
            seen += _observed(places, work)
            yield work


def nic_records(rental: _Rental, node: str) -> list[AnyRecord]:
    """What the node's own NICs carry; on CPUs nothing."""
    if rental.device == "cpu" or rental.fault("rails", "cluster"):
        return []
    params = {"bytes": GIB, "dtype": "fp32", "ranks": rental.accelerators, "path": "nic"}
    return [
        _value("all_reduce.nic_busbw", node, rental.samples(40.0), **params),
        _value("all_reduce.nic_wrong_elements", node, [0.0], **params),
    ]


def _trial(rental: _Rental, places: Pair, source: random.Random, attempt: int, retest_of: str | None) -> _Work:
    subject = rail_subject(places)
    (one, rail), (other, _) = map(node_and_rail, places)
    slow = [rental.fault("slow_rail", part) for part in (*places, subject)] + [rental.fault("slow_rails", "cluster")]
    share = min(fault.severity if fault else 1.0 for fault in slow)
    speed = TYPICAL[rental.device] * share * (1 + source.gauss(0, 0.004))
    wrong = rental.fault("wrong_rail", subject)
    elements = wrong.severity if wrong and attempt == 1 else 0.0
    brought: list[AnyRecord] = [
        _value(
            "rail.busbw",
            subject,
            [speed * (1 + source.gauss(0, 0.002)) for _ in range(20)],
            bytes=GIB,
            dtype="fp32",
            ranks=2,
        ),
        _value("rail.wrong_elements", subject, [elements], bytes=GIB, dtype="fp32", ranks=2),
    ]
    return _Work(
        probe="rails", function="rails:along_the_rail", brought=brought, seconds=0.1, attempt=attempt,
        subjects=[rental.ranks(one)[rail], rental.ranks(other)[rail]], retest_of=retest_of,
    )  # fmt: skip


def _observed(places: Pair, work: _Work) -> Iterator[Observation]:
    for record in work.brought:
        if isinstance(record, Measurement) and record.metric == "rail.busbw":
            yield Observation(pair=places, value=value_of(record) or 0.0, alone=work.attempt > 1, error=0.001)
