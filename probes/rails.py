"""rails: what the wire does, one NIC of each node at a time.

Rank k of a node sums a buffer with rank k of another, for each k. Of two ranks busbw = algbw = bytes over the slower
one's time, so the figure is the wire's: NVLink, trees and reducing switches have no part in it.

Each node with both of its neighbours in a ring, so that every rail of every node meets two partners; all rails at once
where each has its own NIC. What looks slow is measured again alone, by the min-model of pairs (fabric/rails.py), until
it is clear whether n03/rail2, or what is between two of them, is to blame. Attempt 1 runs beside others, later ones
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..cluster import Cluster, Finished, Node, Outcome, RankContext, Round, Trial, WorkerLost
from ..evidence import AnyReading, Fill, Params, reading
from ..fabric import (
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
from .collective_settings import nccl_debug_env
from .observations import observations
from .protocol import Plan
from .reduction import make_reduction, timed_iterations
from .tournament import ring

KIB = 1 << 10
BUSBW, WRONG = "rail.busbw", "rail.wrong_elements"
# A rail is one NIC a node: a ring does not change NICs on the way unless it may.
ON_ONE_NIC = {"NCCL_ALGO": "Ring", "NCCL_CROSS_NIC": "0"}
# For the plan's times alone, bytes/s of one sum with its refill and check: as a rule, and the least for which the
# deadline still holds.
_USUAL = {"cpu": 5e7, "cuda": 1e10}
_SLOWEST = {"cpu": 2e6, "cuda": 5e7}
_SETTLE_S = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RailsSettings:
    """`sizes_kib` are each rank's buffer, the largest decides. `together`: all rails at once, for nodes whose ranks
    have a NIC each; else one after another. `effect` and `most_retests` as in pairs."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sizes_kib: tuple[int, ...]
    together: bool
    dtype: Literal["fp32", "bf16"] = "fp32"
    warm_ups: int = 5
    iterations: int = 20
    effect: float = 0.10
    most_retests: int = 100

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.sizes_kib or min(self.sizes_kib) < 1 or min(self.warm_ups, self.iterations) < 1:
            raise ValueError("rails needs sizes of at least 1 KiB, a warm-up and an iteration")
        if not 0.01 <= self.effect <= 0.4 or self.most_retests < 0:
            raise ValueError("rails needs an effect of 0.01 to 0.4, and no negative number of retests")


class Rails:
    """The rails probe. With fewer than two nodes there is nothing to do."""

    name: ClassVar[str] = "rails"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (BUSBW, WRONG)
    nodes_at_least: ClassVar[int] = 2
    settings: ClassVar[type] = RailsSettings

    def plan(self, cluster: Cluster, settings: RailsSettings, seed: int) -> Plan:
        """Every rail of every node with two partners, and retests of suspects."""
        nodes = tuple(node for node in cluster.nodes if node.ranks)
        if len(nodes) >= 2:
            campaign = _Campaign(nodes, cluster.device, settings)
            yield from campaign.neighbours()
            if len(nodes) == 2:
                yield from campaign.once_more()
            yield from campaign.retests()


