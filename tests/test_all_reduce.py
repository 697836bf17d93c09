"""all_reduce: every element is checked, figures follow from the ranks' times, and a lone rank is no measurement."""

import dataclasses
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.cluster import RankContext
from hwlottery.evidence import Missing, Observed, Reading
from hwlottery.probes import all_reduce, collective_settings, reduction
from hwlottery.probes.all_reduce import AllReduce, AllReduceSettings
from hwlottery.probes.by_hand import call, gang, one_node, trials_of, values_of
from hwlottery.probes.collective_settings import nccl_debug_env, settings_in_force
from hwlottery.readers.nccl_settings import nccl_settings

SMALL = AllReduceSettings(sizes_kib=(8, 256), warm_ups=1, iterations=4, batched=3)


def test_two_ranks_bring_exactly_what_was_announced_and_sum_right() -> None:
    cluster = one_node("cpu", 2, "/tmp")
    trials = list(trials_of(AllReduce(), cluster, SMALL))
    trials += list(trials_of(AllReduce(), cluster, dataclasses.replace(SMALL, dtype="bf16")))
    brought = gang(trials, [rank.subject for rank in cluster.ranks], "/tmp")
    for trial, readings in zip(trials, brought, strict=True):
        assert values_of(readings) == values_of(trial.fills)
        wrong = [each for each in readings if isinstance(each, Reading) and "wrong" in each.metric]
        assert [each.samples for each in wrong] == [(0.0,) * 4] * 2
        backend = [each.value for each in readings if isinstance(each, Observed) and each.key == "all_reduce.backend"]
        assert backend == ["gloo"]


def test_a_lone_rank_has_nobody_to_reduce_with() -> None:
    trial = next(trials_of(AllReduce(), one_node("cuda", 1, "/tmp"), SMALL))
    assert not trial.collective
    readings = call(trial, "here/gpu0", "/tmp")
    assert values_of(readings) == values_of(trial.fills)
    assert {(type(each), each.reason, each.detail) for each in readings} == {
        (Missing, "unsupported", "needs two ranks")
    }


def test_figures_follow_from_the_times_of_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four ranks, two iterations: the slowest rank is the collective's time."""
    durations = [[0.1, 0.2, 0.1, 0.1], [0.1, 0.1, 0.4, 0.3]]
    monkeypatch.setattr(all_reduce, "timed_iterations", lambda *_: (durations, [0, 3]))
    monkeypatch.setattr(all_reduce, "batched_seconds", lambda *_: 0.05)
    readings = all_reduce._one_size(_rank(0, 4), {"dtype": "fp32", "iterations": 2, "warm_ups": 1, "batched": 1}, 4000)
    found = {each.metric.removeprefix("all_reduce."): each.samples for each in readings if isinstance(each, Reading)}
    assert found["algbw"] == pytest.approx((4000 / 0.2 / 1e9, 4000 / 0.4 / 1e9))
    assert found["busbw"] == pytest.approx((1.5 * 4000 / 0.2 / 1e9, 1.5 * 4000 / 0.4 / 1e9))
    assert found["transfer"] == (0.1, 0.1)
    assert found["skew"] == pytest.approx((0.1, 0.3))
    assert found["batched_busbw"] == pytest.approx((1.5 * 4000 / 0.05 / 1e9,))
    assert found["wrong_elements"] == (0.0, 3.0)


def _rank(rank: int, ranks: int) -> RankContext:
    subjects = tuple(f"here/slot{index}" for index in range(ranks))
    return RankContext(subject=subjects[rank], node="here", device_name="cpu", rank=rank, subjects=subjects)


@settings(max_examples=40, deadline=None)
@given(
    ranks=st.integers(1, 40),
    dtype=st.sampled_from(["fp32", "bf16"]),
    elements=st.integers(1, 600),
    iteration=st.integers(0, 300),
)
def test_the_expected_sum_is_the_sum_of_all_parts_to_the_last_bit(
    ranks: int, dtype: str, elements: int, iteration: int
) -> None:
    width = 4 if dtype == "fp32" else 2
    total = None
    for rank in range(ranks):
        part = reduction.make_reduction(_rank(rank, ranks), elements * width, dtype)
        part.refill(iteration)
        # Summed in the dtype itself: were a partial sum rounded, it would show.
        total = part.buffer.clone() if total is None else total + part.buffer
    assert total is not None
    assert total.numel() == elements
    part.buffer.copy_(total)
    assert int(part.wrong(iteration)) == 0


@settings(max_examples=30, deadline=None)
@given(place=st.integers(0, 255), amount=st.sampled_from([1.0, -1.0, float("nan"), float("inf")]))
def test_one_wrong_element_is_counted_wherever_it_is(place: int, amount: float) -> None:
    alone = reduction.make_reduction(_rank(0, 1), 1024, "fp32")
    alone.refill(0)
    assert int(alone.wrong(0)) == 0
    alone.buffer[place] += amount
    assert int(alone.wrong(0)) == 1


