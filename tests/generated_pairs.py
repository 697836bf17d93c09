"""The pairs of a generated run: a tournament and the retests that its values ask for, as the probe makes them."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

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
TYPICAL = {"cuda": 47.5, "cpu": 0.11}  # GB/s
SAMPLED_ABOVE = 16  # nodes


def pair_works(rental: _Rental, nodes: Sequence[str]) -> Iterator[_Work]:
    """The trials of all pairs, then those of suspects alone."""
    source = random.Random(f"{nodes}")
    seen: list[Observation] = []
    stalls: dict[Pair, list[float]] = {}
    first: dict[Pair, str] = {}
    tried: Counter[Pair] = Counter()
    rounds = round_robin(len(nodes)) if len(nodes) <= SAMPLED_ABOVE else hypercube(len(nodes))
    for one, other in (meeting for meetings in rounds for meeting in meetings):
        pair = pair_of(nodes[one], nodes[other])
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
    lossy = any(rental.fault("lossy_node", n) or (attempt == 1 and rental.fault("busy_node", n)) for n in pair)
    brought.append(
        _value("all_reduce.stalls", subject, [5.0 if lossy else 0.0], bytes=8, dtype="fp32", ranks=len(ranks))
    )
    work = _Work(
        probe="pairs", function="pairs:reduce_together", subjects=ranks, brought=brought, seconds=0.1, attempt=attempt,
        retest_of=retest_of,
    )  # fmt: skip
    return _failed(work, "timeout", "timed_out") if rental.fault("no_pair", subject) else work


def _share(rental: _Rental, pair: Pair, attempt: int) -> float:
    """What the pair can do: the least of its two nodes and its link."""
    slow = [rental.fault("slow_node", node) for node in pair] + [rental.fault("slow_link", "~".join(pair))]
    once = rental.fault("unsteady_link", "~".join(pair)) if attempt == 1 else None
    return min([fault.severity for fault in slow if fault] + [0.6 if once else 1.0])


def _observed(pair: Pair, work: _Work) -> Iterator[Observation]:
    for record in work.brought:
        if isinstance(record, Measurement) and record.metric == "all_reduce.busbw":
            yield Observation(pair=pair, value=value_of(record) or 0.0, alone=work.attempt > 1, error=0.001)


def _stalls(work: _Work) -> Iterator[float]:
    for record in work.brought:
        if isinstance(record, Measurement) and record.metric == "all_reduce.stalls":
            yield value_of(record) or 0.0
