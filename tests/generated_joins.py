"""Generated runs in which nodes joined an accepted one: its records, its end, then those of newcomers and partners."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import combinations

import msgspec
from generated_pairs import pair_works
from generated_rails import rail_works
from generated_runs import _PROBES, H100, _across_nodes, _burn_in, _present, _Rental, _written, make_run, parse_fault

from hwlottery.evidence import AnyRecord, Event, Joined, Promised, RunHeader, Segment
from hwlottery.evidence.writing import file_of

Made = tuple[RunHeader, list[AnyRecord]]


def make_join(
    *,
    before: Sequence[str] = (),
    faults: Sequence[str] = (),
    newcomers: Sequence[str] = ("n04",),
    partners: Sequence[str] = ("n00", "n01", "n02", "n03"),
    replaces: Mapping[str, str] | None = None,
    hours: float = 48.0,
    seed: int = 7,
) -> Made:
    """Nodes taken into a run of n00 to n03: `before` are the faults of then, `faults` those of the join."""
    old, records = make_run(nodes=4, accelerators=2, faults=before, seed=seed)
    began = max(record.time for record in records if isinstance(record, Event)) + timedelta(days=1)
    rental = _Rental(
        nodes=[*partners, *newcomers],
        accelerators=2,
        device="cuda",
        chip=H100,
        tier="container-root",
        faults=[parse_fault(text) for text in faults],
        random=random.Random(seed + 1),
        hours=hours,
        clock=began,
    )
    finished = _finished(records)
    header = _header(old, rental, newcomers, partners, dict(replaces or {}), finished.last_number or 0)
    return header, [*records, finished, *_joined(rental, set(partners))]


def _finished(records: Sequence[AnyRecord]) -> Event:
    """The accepted run's last record."""
    counts = Counter(file_of(record) for record in records)
    counts["events.jsonl"] += 1
    last = max(record.time for record in records if isinstance(record, Event))
    return Event(time=last, kind="run_finished", last_number=len(records) + 1, counts=dict(counts))


def _header(
    old: RunHeader,
    rental: _Rental,
    newcomers: Sequence[str],
    partners: Sequence[str],
    replaces: dict[str, str],
    last: int,
) -> RunHeader:
    former = tuple(node for node in old.promised if node.node in replaces.values())
    kept = tuple(node for node in old.promised if node not in former)
    before = msgspec.structs.replace(old.segments[0], hardware={node.node: f"of {node.node}" for node in old.promised})
    since = Segment(
        start=rental.clock,
        hwlottery="0.1.0",
        methods=before.methods,
        software={node: {"torch": "2.13.0"} for node in rental.joined()},
        hardware={node: f"new {node}" if node in newcomers else f"of {node}" for node in rental.joined()},
        tiers=dict.fromkeys(rental.joined(), rental.tier),
    )
    join = Joined(
        run_id=old.run_id,
        sha256="0" * 64,
        last_number=last,
        starts=1,
        newcomers=tuple(newcomers),
        partners=tuple(partners),
        replaces=replaces,
        former=former,
    )
    like = old.promised[0]
    promised = (*kept, *(Promised(node=name, device=like.device, ranks=like.ranks) for name in newcomers))
    return msgspec.structs.replace(
        old,
        format=2,
        run_id=f"joined-{old.run_id}",
        promised=promised,
        filesystems=tuple(f"{node.node}/fs:/scratch" for node in promised),
        segments=(before, since),
        joins=(join,),
    )


def _joined(rental: _Rental, partners: set[str]) -> Iterator[AnyRecord]:
    """What a join writes: newcomers alone, pairs with a newcomer and one of partners, training of all who are there."""
    yield Event(time=rental.clock, kind="run_started", detail="joined")
    for node in rental.nodes:
        gone = rental.fault("never_joined", node)
        yield Event(time=rental.clock, kind="node_lost" if gone else "node_joined", subject=node)
    for trials in _PROBES.values():
        for node in rental.joined():
            yield from _told_apart(trials(rental, node)) if node not in partners else ()
    there = _present(rental)
    again = set(zip(sorted(partners)[::2], sorted(partners)[1::2], strict=False))
    left_out = set(combinations(sorted(partners), 2)) - again
    for work in pair_works(rental, there, left_out):
        yield from _told_apart(_written(rental, work))
    for work in rail_works(rental, there):
        yield from _told_apart(_written(rental, work))
    yield from _told_apart(_across_nodes(rental))
    yield from _told_apart(_burn_in(rental))


def _told_apart(records: Iterator[AnyRecord]) -> Iterator[AnyRecord]:
    """With trial ids of their own: the real ones hold the hardware behind the ranks, and which join it is."""
    for record in records:
        more = {"trial": f"{record.trial}-j"} if record.trial else {}
        if getattr(record, "retest_of", None):
            more["retest_of"] = f"{record.retest_of}-j"
        yield msgspec.structs.replace(record, **more)