def test_the_result_of_the_iteration_before_is_wrong_everywhere() -> None:
    alone = reduction.make_reduction(_rank(0, 1), 4096, "fp32")
    alone.refill(4)
    assert int(alone.wrong(5)) == alone.buffer.numel()


def test_a_buffer_left_as_it_was_sent_is_wrong() -> None:
    sent = reduction.make_reduction(_rank(1, 2), 4096, "fp32")
    sent.refill(0)
    assert int(sent.wrong(0)) > 0.9 * sent.buffer.numel()


def test_more_ranks_than_a_dtype_sums_exactly_are_refused() -> None:
    reduction.make_reduction(_rank(0, 256), 64, "bf16")
    with pytest.raises(ValueError, match="exactly in bf16"):
        reduction.make_reduction(_rank(0, 257), 64, "bf16")


@pytest.mark.parametrize("ranks", [2, 8, 512])
def test_summing_into_itself_stays_finite_at_any_number_of_ranks(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[int] = []

    def grow(tensor: torch.Tensor, op: object = None) -> None:
        if tensor.numel() > 1:
            tensor.mul_(ranks)
            sums.append(1)

    monkeypatch.setattr(torch.distributed, "all_reduce", grow)
    largest = reduction.make_reduction(_rank(0, ranks), 4096, "fp32")
    reduction.batched_seconds(_rank(0, ranks), largest, times=200)
    assert sums
    assert bool(largest.buffer.isfinite().all())


@pytest.mark.parametrize("wrong", [{"sizes_kib": ()}, {"sizes_kib": (0,)}, {"iterations": 0}, {"warm_ups": 0}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="all_reduce"):
        dataclasses.replace(SMALL, **wrong)


def test_only_accelerators_ask_nccl_to_tell_its_settings() -> None:
    on_cuda = next(trials_of(AllReduce(), one_node("cuda", 2, "/scratch"), SMALL))
    assert on_cuda.env == nccl_debug_env("/scratch")
    assert on_cuda.env["NCCL_DEBUG_FILE"].startswith("/scratch/")
    assert next(trials_of(AllReduce(), one_node("cpu", 2, "/scratch"), SMALL)).env == {}


SAID = """\
NCCL version 2.27.3+cuda12.9
h7:797:797 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5.
h7:797:811 [0] NCCL INFO NET/Plugin: Loaded net plugin AWS Libfabric (v10)
h7:797:811 [0] NCCL INFO Using network IB
h7:797:811 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [receive] via NET/IB/0/GDRDMA
h7:797:811 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM
h7:797:811 [0] NCCL INFO 16 coll channels, 16 collnet channels, 8 nvls channels, 16 p2p channels, 2 per peer
h7:797:797 [0] NCCL INFO AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}
h7:797:797 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}
"""


def test_what_nccl_says_is_read() -> None:
    assert nccl_settings(SAID) == {
        "version": "2.27.3",
        "network": "IB",
        "net_plugin": "AWS Libfabric",
        "transports": "NET/IB/0/GDRDMA P2P/CUMEM",
        "gpudirect": True,
        "channels": 16,
        "nvls_channels": 8,
        "algorithm": "NVLS/SIMPLE",
        "variables": "NCCL_IB_HCA=mlx5",
    }


def test_what_nccl_does_not_say_is_left_out() -> None:
    assert nccl_settings("") == {}
    assert nccl_settings("NCCL version 2.21.5+cuda12.4\nsomething else\n") == {"version": "2.21.5"}


def test_one_way_without_gpudirect_is_no_gpudirect() -> None:
    mixed = "a [0] via NET/IB/0/GDRDMA\nb [send] via NET/Socket/1\nc [receive] via NET/IB/0/GDRDMA\n"
    assert nccl_settings(mixed)["gpudirect"] is False


def test_what_nccl_wrote_of_this_process_is_read_once_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collective_settings, "_OPEN", [])
    own = tmp_path / f"hwlottery-nccl.h7.{os.getpid()}.log"
    own.write_text(SAID)
    other = tmp_path / f"hwlottery-nccl.h7.{os.getpid() + 1}.log"
    other.write_text("NCCL version 9.9.9+cuda99.9")
    monkeypatch.setenv("NCCL_DEBUG_FILE", nccl_debug_env(str(tmp_path))["NCCL_DEBUG_FILE"])
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "nccl")
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 27, 5))
    found = settings_in_force()
    assert (found["backend"], found["version"], found["algorithm"]) == ("nccl", "2.27.3", "NVLS/SIMPLE")
    assert [each.name for each in tmp_path.iterdir()] == [other.name]
    assert settings_in_force() == {"backend": "nccl", "version": "2.27.5"}
    for log in collective_settings._OPEN:
        log.close()
