"""burn_in: a small GPT decoder trained data-parallel on all ranks, for as long as the profile says.

Shows what single kernels do not: stragglers, replicas that drift apart, losses that are not finite, a cluster that
does not last. Tokens are synthetic but learnable, so that the loss must fall. Every few steps all ranks compare a hash
of their parameters; half-way a checkpoint is saved and loaded back. Model FLOPs by torchtitan's formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..cluster import Cluster, Rank, RankContext, Trial, WorkerLost
from ..evidence import AnyReading, Fill, Missing, Observed, Params, reading
from .products import refusal
from .protocol import Plan

if TYPE_CHECKING:
    from .training import Training

EACH_RANK = ("burn_in.step", "burn_in.compute", "burn_in.model_tflops")
CLUSTER = (
    "burn_in.tokens_per_second",
    "burn_in.loss_drop",
    "burn_in.nonfinite_losses",
    "burn_in.hash_disagreements",
    "burn_in.checkpoint",
)
_START_S = 5.0  # model, replicas and first steps


@dataclass(frozen=True, kw_only=True, slots=True)
class BurnInSettings:
    """For how long, and the model. `batch` is sequences a rank and step; replicas are compared `check_every` steps."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    seconds: float
    vocabulary: int
    sequence: int
    width: int
    layers: int
    heads: int
    batch: int
    check_every: int = 10
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        whole = (self.vocabulary, self.sequence, self.width, self.layers, self.heads, self.batch, self.check_every)
        if min(whole) < 1 or self.seconds <= 0 or self.learning_rate <= 0:
            raise ValueError("burn_in sizes, seconds and learning_rate are positive")
        if self.width % self.heads:
            raise ValueError("burn_in width is a multiple of heads")

    @property
    def model(self) -> str:
        """The model in short: layers, width, sequence, vocabulary."""
        return f"decoder-L{self.layers}-d{self.width}-s{self.sequence}-v{self.vocabulary}"


class BurnIn:
    """The burn_in probe: one long collective trial of all ranks."""

    name: ClassVar[str] = "burn_in"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = (*EACH_RANK, *CLUSTER)
    settings: ClassVar[type] = BurnInSettings

    def plan(self, cluster: Cluster, settings: BurnInSettings, seed: int) -> Plan:
        """One round with one trial. Where whole nodes were lost in it, once more with those that remain."""
        ranks, attempt = cluster.ranks, 1
        while ranks:
            outcomes = yield [_trial(cluster.device, ranks, settings, seed, attempt)]
            lost = [
                subject for outcome in outcomes or () if isinstance(outcome, WorkerLost) for subject in outcome.subjects
            ]
            left = tuple(rank for rank in ranks if rank.node not in lost)
            if len(left) == len(ranks):
                return
            ranks, attempt = left, attempt + 1


def _trial(device: str, ranks: tuple[Rank, ...], settings: BurnInSettings, seed: int, attempt: int) -> Trial:
    dtype = "bf16" if device == "cuda" else "fp32"
    key: Params = {"model": settings.model, "batch": settings.batch, "dtype": dtype}
    fills = [Fill(metric=metric, subject=rank.subject, params=key) for rank in ranks for metric in EACH_RANK]
    fills += [Fill(metric=metric, subject="cluster", params=key) for metric in CLUSTER]
    return Trial(
        function="burn_in:train",
        ranks=ranks,
        params=_params(settings, seed) | {"key": key},
        collective=True,
        expected_s=_START_S + settings.seconds,
        deadline_s=300 + 1.2 * settings.seconds,
        fills=tuple(fills),
        attempt=attempt,
    )


def _params(settings: BurnInSettings, seed: int) -> dict[str, Any]:
    shape = ("vocabulary", "sequence", "width", "layers", "heads")
    rest = ("seconds", "batch", "check_every", "learning_rate")
    return {
        "shape": {name: getattr(settings, name) for name in shape},
        **{name: getattr(settings, name) for name in rest},
        "seed": seed,
    }


# On the ranks ------------------------------------------------------------------------------------------------------


def train(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """This rank's step times; from the first rank also what holds for all."""
    key = params["key"]
    why = refusal(context, key["dtype"])
    if why:
        return _unsupported(context, key, why)
    from .training import run_training

    training = run_training(context, params)
    tokens = params["batch"] * params["shape"]["sequence"]
    flops = training.flops_per_token * tokens
    own: list[AnyReading] = [
        reading("burn_in.step", context.subject, training.step_s, **key),
        reading("burn_in.compute", context.subject, training.compute_s, **key),
        reading("burn_in.model_tflops", context.subject, [flops / s / 1e12 for s in training.step_s], **key),
    ]
    if context.rank != 0:
        return own
    rates = [context.world_size * tokens / seconds for seconds in training.step_s]
    return [*own, reading("burn_in.tokens_per_second", "cluster", rates, **key), *_of_all(training, key)]


def _of_all(training: Training, key: Params) -> list[AnyReading]:
    return [
        reading("burn_in.loss_drop", "cluster", training.losses[0] - training.losses[-1], **key),
        reading("burn_in.nonfinite_losses", "cluster", training.nonfinite_losses, **key),
        reading("burn_in.hash_disagreements", "cluster", training.disagreements, **key),
        _checkpoint(training, key),
        Observed(subject="cluster", key="burn_in.parameters", value=training.parameters),
        Observed(subject="cluster", key="burn_in.steps", value=len(training.losses)),
        Observed(subject="cluster", key="burn_in.first_loss", value=training.losses[0]),
        Observed(subject="cluster", key="burn_in.last_loss", value=training.losses[-1]),
    ]


def _checkpoint(training: Training, key: Params) -> AnyReading:
    saved = training.checkpoint
    if isinstance(saved, float):
        return reading("burn_in.checkpoint", "cluster", saved, **key)
    return Missing(metric="burn_in.checkpoint", subject="cluster", reason="raised", detail=saved, params=key)


def _unsupported(context: RankContext, key: Params, why: str) -> list[AnyReading]:
    wanted = [(metric, context.subject) for metric in EACH_RANK]
    if context.rank == 0:
        wanted += [(metric, "cluster") for metric in CLUSTER]
    return [
        Missing(metric=metric, subject=subject, reason="unsupported", detail=why, params=key)
        for metric, subject in wanted
    ]
