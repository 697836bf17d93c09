"""The pairs of a generated run: a tournament and the retests that its values ask for, as the probe makes them."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from generated_runs import _failed, _Rental, _value, _Work

from hwlottery.evidence import AnyRecord, Measurement, value_of
from hwlottery.fabric import (
    Observation,
    Pair,
    Thresholds,
    blame,
    levels_of,
    pair_of,
    wanted_retests,
    wanted_stall_retests,
)
from hwlottery.probes.tournament import hypercube, round_robin

GIB = 2**30
TYPICAL = {"cuda": 190.0, "cpu": 0.11}  # GB/s
LATENCY = {"cuda": 28e-6, "cpu": 2.4e-4}  # s
SMALL = {"bytes": 8, "dtype": "fp32"}
LONE = 6  # pairs that are measured alone too


def pair_works(rental: _Rental, nodes: Sequence[str], left_out: Collection[Pair] = ()) -> Iterator[_Work]:
    """The trials of all pairs that are not left out, then those of suspects alone."""
    source = random.Random(f"{nodes}")
    seen: list[Observation] = []
    stalls: dict[Pair, list[float]] = {}
    first: dict[Pair, str] = {}
    tried: Counter[Pair] = Counter()
    rounds = round_robin(len(nodes)) if len(nodes) <= rental.all_pairs_up_to else hypercube(len(nodes))
    for one, other in (meeting for meetings in rounds for meeting in meetings):
        pair = pair_of(nodes[one], nodes[other])
        if pair in left_out:
            continue
        work = _trial(rental, pair, source, attempt=1, retest_of=None)
        first[pair] = work.trial
        seen += _observed(pair, work)
        stalls.setdefault(pair, []).extend(_stalls(work))
        yield work
    while (levels := levels_of(seen, Thresholds())) and (
        again := dict.fromkeys([*wanted_retests(blame(levels), tried), *wanted_stall_retests(stalls, tried)])
    ):
        for pair in again:
            tried[pair] += 1
            work = _trial(rental, pair, source, attempt=1 + tried[pair], retest_of=first.get(pair))
            first.setdefault(pair, work.trial)
            seen += _observed(pair, work)
            stalls.setdefault(pair, []).extend(_stalls(work))
            yield work
    for pair in sorted(first.keys() - tried.keys())[: max(0, LONE - len(tried)) if len(nodes) > 3 else 0]:
        yield _trial(rental, pair, source, attempt=2, retest_of=first[pair])
    yield from _together(rental, nodes, source)
    yield from _rails(rental, nodes, source)


def _rails(rental: _Rental, nodes: Sequence[str], source: random.Random) -> Iterator[_Work]:
    """Each rail of each node with the node after it, and each node's NICs alone."""
    wanted = rental.fault("rails", "cluster")
    for place, node in enumerate(nodes[: len(nodes) if len(nodes) > 2 else 1] if wanted else ()):
        other = nodes[(place + 1) % len(nodes)]
        slow = {int(fault.severity) for name in (node, other) if (fault := rental.fault("slow_rail", name))}
        brought: list[AnyRecord] = [
            _value(
                "rail.busbw", f"{node}~{other}/rail{rail}",
                [48.5 * (0.5 if rail in slow else 1.0) * (1 + source.gauss(0, 0.004)) for _ in range(20)],
                bytes=GIB, dtype="fp32", ranks=2,
            )
            for rail in range(int(wanted.severity if wanted else 0))
        ]  # fmt: skip
        alone = 340.0 * (1 + source.gauss(0, 0.004))
        brought.append(_value("all_reduce.nic_busbw", node, [alone] * 20, bytes=GIB, dtype="fp32", ranks=8))
        yield _Work(probe="rails", function="rails:together", subjects=rental.ranks(node), brought=brought, seconds=0.1)