class _Campaign:
    """One run of the probe: what was seen so far, and who is still there."""

    def __init__(self, nodes: Sequence[Node], device: str, settings: RailsSettings) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.device = device
        self.settings = settings
        self.seen: list[Observation] = []
        self.first_trial: dict[Pair, str] = {}
        self.tried: Counter[Pair] = Counter()
        self.gone: set[str] = set()

    def neighbours(self) -> Plan:
        """The rounds of the ring."""
        for meetings in self._meetings():
            pairs = [places for places in meetings if not self._is_gone(places)]
            if pairs:
                outcomes = yield self._round(pairs)
                for places, outcome in zip(pairs, outcomes, strict=True):
                    self._learn(places, outcome, alone=False)

    def once_more(self) -> Plan:
        """Each rail again, alone: of two nodes it has no second partner, and one sample proves nothing."""
        for places in [one.pair for one in self.seen]:
            yield from self._alone(places)

    def retests(self) -> Plan:
        """Suspects, what would settle a doubt, and a few good rails to compare with: each alone on the fabric."""
        while wanted := self._wanted():
            for places in wanted:
                yield from self._alone(places)

    def _alone(self, places: Pair) -> Plan:
        self.tried[places] += 1
        (outcome,) = yield self._round([places])
        self._learn(places, outcome, alone=True)

    def _meetings(self) -> Iterator[list[Pair]]:
        """Of each round of the ring all rails, at once or one after another."""
        names = list(self.nodes)
        for meetings in ring(len(names)):
            pairs = [(names[one], names[other]) for one, other in meetings]
            rails = [[places_of(*pair, rail) for rail in range(self._rails(*pair))] for pair in pairs]
            if self.settings.together:
                yield [places for own in rails for places in own]
            else:
                most = max(len(own) for own in rails)
                yield from ([own[rail] for own in rails if rail < len(own)] for rail in range(most))

    def _rails(self, *names: str) -> int:
        return min(len(self.nodes[name].ranks) for name in names)

    def _wanted(self) -> list[Pair]:
        """What to measure again, as far as both nodes are there and have that rail, and the number allows."""
        levels = levels_of(self.seen, Thresholds(effect=self.settings.effect))
        if levels is None:
            return []
        wanted = retests_of_parts(blame_of_rails(levels).values(), levels, self.tried)
        room = self.settings.most_retests - self.tried.total()
        return [places for places in wanted if not self._is_gone(places)][: max(0, room)]

    def _is_gone(self, places: Pair) -> bool:
        return any(node_and_rail(place)[0] in self.gone for place in places)

    def _learn(self, places: Pair, outcome: Outcome, *, alone: bool) -> None:
        if outcome.trial is not None:
            self.first_trial.setdefault(places, outcome.trial)
        if isinstance(outcome, Finished):
            size = max(self.settings.sizes_kib) * KIB
            self.seen += observations(places, outcome.readings, BUSBW, size, alone=alone)
        elif isinstance(outcome, WorkerLost):
            self.gone |= set(outcome.subjects) & self.nodes.keys()

    def _round(self, wanted: Sequence[Pair]) -> Round:
        return [self._trial(places) for places in wanted]

    def _trial(self, places: Pair) -> Trial:
        settings = self.settings
        (one, rail), (other, _) = map(node_and_rail, places)
        ranks = (self.nodes[one].ranks[rail], self.nodes[other].ranks[rail])
        sizes = [kib * KIB for kib in settings.sizes_kib]
        moved = float(sum(sizes) * (settings.warm_ups + settings.iterations))
        key: Params = {"dtype": settings.dtype, "ranks": len(ranks)}
        subject = rail_subject(places)
        return Trial(
            function="rails:along_the_rail",
            ranks=ranks,
            params={
                "subject": subject,
                "sizes": sizes,
                "warm_ups": settings.warm_ups,
                "iterations": settings.iterations,
                "key": key,
            },
            env=nccl_debug_env(self.nodes[one].scratch) | ON_ONE_NIC if self.device == "cuda" else {},
            collective=True,
            expected_s=0.5 + moved / _USUAL[self.device],
            deadline_s=_SETTLE_S + moved / _SLOWEST[self.device],
            fills=tuple(
                Fill(metric=metric, subject=subject, params={"bytes": size} | key)
                for size in sizes
                for metric in (BUSBW, WRONG)
            ),
            attempt=1 + self.tried[places],
            retest_of=self.first_trial.get(places) if self.tried[places] else None,
        )


# On the ranks ------------------------------------------------------------------------------------------------------


def along_the_rail(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """Both metrics for each size, from the first rank."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    readings: list[AnyReading] = []
    for size in params["sizes"]:
        reduction = make_reduction(context, size, params["key"]["dtype"])
        timed_iterations(context, reduction, params["warm_ups"])
        durations, wrong = timed_iterations(context, reduction, params["iterations"])
        busbw = [size / max(ranks) / 1e9 for ranks in durations]
        readings.append(reading(BUSBW, params["subject"], busbw, bytes=size, **params["key"]))
        readings.append(reading(WRONG, params["subject"], wrong, bytes=size, **params["key"]))
    return readings if context.rank == 0 else []
