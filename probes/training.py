"""Data-parallel training of the decoder, with a clock on every step."""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from ..cluster import RankContext
from .decoder import Decoder, Shape, batch_of, flops_per_token, loss_of
from .replicas import parameter_hash, ranks_in_minority
from .restart import save_and_restore
from .timing import Clock, clock_of

_SETTLING = 3  # first steps, whose times do not count: buckets are rebuilt, kernels loaded, memory is allocated


@dataclass(kw_only=True, slots=True)
class Training:
    """What a training gave on this rank. Losses are means over the ranks, in nats a token.

    `checkpoint` is the seconds of the slowest rank, or why there was none; `disagreements` has a number of ranks for
    each comparison.
    """

    flops_per_token: float
    parameters: int
    step_s: list[float] = field(default_factory=list)
    compute_s: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    nonfinite_losses: int = 0
    disagreements: list[int] = field(default_factory=list)
    checkpoint: float | str = "the training ended before its half"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    start: Any
    computed: Any
    end: Any
    loss: torch.Tensor


class _Trainer:
    """Model, replicas, optimizer and data of this rank."""

    def __init__(self, context: RankContext, params: dict[str, Any]) -> None:
        torch.manual_seed(params["seed"])
        self.shape = Shape(**params["shape"])
        self.model = Decoder(self.shape).to(context.device)
        self.clock: Clock = clock_of(context)
        self._computed: list[Any] = []
        self._group = dist.distributed_c10d._get_default_group()
        self._replicas = DistributedDataParallel(
            self.model,
            device_ids=[context.device.index] if context.on_cuda else None,
            gradient_as_bucket_view=True,  # else each gradient is held twice
        )
        self._replicas.register_comm_hook(None, self._reduce)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=params["learning_rate"], fused=context.on_cuda)
        self._data = torch.Generator(device=context.device).manual_seed(params["seed"] * 1_000_003 + context.rank + 1)
        self._batch = params["batch"]
        self._autocast = torch.autocast(context.device.type, torch.bfloat16, enabled=context.on_cuda)

    def step(self) -> _Step:
        """One step: data, forward, backward with its all-reduce, optimizer."""
        start = self.clock.mark()
        tokens, following = batch_of(self.shape, self._batch, self._data)
        with self._autocast:
            loss = loss_of(self._replicas(tokens), following)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return _Step(start=start, computed=self._computed.pop(), end=self.clock.mark(), loss=loss.detach())

    # The annotation is looked at by torch, which does not export the name to type checkers.
    def _reduce(self, _: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
        """All-reduce a bucket of gradients. The last bucket's is where this rank has computed all it can: what comes
        after is waiting for others, which DistributedDataParallel does inside backward."""
        if bucket.is_last():
            self._computed.append(self.clock.mark())
        return allreduce_hook(self._group, bucket)


def run_training(context: RankContext, params: dict[str, Any]) -> Training:
    """Train for params["seconds"]. All ranks stop at the same step: they agree on the time that has passed."""
    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    trainer = _Trainer(context, params)
    parameters = sum(each.numel() for each in trainer.model.parameters())
    training = Training(flops_per_token=flops_per_token(trainer.model, trainer.shape), parameters=parameters)
    began = time.perf_counter()
    saved = False
    while True:
        _record(context, trainer, training, [trainer.step() for _ in range(params["check_every"])])
        training.disagreements.append(ranks_in_minority(parameter_hash(trainer.model.parameters())))
        elapsed = _agreed(context, time.perf_counter() - began)
        if not saved and elapsed >= params["seconds"] / 2:
            saved = True
            training.checkpoint, lost = save_and_restore(context, trainer.model, trainer.optimizer)
            training.disagreements.append(lost)
        if elapsed >= params["seconds"]:
            return training


def _record(context: RankContext, trainer: _Trainer, training: Training, steps: list[_Step]) -> None:
    """Wait for the steps and take their times and losses down; the first few steps' times are left out."""
    clock = trainer.clock
    clock.wait(steps[-1].end)
    timed = steps[max(0, _SETTLING - len(training.losses)) :]
    training.step_s += [clock.seconds(step.start, step.end) for step in timed]
    training.compute_s += [clock.seconds(step.start, step.computed) for step in timed]
    losses = torch.stack([step.loss for step in steps]).to(torch.float64)
    nonfinite = (~losses.isfinite()).to(torch.int64)
    dist.all_reduce(losses)
    dist.all_reduce(nonfinite)
    training.losses += (losses / context.world_size).tolist()
    training.nonfinite_losses += int((nonfinite > 0).sum())


def _agreed(context: RankContext, seconds: float) -> float:
    """The longest time that any rank has seen pass."""
    tensor = torch.tensor(seconds, dtype=torch.float64, device=context.device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return float(tensor)
