"""What a rank function is given: who it is, who its peers are, and where it works.

Needs torch alone, so that a rank function can be called by hand without a cluster (`make gpu-check`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class RankContext:
    """A rank at work.

    `subjects` are those of all ranks of the trial, by rank; `rank` is this one's place among them. `threads` is how
    many CPU threads it may use. In a collective trial the process group is joined already (gloo on CPUs, NCCL on
    GPUs) and `torch.distributed`'s default group is the trial's.
    """

    subject: str
    node: str
    device_name: str  # "cuda:2" or "cpu"
    rank: int = 0
    local_rank: int = 0
    subjects: tuple[str, ...] = field(default=())
    nodes: tuple[str, ...] = field(default=())  # by rank
    threads: int = 1
    scratch: Path = Path("/tmp")  # noqa: S108  # the default only for calls by hand
    mark: str = "hwlottery-"  # what its files in scratch are called by: what it leaves there when killed is removed
    seed: int = 0

    @property
    def world_size(self) -> int:
        """How many ranks the trial has."""
        return len(self.subjects)

    @property
    def on_cuda(self) -> bool:
        """Whether this rank works on a CUDA device."""
        return self.device_name.startswith("cuda")

    @property
    def device(self) -> torch.device:
        """The torch device of this rank."""
        import torch

        return torch.device(self.device_name)

    @property
    def leads_node(self) -> bool:
        """Whether this is the first of its node's ranks in the trial: it speaks for the node."""
        return self.nodes.index(self.node) == self.rank if self.nodes else True