def _together(rental: _Rental, nodes: Sequence[str], source: random.Random) -> Iterator[_Work]:
    """All nodes that are not slow at once, half of them, a quarter, down to two: a little slower the more there are."""
    left = every = [node for node in nodes if not rental.fault("slow_node", node)]
    while len(left) >= 2:
        ranks = [rank for node in left for rank in rental.ranks(node)]
        speed = TYPICAL[rental.device] * 0.985 ** (len(left).bit_length() - 2)
        more = {"ranks": len(ranks), "nodes": len(left)}
        large = {"bytes": GIB, "dtype": "fp32", **more}
        brought: list[AnyRecord] = [
            _value("all_reduce.busbw", "cluster", [speed * (1 + source.gauss(0, 0.004)) for _ in range(20)], **large),
            _value("all_reduce.wrong_elements", "cluster", [0.0], **large),
            _value("all_reduce.latency", "cluster", [LATENCY[rental.device] * len(left).bit_length()], **SMALL, **more),
            _value("all_reduce.stalls", "cluster", [0.0], **SMALL, **more),
        ]
        if left == every:
            brought += [
                _value(f"{name}.{metric}", "cluster", [value] * 20, **large)
                for name, share in {"all_gather": 0.98, "reduce_scatter": 0.97, "all_to_all": 0.6}.items()
                for metric, value in {"busbw": speed * share, "wrong_elements": _wrong(rental, name)}.items()
            ]
        # The trial's id is made from its ranks: another function than a pair's.
        yield _Work(probe="pairs", function="pairs:reduce_all", subjects=ranks, brought=brought, seconds=0.1)
        left = left[: len(left) // 2]


def _wrong(rental: _Rental, operation: str) -> float:
    fault = rental.fault(f"wrong_{operation}", "cluster")
    return fault.severity if fault else 0.0


def _trial(rental: _Rental, pair: Pair, source: random.Random, attempt: int, retest_of: str | None) -> _Work:
    subject = "~".join(pair)
    speed = TYPICAL[rental.device] * _share(rental, pair, attempt) * (1 + source.gauss(0, 0.01))
    samples = [speed * (1 + source.gauss(0, 0.004)) for _ in range(20)]
    ranks = [rank for node in pair for rank in rental.ranks(node)]
    wrong = rental.fault("wrong_pair", subject)
    elements = wrong.severity if wrong and attempt == 1 else 0.0
    brought: list[AnyRecord] = [
        _value("all_reduce.busbw", subject, samples, bytes=GIB, dtype="fp32", ranks=len(ranks)),
        _value("all_reduce.wrong_elements", subject, [elements], bytes=GIB, dtype="fp32", ranks=len(ranks)),
    ]
    other = random.Random(f"{subject}/{attempt}")
    wait = [LATENCY[rental.device] * (1 + abs(other.gauss(0, 0.05))) for _ in range(20)]
    brought.append(_value("all_reduce.latency", subject, wait, **SMALL, ranks=len(ranks)))
    lossy = any(rental.fault("lossy_node", n) or (attempt == 1 and rental.fault("busy_node", n)) for n in pair)
    brought.append(_value("all_reduce.stalls", subject, [5.0 if lossy else 0.0], **SMALL, ranks=len(ranks)))
    work = _Work(
        probe="pairs", function="pairs:reduce_together", subjects=ranks, brought=brought, seconds=0.1, attempt=attempt,
        retest_of=retest_of,
    )  # fmt: skip
    return _failed(work, "timeout", "timed_out") if rental.fault("no_pair", subject) else work


def _share(rental: _Rental, pair: Pair, attempt: int) -> float:
    """What the pair can do: the least of its two nodes and its link."""
    slow = [rental.fault("slow_node", node) for node in pair] + [rental.fault("slow_link", "~".join(pair))]
    once = rental.fault("unsteady_link", "~".join(pair)) if attempt == 1 else None
    levels = rental.fault("two_levels", "cluster")
    apart = levels and rental.nodes.index(pair[0]) * 2 // len(rental.nodes) != (
        rental.nodes.index(pair[1]) * 2 // len(rental.nodes)
    )
    crowded = rental.fault("oversubscribed", "cluster") if attempt == 1 else None
    contended = rental.fault("contention", "cluster") if attempt == 1 else None
    keeps = random.Random("~".join(pair)).uniform(contended.severity, 1.0) if contended else 1.0
    shares = [fault.severity for fault in (*slow, crowded) if fault]
    return keeps * min([*shares, 0.6 if once else 1.0, levels.severity if levels and apart else 1.0])


def _observed(pair: Pair, work: _Work) -> Iterator[Observation]:
    for record in work.brought:
        if isinstance(record, Measurement) and record.metric == "all_reduce.busbw":
            yield Observation(pair=pair, value=value_of(record) or 0.0, alone=work.attempt > 1, error=0.001)


def _stalls(work: _Work) -> Iterator[float]:
    for record in work.brought:
        if isinstance(record, Measurement) and record.metric == "all_reduce.stalls":
            yield value_of(record) or 0.0
