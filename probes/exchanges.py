"""All-gather, reduce-scatter and all-to-all of known integers: what each rank gets is known, and checked.

Rank r sends (e + r + i) mod `period` as element e of iteration i, e counting through its whole send buffer. So no
rank's part is like another's, and no iteration's like the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..cluster import RankContext
from .reduction import EXACT

if TYPE_CHECKING:
    import torch

Operation = Literal["all_gather", "reduce_scatter", "all_to_all"]
_PERIOD = 251  # a prime that bf16 holds exactly
_ITEM = {"fp32": 4, "bf16": 2}


def whole_bytes(size: int, ranks: int, dtype: str) -> int:
    """The bytes of all ranks' parts together, at least `size`: each rank has a part of so many whole elements."""
    item = _ITEM[dtype]
    return -(-size // (item * ranks)) * item * ranks


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One of the three operations with its buffers on one rank.

    `pattern` holds periods of the integers that are sent, `expected` those that are to arrive: the sums for
    reduce-scatter, else the pattern itself. A part of the larger buffer has `part` elements.
    """

    operation: Operation
    rank: int
    ranks: int
    part: int
    send: torch.Tensor
    receive: torch.Tensor
    pattern: torch.Tensor
    expected: torch.Tensor
    period: int
    tiny: torch.Tensor

    def refill(self, iteration: int) -> None:
        """This rank's part for an iteration; what arrived before is wiped out."""
        start = (self.rank + iteration) % self.period
        self.send.copy_(self.pattern[start : start + self.send.numel()])
        self.receive.fill_(-1.0)

    def run(self) -> None:
        """The collective itself."""
        import torch.distributed as dist

        if self.operation == "all_gather":
            dist.all_gather_into_tensor(self.receive, self.send)
        elif self.operation == "all_to_all":
            dist.all_to_all_single(self.receive, self.send)
        else:
            # torch 2.13 has it by a new name and warns of the old one, which earlier ones have alone.
            scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
            scatter(self.receive, self.send)

    def wrong(self, iteration: int) -> torch.Tensor:
        """Elements that are not what they must be. NaN is unequal to everything."""
        first = 0 if self.operation == "all_gather" else self.rank * self.part
        start = (first + iteration) % self.period
        if self.operation == "reduce_scatter":
            return (self.receive != self.expected[start : start + self.part]).sum()
        # Row s is the part of rank s: one further on than that of the rank before.
        parts = self.expected.unfold(0, self.part, 1)[start : start + self.ranks]
        return (self.receive.view(self.ranks, self.part) != parts).sum()


def make_exchange(context: RankContext, operation: Operation, size: int, dtype: str) -> Exchange:
    """Buffers for `size` bytes, as `whole_bytes` gives them, on the rank's device. Raises ValueError for more ranks
    than the dtype sums exactly."""
    import torch

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    ranks, whole = context.world_size, size // kind.itemsize
    period = min(_PERIOD, EXACT[dtype] // ranks + 1) if operation == "reduce_scatter" else _PERIOD
    if period < 2:
        raise ValueError(f"{ranks} ranks cannot sum exactly in {dtype}")
    one_period = torch.arange(period, device=context.device)
    times = -(-(whole + ranks) // period) + 1  # so that it can be shifted
    pattern = one_period.to(kind).repeat(times)
    expected = pattern
    if operation == "reduce_scatter":
        summed = torch.stack([(one_period + rank) % period for rank in range(ranks)]).sum(dim=0)
        expected = summed.to(kind).repeat(times)
    part = whole // ranks
    send, receive = (part if operation == "all_gather" else whole), (part if operation == "reduce_scatter" else whole)
    return Exchange(
        operation=operation,
        rank=context.rank,
        ranks=ranks,
        part=part,
        send=torch.empty(send, dtype=kind, device=context.device),
        receive=torch.empty(receive, dtype=kind, device=context.device),
        pattern=pattern,
        expected=expected,
        period=period,
        tiny=torch.ones(1, device=context.device),
    )
