"""matmul: what is announced is brought, wrong bits are counted, and what a device cannot do is said."""

import dataclasses
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.cluster import RankContext
from hwlottery.evidence import Missing, Observed, Reading
from hwlottery.probes import matmul, products
from hwlottery.probes.by_hand import call, gang, one_node, trials_of, values_of
from hwlottery.probes.llc import cache_flush_bytes, last_level_cache_bytes
from hwlottery.probes.matmul import Matmul, MatmulSettings
from hwlottery.probes.timing import HostClock, back_to_back, clock_of, timed_each

SMALL = MatmulSettings(
    dtypes=("fp32", "bf16", "fp8"),
    shapes=((64, 32, 16), (128, 128, 128)),
    burst_iterations=4,
    sustained_shapes=((128, 128, 128),),
    sustained_s=0.1,
    repeats=2,
    warm_up_s=0.01,
)
HERE = RankContext(subject="here/slot0", node="here", device_name="cpu", subjects=("here/slot0",))


def test_two_ranks_bring_exactly_what_was_announced() -> None:
    cluster = one_node("cpu", 2, "/tmp")
    trials = list(trials_of(Matmul(), cluster, SMALL))
    brought = gang(trials, [rank.subject for rank in cluster.ranks], "/tmp")
    for trial, readings in zip(trials, brought, strict=True):
        assert values_of(readings) == values_of(trial.fills)
    rates = [each for readings in brought for each in readings if isinstance(each, Reading) and "tflops" in each.metric]
    assert all(min(each.samples) > 0 for each in rates)


def test_each_phase_can_be_left_out() -> None:
    cluster = one_node("cpu", 1, "/tmp")

    def functions(**left_out: object) -> set[str]:
        return {trial.function for trial in trials_of(Matmul(), cluster, dataclasses.replace(SMALL, **left_out))}

    assert functions() == {"matmul:repeat", "matmul:burst", "matmul:sustained"}
    assert functions(burst_iterations=0, sustained_shapes=()) == {"matmul:repeat"}
    assert functions(repeats=0, sustained_s=0) == {"matmul:burst"}


def test_a_dtype_the_device_lacks_is_missing_with_its_reason() -> None:
    trials = trials_of(Matmul(), one_node("cpu", 1, "/tmp"), dataclasses.replace(SMALL, dtypes=("fp8", "tf32")))
    for trial in trials:
        readings = [each for each in call(trial, "here/slot0", "/tmp") if not isinstance(each, Observed)]
        assert readings
        assert all(isinstance(each, Missing) and each.reason == "unsupported" for each in readings)


def test_memory_that_runs_out_costs_its_shape_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = matmul.make_product

    def scarce(context: RankContext, dtype: str, shape: tuple[int, int, int], seed: int) -> products.Product:
        if shape == (64, 32, 16):
            raise torch.OutOfMemoryError("no memory for it")
        return whole(context, dtype, shape, seed)

    monkeypatch.setattr(matmul, "make_product", scarce)
    params = {"dtype": "fp32", "shapes": SMALL.shapes, "repeats": 1, "seed": 1}
    kinds = [type(each) for each in matmul.repeat(HERE, params) if not isinstance(each, Observed)]
    assert kinds == [Missing, Missing, Reading, Reading]


def test_a_product_that_differs_once_in_one_bit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _spoil_second_run(monkeypatch, lambda out: out.view(torch.int32)[3, 5].bitwise_xor_(1))
    by_metric = _repeat(repeats=2)
    assert by_metric["matmul.mismatches"] == (1.0, 0.0)
    assert by_metric["matmul.nonfinite"] == (0.0, 0.0, 0.0)


def test_a_product_that_is_not_written_counts_as_different(monkeypatch: pytest.MonkeyPatch) -> None:
    _spoil_second_run(monkeypatch, lambda out: out.fill_(float("nan")))
    by_metric = _repeat(repeats=1)
    assert by_metric["matmul.mismatches"] == (64.0 * 32,)
    assert by_metric["matmul.nonfinite"] == (0.0, 64.0 * 32)


def _spoil_second_run(monkeypatch: pytest.MonkeyPatch, spoil: object) -> None:
    whole = matmul.make_product

    def spoilt(*given: object) -> products.Product:
        product = whole(*given)
        runs: list[int] = []

        def run() -> torch.Tensor:
            product.run()
            runs.append(1)
            if len(runs) == 2:
                spoil(product.out)
            return product.out

        return dataclasses.replace(product, run=run)

    monkeypatch.setattr(matmul, "make_product", spoilt)


def _repeat(repeats: int) -> dict[str, tuple[float, ...]]:
    readings = matmul.repeat(HERE, {"dtype": "fp32", "shapes": [(64, 32, 16)], "repeats": repeats, "seed": 1})
    return {each.metric: each.samples for each in readings if isinstance(each, Reading)}


