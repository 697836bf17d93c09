"""matmul: the rate of matrix products, and whether the same product twice is the same.

Two rates, never mixed (method: stas00/ml-engineering mamf-finder and its evaluate-cluster notes):
burst      the cache is flushed before each product, each is timed alone, median: what boost clocks give.
sustained  products back to back on all accelerators of the node at once, second half scored: what training gets.

Operands are normally distributed: constant data draws less power and clocks higher. B is the transpose of an (n, k)
matrix, as in a linear layer. FLOPs are 2mnk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..cluster import Cluster, RankContext, Round, Trial
from ..evidence import AnyReading, Fill, Missing, Observed, Params, reading
from .llc import cache_flush_bytes
from .products import Product, UnsupportedError, different_bits, float32_precision, make_product, nonfinite
from .protocol import Plan
from .retests import Watched, with_retests
from .timing import back_to_back, clock_of, timed_each, warm_up

if TYPE_CHECKING:
    import torch

Dtype = Literal["bf16", "fp16", "tf32", "fp32", "fp8"]
Shape = tuple[int, int, int]  # m, n, k

# For the plan's times alone: FLOP/s an accelerator (or a CPU thread) gives as a rule, and the least for which the
# deadline still holds.
_USUAL = {"cpu": 6e10, "cuda": 3e14, "cuda fp32": 3e13}
_SLOWEST = {"cpu": 4e9, "cuda": 5e12, "cuda fp32": 2e12}
_SAMPLE_S = 0.1  # of sustained work
_WATCHED = (Watched(metric="matmul.tflops"),)


@dataclass(frozen=True, kw_only=True, slots=True)
class MatmulSettings:
    """What to multiply, and for how long. A phase with no iterations, seconds or repeats is left out.

    `shapes` are (m, n, k). `sustained_shapes` run for `sustained_s` each and are scored on the second half.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    dtypes: tuple[Dtype, ...]
    shapes: tuple[Shape, ...]
    burst_iterations: int = 100
    sustained_shapes: tuple[Shape, ...] = ()
    sustained_s: float = 60.0
    repeats: int = 3
    warm_up_s: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        sides = [side for shape in (*self.shapes, *self.sustained_shapes) for side in shape]
        if not self.dtypes or not self.shapes or min(sides) < 16 or any(side % 16 for side in sides):
            raise ValueError("matmul needs dtypes and shapes whose sides are multiples of 16")
        if min(self.burst_iterations, self.repeats, self.sustained_s, self.warm_up_s) < 0:
            raise ValueError("matmul iterations, repeats and seconds are not negative")


class Matmul:
    """The matmul probe."""

    name: ClassVar[str] = "matmul"
    method: ClassVar[str] = "1"
    metrics: ClassVar[tuple[str, ...]] = ("matmul.tflops", "matmul.mismatches", "matmul.nonfinite")
    retests: ClassVar[tuple[str, ...]] = tuple(one.metric for one in _WATCHED)
    settings: ClassVar[type] = MatmulSettings

    def plan(self, cluster: Cluster, settings: MatmulSettings, seed: int) -> Plan:
        """One round a dtype and phase, on all ranks at once; what is slow again on its node."""
        for dtype in settings.dtypes:
            if settings.repeats:
                yield _repeat_round(cluster, settings, dtype, seed)
            if settings.burst_iterations:
                yield from with_retests(cluster, [_burst_round(cluster, settings, dtype, seed)], _WATCHED)
            if settings.sustained_shapes and settings.sustained_s:
                yield from with_retests(cluster, [_sustained_round(cluster, settings, dtype, seed)], _WATCHED)


def _repeat_round(cluster: Cluster, settings: MatmulSettings, dtype: str, seed: int) -> Round:
    flops = sum(_flops(shape) for shape in settings.shapes) * (settings.repeats + 1)
    params = {"dtype": dtype, "shapes": settings.shapes, "repeats": settings.repeats, "seed": seed}
    keys = [("matmul.mismatches", _key(dtype, shape)) for shape in settings.shapes]
    keys += [("matmul.nonfinite", _key(dtype, shape)) for shape in settings.shapes]
    return [_trial(cluster, "repeat", params, flops=flops, keys=keys)]


def _burst_round(cluster: Cluster, settings: MatmulSettings, dtype: str, seed: int) -> Round:
    flops = sum(_flops(shape) for shape in settings.shapes) * (settings.burst_iterations + 2)
    params = {
        "dtype": dtype,
        "shapes": settings.shapes,
        "iterations": settings.burst_iterations,
        "warm_up_s": settings.warm_up_s,
        "seed": seed,
    }
    keys = [("matmul.tflops", _key(dtype, shape, "burst")) for shape in settings.shapes]
    return [_trial(cluster, "burst", params, flops=flops, fixed_s=settings.warm_up_s * len(keys), keys=keys)]


def _sustained_round(cluster: Cluster, settings: MatmulSettings, dtype: str, seed: int) -> Round:
    shapes = settings.sustained_shapes
    params = {"dtype": dtype, "shapes": shapes, "seconds": settings.sustained_s, "seed": seed}
    keys = [("matmul.tflops", _key(dtype, shape, "sustained")) for shape in shapes]
    # Besides the seconds: two products before, and the two that a sample may run over.
    flops = 4 * sum(_flops(shape) for shape in shapes)
    return [_trial(cluster, "sustained", params, flops=flops, fixed_s=settings.sustained_s * len(shapes), keys=keys)]


