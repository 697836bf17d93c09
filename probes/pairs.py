"""pairs: how fast every two nodes sum a buffer, and all of them together.

A tournament: rounds of disjoint pairs at once, every pair once (with many nodes: log2(n) partners each). What looks
slow or stalls is then measured again alone, with partners that do well, before anybody is blamed (fabric/). Last the
whole cluster, its half, its quarter.

On GPUs pairs and the scaling take the ring, for with two nodes a tree moves fewer bytes over the wire than the formula
assumes; the whole cluster is measured by NCCL's own choice too, as training would find it. Where nodes share NVLink
domains, pairs within and between these are levels of their own, and each domain sums alone.

A pair's ranks are all ranks of both nodes unless the settings take fewer. As in all_reduce an iteration's time is that
of its slowest rank, busbw = 2(n-1)/n x bytes / time, and every element of every sum is compared with the exact one.
Attempt 1 of a pair is the tournament's, beside other pairs; later attempts are alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import ClassVar

from ..cluster import Cluster, Finished, Joining, Node, Outcome, Trial, WorkerLost
from ..evidence import AnyReading, Params, Reading
from ..evidence.subjects import Kind
from ..fabric import (
    Blame,
    Observation,
    Pair,
    Thresholds,
    blame,
    level_of,
    levels_of,
    pair_of,
    wanted_retests,
    wanted_stall_retests,
)
from .domains import nvlink_domains
from .observations import observations
from .pair_sums import BUSBW, LATENCY, SKEW, STALLS, WRONG, reduce_together
from .pair_trials import KIB, PairsSettings, sum_trial
from .protocol import Plan
from .tournament import hypercube, round_robin

__all__ = ["Pairs", "PairsSettings", "reduce_together"]

FEWEST_AT_ONCE = 4  # nodes, of fewer of which no two pairs run at once
MOST_FAILURES = 3  # in a row, after which a node is left alone


class Pairs:
    """The pairs probe. With fewer than two nodes there is nothing to do."""

    name: ClassVar[str] = "pairs"
    method: ClassVar[str] = "2"  # pairs take the ring
    metrics: ClassVar[tuple[str, ...]] = (BUSBW, SKEW, WRONG, LATENCY, STALLS)
    subjects: ClassVar[tuple[Kind, ...]] = ("pair", "domain", "cluster")
    nodes_at_least: ClassVar[int] = 2
    retests: ClassVar[tuple[str, ...]] = (BUSBW, STALLS)
    settings: ClassVar[type] = PairsSettings

    def plan(self, cluster: Cluster, settings: PairsSettings, seed: int) -> Plan:
        """The tournament, retests of suspects, pairs alone, NVLink domains, and the cluster as a whole."""
        nodes = tuple(node for node in cluster.nodes if node.ranks)
        if len(nodes) >= 2:
            campaign = _Campaign(nodes, cluster, settings)
            yield from campaign.tournament()
            yield from campaign.retests()
            yield from campaign.lone()
            yield from campaign.domains()
            yield from campaign.scaling()


class _Campaign:
    """One run of the probe: what was seen so far, and who is still there."""

    def __init__(self, nodes: Sequence[Node], cluster: Cluster, settings: PairsSettings) -> None:
        self.nodes = nodes
        self.joining = cluster.joining
        self.left_out = set(_accepted_already(nodes, cluster.joining)) if cluster.joining else set()
        self.device = cluster.device
        self.domain = nvlink_domains(cluster)
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

    def lone(self) -> Plan:
        """A few pairs from all over the tournament's values once alone: what they lose beside others then shows."""
        for pair in self._to_compare():
            self.tried[pair] += 1
            (outcome,) = yield [self._pair_trial(pair)]
            self._learn(pair, outcome, alone=True)

    def domains(self) -> Plan:
        """Each NVLink domain by itself, all at once."""
        left = [node for node in self.nodes if node.name not in self.gone]
        members = {name: [node for node in left if self.domain.get(node.name) == name] for name in self._domain_names()}
        trials = [self._whole(f"domain:{name}", nodes, "default") for name, nodes in members.items() if len(nodes) > 1]
        if trials:
            yield trials

    def scaling(self) -> Plan:
        """All nodes that are left, half of them, a quarter, down to two. Nodes that retests have shown to be slow are
        left out: the whole is judged as it would be used, without them."""
        slow = {culprit.node for found in self._blames() for culprit in found.nodes if culprit.confirmed}
        left = [node for node in self.nodes if node.name not in self.gone | slow]
        if self.device == "cuda" and len(left) >= 2:
            yield [self._whole("cluster", left, "default")]
        tell = "each"
        while len(left) >= 2:
            (outcome,) = yield [self._whole("cluster", left, "ring", tell)]
            tell = "first"
            lost = set(outcome.subjects) if isinstance(outcome, WorkerLost) else set()
            there = [node for node in left if node.name not in lost]
            left = left[: len(left) // 2] if len(there) == len(left) else there

    def _wanted(self) -> list[Pair]:
        """What to measure again, as far as both nodes are there and the number of retests allows."""
        wanted = dict.fromkeys([*self._slow(), *wanted_stall_retests(self.stalls, self.tried)])
        room = self.settings.most_retests - self.tried.total()
        return [pair for pair in wanted if not self.gone & set(pair)][: max(0, room)]

    def _slow(self) -> Iterator[Pair]:
        for found in self._blames():
            yield from wanted_retests(found, self.tried)

    def _blames(self) -> Iterator[Blame]:
        """What the min-model says of each level of the fabric by itself."""
        by_level: dict[str, list[Observation]] = {}
        for one in self.seen:
            by_level.setdefault(level_of(one.pair, self.domain), []).append(one)
        for seen in by_level.values():
            levels = levels_of(seen, Thresholds(effect=self.settings.effect))
            yield from [blame(levels)] if levels else []

    def _to_compare(self) -> list[Pair]:
        """Pairs not yet measured alone, evenly from the slowest to the fastest of the tournament, as many as lack."""
        if len(self.nodes) < FEWEST_AT_ONCE:
            return []  # no two pairs ever ran at once
        alone = {one.pair for one in self.seen if one.alone}
        first = {one.pair: one.value for one in self.seen if not one.alone and not self.gone & set(one.pair)}
        left = sorted(first.keys() - alone, key=lambda pair: (first[pair], pair))
        lacking = min(max(0, self.settings.lone_pairs - len(alone)), len(left))
        return [left[int((place + 0.5) * len(left) / lacking)] for place in range(lacking)]

    def _domain_names(self) -> list[str]:
        return sorted(set(self.domain.values()), key=lambda name: (len(name), name))

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
        key: Params = {"algorithm": "ring"}
        if level := level_of(pair, self.domain):
            key["level"] = level
        return sum_trial(
            self.settings,
            f"{one}~{other}",
            [self.by_name[one], self.by_name[other]],
            key,
            joining=self.joining,
            attempt=1 + self.tried[pair],
            retest_of=self.first_trial.get(pair) if self.tried[pair] else None,
        )

    def _whole(self, subject: str, nodes: Sequence[Node], algorithm: str, tell: str = "first") -> Trial:
        key: Params = {"nodes": len(nodes), "algorithm": algorithm}
        return sum_trial(self.settings, subject, nodes, key, joining=self.joining, tell=tell)


def _accepted_already(nodes: Sequence[Node], joining: Joining) -> Iterator[Pair]:
    """The pairs of accepted nodes that are not measured again. A few disjoint ones are, for newcomers are to be
    compared with what a good pair does on the same day, not with what one did then."""
    accepted = [node.name for node in nodes if node.name in joining.accepted]
    again = {pair_of(*two) for two in zip(accepted[::2], accepted[1::2], strict=False)}
    yield from (pair for two in combinations(accepted, 2) if (pair := pair_of(*two)) not in again)


def _stalls(readings: Iterable[AnyReading]) -> Iterator[float]:
    for one in readings:
        if isinstance(one, Reading) and one.metric == STALLS:
            yield from one.samples