def test_a_product_has_the_same_fingerprint_on_each_rank_and_another_for_other_bits() -> None:
    def fingerprint(context: RankContext, seed: int) -> object:
        params = {"dtype": "fp32", "shapes": [(64, 32, 16)], "repeats": 1, "seed": seed}
        (fact,) = (each for each in matmul.repeat(context, params) if isinstance(each, Observed))
        assert fact.key == "matmul.product.fp32.64x32x16"
        return fact.value

    assert fingerprint(HERE, 1) == fingerprint(dataclasses.replace(HERE, rank=1, subject="here/slot1"), 1)
    assert fingerprint(HERE, 1) != fingerprint(HERE, 2)


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    place=st.integers(0, 99),
    bit=st.integers(0, 14),
    seed=st.integers(0, 1000),
)
def test_any_flipped_bit_of_any_element_is_seen(kind: torch.dtype, place: int, bit: int, seed: int) -> None:
    one = torch.randn(100, generator=torch.Generator().manual_seed(seed)).to(kind)
    other = one.clone()
    other.view(torch.int32 if kind == torch.float32 else torch.int16)[place] ^= 1 << bit
    assert products.different_bits(one, other) == 1
    assert products.different_bits(one, one.clone()) == 0


def test_operands_are_spread_around_zero_and_the_product_is_right() -> None:
    product = products.make_product(HERE, "fp32", (64, 32, 16), seed=3)
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(64, 16, generator=generator)
    b = torch.randn(32, 16, generator=generator)
    assert torch.allclose(product.run(), a @ b.t(), atol=1e-4)
    assert (a < 0).any()
    assert (a > 0).any()


def test_the_fp8_product_is_the_product_but_for_its_rounding() -> None:
    """torch has the same call on CPUs, slowly: it is made as on an accelerator."""
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(64, 32, generator=generator), torch.randn(48, 32, generator=generator)
    product = products._fp8_product(HERE, (64, 48, 32), a, b)
    assert product.run() is product.out
    assert torch.allclose(product.out.float(), a @ b.t(), atol=2.0)
    assert torch.corrcoef(torch.stack([product.out.float().flatten(), (a @ b.t()).flatten()]))[0, 1] > 0.99


def test_the_rate_is_two_m_n_k_over_the_time() -> None:
    product = products.make_product(HERE, "fp32", (64, 32, 16), seed=3)
    rate = matmul._rate(HERE, product, [1e-6], "burst")
    assert isinstance(rate, Reading)
    assert rate.samples == pytest.approx((2 * 64 * 32 * 16 / 1e-6 / 1e12,))


def test_only_the_second_half_of_sustained_work_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "back_to_back", lambda *_: [1.0, 1.0, 2.0, 2.0])
    readings = matmul.sustained(HERE, {"dtype": "fp32", "shapes": [(64, 32, 16)], "seconds": 1, "seed": 1})
    assert isinstance(readings[0], Reading)
    assert readings[0].samples == pytest.approx((2 * 64 * 32 * 16 / 2 / 1e12,) * 2)


def test_what_runs_before_a_timed_call_is_not_timed() -> None:
    import time

    times = timed_each(HostClock(), lambda: None, 3, before=lambda: time.sleep(0.02))
    assert len(times) == 3
    assert statistics.median(times) < 0.01


def test_back_to_back_gives_seconds_a_call() -> None:
    import time

    times = back_to_back(HostClock(), lambda: time.sleep(0.005), seconds=0.05, calls=2)
    assert len(times) >= 3
    assert 0.005 <= statistics.median(times) < 0.05


def test_marks_on_a_gpu_are_events_on_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch's events, whose times are in milliseconds."""
    reached: list[float] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at_ms = 250.0 * len(reached)
            reached.append(self.at_ms)

        def synchronize(self) -> None:
            assert self.at_ms in reached

        def elapsed_time(self, end: "Event") -> float:
            return end.at_ms - self.at_ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    assert isinstance(clock_of(HERE), HostClock)
    on_gpu = dataclasses.replace(HERE, device_name="cuda:0")
    assert timed_each(clock_of(on_gpu), lambda: None, 3) == [0.25, 0.25, 0.25]


def test_the_cache_is_read_from_linux_and_unknown_stays_unknown(tmp_path: object) -> None:
    root = tmp_path
    assert last_level_cache_bytes(root) is None
    for index, size in enumerate(("32K", "1M", "36M")):
        (root / f"index{index}").mkdir()
        (root / f"index{index}" / "size").write_text(size + "\n")
    assert last_level_cache_bytes(root) == 36 << 20
    assert cache_flush_bytes(False, root) == 72 << 20
    assert cache_flush_bytes(True, root) == 256 << 20


@pytest.mark.parametrize(
    "wrong", [{"dtypes": ()}, {"shapes": ()}, {"shapes": ((10, 16, 16),)}, {"repeats": -1}, {"sustained_s": -1}]
)
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="matmul"):
        dataclasses.replace(SMALL, **wrong)
