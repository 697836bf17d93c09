"""A sum over ranks whose every element is known beforehand, timed and checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..cluster import RankContext
from .timing import clock_of

if TYPE_CHECKING:
    import torch

# Integers up to here are exact, so that a sum is right or wrong, never rounded.
EXACT = {"fp32": 1 << 24, "bf16": 1 << 8}
_LARGEST = 3e38  # of fp32 and bf16 alike


class Collective(Protocol):
    """A collective with its buffers: refilled for each iteration, run, and compared with what it must give."""

    tiny: torch.Tensor  # one element, ones: what lines the ranks up

    def refill(self, iteration: int) -> None:
        """This rank's part for an iteration."""
        ...

    def run(self) -> None:
        """The collective itself: all that is timed."""
        ...

    def wrong(self, iteration: int) -> torch.Tensor:
        """Elements of this rank's result that are not what they must be, as a tensor on the device."""
        ...


@dataclass(kw_only=True, slots=True)
class Reduction:
    """`buffer` is reduced in place. Iteration i refills it from `source` shifted by i and expects `sums` shifted by i.

    Element e of rank r is (e + r) mod `period`: no rank's part is like another's, and no iteration's like the one
    before, so that a stale or half-written buffer shows.
    """

    buffer: torch.Tensor
    source: torch.Tensor
    sums: torch.Tensor
    tiny: torch.Tensor
    period: int

    def refill(self, iteration: int) -> None:
        """This rank's part for an iteration."""
        self.buffer.copy_(self._shifted(self.source, iteration))

    def run(self) -> None:
        """The collective itself."""
        import torch.distributed as dist

        dist.all_reduce(self.buffer)

    def wrong(self, iteration: int) -> torch.Tensor:
        """Elements that are not the exact sum, as a tensor on the device. NaN is unequal to everything."""
        return (self.buffer != self._shifted(self.sums, iteration)).sum()

    def _shifted(self, pattern: torch.Tensor, iteration: int) -> torch.Tensor:
        start = iteration % self.period
        return pattern[start : start + self.buffer.numel()]


def make_reduction(context: RankContext, size: int, dtype: str) -> Reduction:
    """A buffer of `size` bytes on the rank's device. Raises ValueError for more ranks than the dtype sums exactly."""
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    ranks = context.world_size
    period = min(127, EXACT[dtype] // ranks + 1)
    if period < 2:
        raise ValueError(f"{ranks} ranks cannot sum exactly in {dtype}")
    buffer = torch.empty(size // kind.itemsize, dtype=kind, device=context.device)
    one_period = torch.arange(period, device=context.device)
    own = (one_period + context.rank) % period
    summed = torch.stack([(one_period + rank) % period for rank in range(ranks)]).sum(dim=0)
    # A period longer than the buffer, so that it can be shifted.
    times = math.ceil(buffer.numel() / period) + 1
    source, sums = (pattern.to(kind).repeat(times) for pattern in (own, summed))
    tiny = torch.ones(1, device=context.device)
    return Reduction(buffer=buffer, source=source, sums=sums, tiny=tiny, period=period)


def timed_iterations(
    context: RankContext, collective: Collective, times: int
) -> tuple[list[list[float]], list[int]]:  # fmt: skip
    """Seconds of each rank in each iteration, [iteration][rank], and the wrong elements of all ranks in each."""
    import torch
    import torch.distributed as dist

    clock = clock_of(context)
    marks, wrong = [], []
    for iteration in range(times):
        collective.refill(iteration)
        dist.all_reduce(collective.tiny)  # lines the ranks up, on the device
        start = clock.mark()
        collective.run()
        marks.append((start, clock.mark()))
        wrong.append(collective.wrong(iteration))
        collective.tiny.fill_(1.0)
    clock.wait(marks[-1][1])
    own = torch.tensor([clock.seconds(a, b) for a, b in marks], dtype=torch.float64, device=context.device)
    gathered = [torch.empty_like(own) for _ in range(context.world_size)]
    dist.all_gather(gathered, own)
    everywhere = torch.stack(wrong)
    dist.all_reduce(everywhere)
    durations: list[list[float]] = torch.stack(gathered, dim=1).tolist()
    return durations, everywhere.tolist()


def batched_seconds(context: RankContext, reduction: Reduction, times: int) -> float:
    """Wall seconds an all-reduce, back to back, on the slowest rank.

    The buffer is summed into itself again and again; fewer are done where its values would leave the dtype's range.
    """
    import torch
    import torch.distributed as dist

    largest_sum = context.world_size * reduction.period
    times = max(1, min(times, int(math.log(_LARGEST / largest_sum, context.world_size))))
    clock = clock_of(context)
    reduction.refill(0)
    dist.all_reduce(reduction.tiny)
    start = clock.mark()
    for _ in range(times):
        dist.all_reduce(reduction.buffer)
    end = clock.mark()
    clock.wait(end)
    seconds = torch.tensor(clock.seconds(start, end) / times, dtype=torch.float64, device=context.device)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return float(seconds)
