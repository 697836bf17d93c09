"""pairs: how fast every two nodes sum a buffer, and all of them together.

A tournament: rounds of disjoint pairs at once, every pair once (with many nodes: log2(n) partners each). What looks
slow or stalls is then measured again alone, with partners that do well, before anybody is blamed (fabric/). Last the
whole cluster, its half, its quarter.

A pair's ranks are all ranks of both nodes unless the settings take fewer. As in all_reduce an iteration's time is that
of its slowest rank, busbw = 2(n-1)/n x bytes / time, and every element of every sum is compared with the exact one.
Attempt 1 of a pair is the tournament's, beside other pairs; later attempts are alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from ..cluster import Cluster, Finished, Joining, Node, Outcome, Trial, WorkerLost
from ..evidence import AnyReading, Fill, Params, Reading
from ..evidence.subjects import Kind
from ..fabric import (
    Observation,
    Pair,
    Thresholds,
    blame,
    levels_of,
    pair_of,
    wanted_retests,
    wanted_stall_retests,
)
from .collective_settings import nccl_debug_env
from .observations import observations
from .pair_sums import BUSBW, LATENCY, SKEW, STALLS, WRONG, reduce_together
from .protocol import Plan
from .tournament import hypercube, round_robin

__all__ = ["Pairs", "PairsSettings", "reduce_together"]

KIB = 1 << 10
# For the plan's times alone, bytes/s of one all-reduce with its refill and check: as a rule, and the least for which
# the deadline still holds: a tenth of a 200 Mbit/s cable, a hundredth of a 200 Gbit/s one.
_USUAL = {"cpu": 5e7, "cuda": 2e10}
_SLOWEST = {"cpu": 2e6, "cuda": 2e8}
_SETTLE_S = 90.0  # ranks meet, and NCCL builds its channels
MOST_FAILURES = 3  # in a row, after which a node is left alone


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSettings:
    """`sizes_kib` are each rank's buffer, the largest decides who is slow. `latency_bytes`: so small that only latency
    counts. `ranks_a_node`: so many of each node's ranks take part, None for all. Up to `round_robin_up_to` nodes every
    pair is measured. `effect`: the smallest loss that matters, as a share. `most_retests`: trials at most."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sizes_kib: tuple[int, ...]
    latency_bytes: int = 8
    latency_iterations: int = 200
    dtype: Literal["fp32", "bf16"] = "fp32"
    warm_ups: int = 5
    iterations: int = 20
    ranks_a_node: int | None = None
    round_robin_up_to: int = 64
    effect: float = 0.10
    most_retests: int = 200

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.sizes_kib or min(self.sizes_kib) < 1 or self.latency_bytes < 4:
            raise ValueError("pairs needs sizes of at least 1 KiB, and 4 bytes for latency")
        ranks = 1 if self.ranks_a_node is None else self.ranks_a_node
        counts = (self.warm_ups, self.iterations, self.latency_iterations, ranks)
        if min(counts) < 1 or not 0.01 <= self.effect <= 0.4 or self.most_retests < 0:
            raise ValueError("pairs needs at least one warm-up, iteration and rank, and an effect of 0.01 to 0.4")


class Pairs:
    """The pairs probe. With fewer than two nodes there is nothing to do."""

    name: ClassVar[str] = "pairs"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (BUSBW, SKEW, WRONG, LATENCY, STALLS)
    subjects: ClassVar[tuple[Kind, ...]] = ("pair", "cluster")
    nodes_at_least: ClassVar[int] = 2
    retests: ClassVar[tuple[str, ...]] = (BUSBW, STALLS)
    settings: ClassVar[type] = PairsSettings

    def plan(self, cluster: Cluster, settings: PairsSettings, seed: int) -> Plan:
        """The tournament, retests of suspects, and the cluster as a whole."""
        nodes = tuple(node for node in cluster.nodes if node.ranks)
        if len(nodes) >= 2:
            campaign = _Campaign(nodes, cluster.device, settings, cluster.joining)
            yield from campaign.tournament()
            yield from campaign.retests()
            yield from campaign.scaling()


