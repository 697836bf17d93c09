"""A trial of pairs: its settings, what it is to bring, for how long. Of two nodes, a domain, or the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..cluster import Joining, Node, Trial
from ..evidence import Fill, Params
from .collective_settings import nccl_debug_env
from .pair_sums import BUSBW, LATENCY, SKEW, STALLS, WRONG

KIB = 1 << 10
# For the plan's times alone, bytes/s of one all-reduce with its refill and check: as a rule, and the least for which
# the deadline still holds: a tenth of a 200 Mbit/s cable, a hundredth of a 200 Gbit/s one.
_USUAL = {"cpu": 5e7, "cuda": 2e10}
_SLOWEST = {"cpu": 2e6, "cuda": 2e8}
_SETTLE_S = 90.0  # ranks meet, and NCCL builds its channels


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSettings:
    """`sizes_kib` are each rank's buffer, the largest decides who is slow. `latency_bytes`: so small that only latency
    counts. `ranks_a_node`: so many of each node's ranks take part, None for all. Up to `round_robin_up_to` nodes every
    pair is measured. `effect`: the smallest loss that matters, as a share. `most_retests`: trials at most.
    `lone_pairs`: so many pairs at least are measured alone, to tell what others cost them."""

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
    lone_pairs: int = 6

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.sizes_kib or min(self.sizes_kib) < 1 or self.latency_bytes < 4:
            raise ValueError("pairs needs sizes of at least 1 KiB, and 4 bytes for latency")
        ranks = 1 if self.ranks_a_node is None else self.ranks_a_node
        counts = (self.warm_ups, self.iterations, self.latency_iterations, ranks)
        if min(counts) < 1 or not 0.01 <= self.effect <= 0.4 or min(self.most_retests, self.lone_pairs) < 0:
            raise ValueError("pairs needs at least one warm-up, iteration and rank, and an effect of 0.01 to 0.4")


def sum_trial(
    settings: PairsSettings,
    subject: str,
    nodes: Sequence[Node],
    more: Params,
    *,
    attempt: int = 1,
    retest_of: str | None = None,
    joining: Joining | None = None,
    tell: str = "first",
) -> Trial:
    """Sums of all sizes over the ranks of these nodes. `more` are the params of its values beside dtype and ranks, with
    the algorithm among them; `tell`: whether the first rank or each tells what the library says of itself."""
    ranks = tuple(rank for node in nodes for rank in node.ranks[: settings.ranks_a_node])
    device = ranks[0].device
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
            "tell": tell,
        }
        | ({"join": joining.number} if joining else {}),
        env=_env(nodes[0].scratch, key) if device == "cuda" else {},
        collective=True,
        expected_s=0.5 + moved / _USUAL[device],
        deadline_s=_SETTLE_S + moved / _SLOWEST[device],
        fills=tuple(_fills(subject, sizes, settings.latency_bytes, key)),
        attempt=attempt,
        retest_of=retest_of,
    )


def _env(scratch: str, key: Params) -> dict[str, str]:
    return nccl_debug_env(scratch) | ({"NCCL_ALGO": "Ring"} if key["algorithm"] == "ring" else {})


def _fills(subject: str, sizes: Iterable[int], latency_bytes: int, key: Params) -> Iterator[Fill]:
    for size in sizes:
        for metric in (BUSBW, SKEW, WRONG):
            yield Fill(metric=metric, subject=subject, params={"bytes": size} | key)
    for metric in (LATENCY, STALLS, WRONG):
        yield Fill(metric=metric, subject=subject, params={"bytes": latency_bytes} | key)