def _trial(
    cluster: Cluster,
    function: str,
    params: dict[str, Any],
    *,
    flops: float,
    fixed_s: float = 0.0,
    keys: Sequence[tuple[str, Params]],
) -> Trial:
    kind = "cuda fp32" if cluster.device == "cuda" and params["dtype"] == "fp32" else cluster.device
    return Trial(
        function=f"matmul:{function}",
        ranks=cluster.ranks,
        params=params,
        expected_s=0.5 + fixed_s + flops / _USUAL[kind],
        deadline_s=60 + 2 * fixed_s + flops / _SLOWEST[kind],
        fills=tuple(
            Fill(metric=metric, subject=rank.subject, params=key) for rank in cluster.ranks for metric, key in keys
        ),
    )


def _flops(shape: Sequence[int]) -> float:
    m, n, k = shape
    return 2.0 * m * n * k


def _key(dtype: str, shape: Sequence[int], phase: str | None = None) -> Params:
    m, n, k = shape
    key: Params = {"dtype": dtype, "m": m, "n": n, "k": k}
    return key | {"phase": phase} if phase else key


# On the ranks ------------------------------------------------------------------------------------------------------


def burst(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """matmul.tflops, phase burst, for each shape: samples of single products after a cache flush."""
    import torch

    flushed = cache_flush_bytes(context.on_cuda)
    rubbish = torch.empty(flushed, dtype=torch.int8, device=context.device)
    seen: list[AnyReading] = [
        Observed(subject=context.subject, key="matmul.flushed_bytes", value=flushed),
        Observed(subject=context.subject, key="matmul.threads", value=context.threads),
    ]

    def one_shape(product: Product) -> list[AnyReading]:
        clock = clock_of(context)
        warm_up(clock, product.run, params["warm_up_s"])
        times = timed_each(clock, product.run, params["iterations"], before=rubbish.zero_)
        return [_rate(context, product, times, "burst")]

    return seen + _each_shape(context, params, ["matmul.tflops"], one_shape, "burst")


def sustained(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """matmul.tflops, phase sustained: samples of about 0.1 s each from the second half of the time."""

    def one_shape(product: Product) -> list[AnyReading]:
        clock = clock_of(context)
        calls = max(1, round(_SAMPLE_S / max(warm_up(clock, product.run, 0.0), 1e-6)))
        times = back_to_back(clock, product.run, params["seconds"], calls)
        return [_rate(context, product, times[len(times) // 2 :], "sustained")]

    return _each_shape(context, params, ["matmul.tflops"], one_shape, "sustained")


def repeat(context: RankContext, params: dict[str, Any]) -> list[AnyReading]:
    """matmul.mismatches and matmul.nonfinite: the same product again, compared bit by bit with the first."""

    def one_shape(product: Product) -> list[AnyReading]:
        first = product.run().clone()
        different, unreal = [], [nonfinite(first)]
        for _ in range(params["repeats"]):
            product.out.fill_(float("nan"))  # a product that is not written at all shows
            again = product.run()
            different.append(different_bits(first, again))
            unreal.append(nonfinite(again))
        key = _key(product.dtype, product.shape)
        return [
            _fingerprint(context, product, first),
            reading("matmul.mismatches", context.subject, different, **key),
            reading("matmul.nonfinite", context.subject, unreal, **key),
        ]

    return _each_shape(context, params, ["matmul.mismatches", "matmul.nonfinite"], one_shape, None)


def _fingerprint(context: RankContext, product: Product, result: torch.Tensor) -> Observed:
    """A hash of the product's bits as a fact: operands are the same on each rank, so that among accelerators of one
    kind with the same software it should be the same too."""
    from .replicas import parameter_hash

    m, n, k = product.shape
    value = f"{int(parameter_hash([result])) % 2**64:016x}"
    return Observed(subject=context.subject, key=f"matmul.product.{product.dtype}.{m}x{n}x{k}", value=value)


def _rate(context: RankContext, product: Product, times: Sequence[float], phase: str) -> AnyReading:
    rates = [_flops(product.shape) / seconds / 1e12 for seconds in times]
    return reading("matmul.tflops", context.subject, rates, **_key(product.dtype, product.shape, phase))


def _each_shape(
    context: RankContext,
    params: dict[str, Any],
    metrics: Sequence[str],
    work: Callable[[Product], list[AnyReading]],
    phase: str | None,
) -> list[AnyReading]:
    """Run `work` on a product of each shape; what the device cannot do is Missing, and the next shape goes on."""
    import torch

    if not context.on_cuda:
        torch.set_num_threads(context.threads)
    readings: list[AnyReading] = []
    for shape in params["shapes"]:
        key = _key(params["dtype"], shape, phase)
        with float32_precision(params["dtype"]):
            try:
                readings += work(make_product(context, params["dtype"], tuple(shape), params["seed"]))
            except (UnsupportedError, torch.OutOfMemoryError) as error:
                why = " ".join(str(error).split())[:300]
                readings += [
                    Missing(metric=metric, subject=context.subject, reason="unsupported", detail=why, params=key)
                    for metric in metrics
                ]
    return readings
