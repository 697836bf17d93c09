"""Whether data-parallel replicas are still the same, bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor


def parameter_hash(parameters: Iterable[Tensor]) -> Tensor:
    """A 64-bit hash of the parameters' bits, as an int64 tensor on their device; any one flipped bit changes it.

    Each element's bits are multiplied with an odd number that depends on its place, so that exchanged elements show
    too, and summed modulo 2^64: an odd multiple of a power of two is never zero there.
    """
    hashes = []
    for parameter in parameters:
        bits = parameter.detach().contiguous().view(torch.uint8).view(-1)
        words = bits.view(torch.int32 if parameter.element_size() == 4 else torch.int16).to(torch.int64)
        odd = 2 * torch.arange(words.numel(), device=words.device) + 1
        hashes.append((words * odd).sum())
    combined = torch.stack(hashes)
    return (combined * (2 * torch.arange(combined.numel(), device=combined.device) + 1)).sum()


def ranks_in_minority(own: Tensor) -> int:
    """How many ranks have another hash than most, the same answer on all. Of two that differ, one is counted."""
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    counts = Counter(int(each) for each in gathered)
    return len(gathered) - max(counts.values())