class _Campaign:
    """One run of the probe: what was seen so far, and who is still there."""

    def __init__(
        self, nodes: Sequence[Node], device: str, settings: PairsSettings, joining: Joining | None = None
    ) -> None:
        self.nodes = nodes
        self.joining = joining
        self.left_out = set(_accepted_already(nodes, joining)) if joining else set()
        self.device = device
        self.settings = settings
        self.by_name = {node.name: node for node in nodes}
        self.place = {node.name: place for place, node in enumerate(nodes)}
        self.seen: list[Observation] = []
        self.stalls: dict[Pair, list[float]] = {}  # a count a trial
        self.first_trial: dict[Pair, str] = {}
        self.tried: Counter[Pair] = Counter()
        self.failures: Counter[str] = Counter()  # in a row
        self.gone: set[str] = set()

    def tournament(self) -> Plan:
        """Rounds of disjoint pairs at once."""
        count = len(self.nodes)
        schedule = round_robin(count) if count <= self.settings.round_robin_up_to else hypercube(count)
        for meetings in schedule:
            names = (pair_of(self.nodes[one].name, self.nodes[other].name) for one, other in meetings)
            pairs = [pair for pair in names if not self.gone & set(pair) and pair not in self.left_out]
            if pairs:
                outcomes = yield [self._pair_trial(pair) for pair in pairs]
                for pair, outcome in zip(pairs, outcomes, strict=True):
                    self._learn(pair, outcome, alone=False)

    def retests(self) -> Plan:
        """Suspects, what would settle a doubt, and a few good pairs to compare with: each alone on the fabric."""
        while pairs := self._wanted():
            for pair in pairs:
                self.tried[pair] += 1
                (outcome,) = yield [self._pair_trial(pair)]
                self._learn(pair, outcome, alone=True)

    def scaling(self) -> Plan:
        """All nodes that are left, half of them, a quarter, down to two. Nodes that retests have shown to be slow are
        left out: the whole is judged as it would be used, without them."""
        levels = levels_of(self.seen, Thresholds(effect=self.settings.effect))
        slow = {culprit.node for culprit in (blame(levels).nodes if levels else ()) if culprit.confirmed}
        left = [node for node in self.nodes if node.name not in self.gone | slow]
        while len(left) >= 2:
            (outcome,) = yield [self._trial("cluster", left, {"nodes": len(left)})]
            lost = set(outcome.subjects) if isinstance(outcome, WorkerLost) else set()
            there = [node for node in left if node.name not in lost]
            left = left[: len(left) // 2] if len(there) == len(left) else there

    def _wanted(self) -> list[Pair]:
        """What to measure again, as far as both nodes are there and the number of retests allows."""
        levels = levels_of(self.seen, Thresholds(effect=self.settings.effect))
        slow = wanted_retests(blame(levels), self.tried) if levels else []
        wanted = dict.fromkeys([*slow, *wanted_stall_retests(self.stalls, self.tried)])
        room = self.settings.most_retests - self.tried.total()
        return [pair for pair in wanted if not self.gone & set(pair)][: max(0, room)]

    def _learn(self, pair: Pair, outcome: Outcome, *, alone: bool) -> None:
        if outcome.trial is not None:
            self.first_trial.setdefault(pair, outcome.trial)
        if isinstance(outcome, Finished):
            self.failures -= Counter({node: self.failures[node] for node in pair})
            size = max(self.settings.sizes_kib) * KIB
            self.seen += observations(pair, outcome.readings, BUSBW, size, alone=alone)
            self.stalls.setdefault(pair, []).extend(_stalls(outcome.readings))
            return
        self.failures.update(pair)
        self.gone |= {node for node in pair if self.failures[node] >= MOST_FAILURES}
        if isinstance(outcome, WorkerLost):
            self.gone |= set(outcome.subjects) & set(pair)

    def _pair_trial(self, pair: Pair) -> Trial:
        one, other = sorted(pair, key=self.place.__getitem__)
        return self._trial(
            f"{one}~{other}",
            [self.by_name[one], self.by_name[other]],
            {},
            attempt=1 + self.tried[pair],
            retest_of=self.first_trial.get(pair) if self.tried[pair] else None,
        )

    def _trial(
        self, subject: str, nodes: Sequence[Node], more: Params, attempt: int = 1, retest_of: str | None = None
    ) -> Trial:
        settings = self.settings
        ranks = tuple(rank for node in nodes for rank in node.ranks[: settings.ranks_a_node])
        sizes = [kib * KIB for kib in settings.sizes_kib]
        moved = float(sum(sizes) * (settings.warm_ups + settings.iterations))
        key: Params = {"dtype": settings.dtype, "ranks": len(ranks)} | more
        return Trial(
            function="pairs:reduce_together",
            ranks=ranks,
            params={
                "subject": subject,
                "sizes": sizes,
                "latency_bytes": settings.latency_bytes,
                "latency_iterations": settings.latency_iterations,
                "warm_ups": settings.warm_ups,
                "iterations": settings.iterations,
                "key": key,
            }
            | ({"join": self.joining.number} if self.joining else {}),
            env=nccl_debug_env(nodes[0].scratch) if self.device == "cuda" else {},
            collective=True,
            expected_s=0.5 + moved / _USUAL[self.device],
            deadline_s=_SETTLE_S + moved / _SLOWEST[self.device],
            fills=tuple(_fills(subject, sizes, settings.latency_bytes, key)),
            attempt=attempt,
            retest_of=retest_of,
        )


def _accepted_already(nodes: Sequence[Node], joining: Joining) -> Iterator[Pair]:
    """The pairs of accepted nodes that are not measured again. A few disjoint ones are, for newcomers are to be
    compared with what a good pair does on the same day, not with what one did then."""
    accepted = [node.name for node in nodes if node.name in joining.accepted]
    again = {pair_of(*two) for two in zip(accepted[::2], accepted[1::2], strict=False)}
    yield from (pair for two in combinations(accepted, 2) if (pair := pair_of(*two)) not in again)


def _fills(subject: str, sizes: Iterable[int], latency_bytes: int, key: Params) -> Iterator[Fill]:
    for size in sizes:
        for metric in (BUSBW, SKEW, WRONG):
            yield Fill(metric=metric, subject=subject, params={"bytes": size} | key)
    for metric in (LATENCY, STALLS, WRONG):
        yield Fill(metric=metric, subject=subject, params={"bytes": latency_bytes} | key)


def _stalls(readings: Iterable[AnyReading]) -> Iterator[float]:
    for one in readings:
        if isinstance(one, Reading) and one.metric == STALLS:
            yield from one.samples
