"""All-gather, reduce-scatter, all-to-all: real ranks get what was sent to them, and a wrong element is counted."""

import dataclasses

import pytest
import torch
from plans import cluster_of, driven, nothing

from hwlottery.cluster import RankContext, Trial
from hwlottery.evidence import Missing, Reading
from hwlottery.probes import collectives
from hwlottery.probes.by_hand import gang, values_of
from hwlottery.probes.collectives import Collectives, CollectivesSettings
from hwlottery.probes.exchanges import Operation, make_exchange, whole_bytes

SMALL = CollectivesSettings(sizes_kib=(8, 65), warm_ups=1, iterations=3)
OPERATIONS: tuple[Operation, ...] = ("all_gather", "reduce_scatter", "all_to_all")


def trials_of(nodes: int, ranks: int = 1, settings: CollectivesSettings = SMALL) -> list[Trial]:
    return [trial for trials in driven(Collectives(), cluster_of(nodes, ranks), settings, nothing) for trial in trials]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_three_ranks_bring_what_was_announced_and_every_element_right(dtype: str) -> None:
    trials = trials_of(3, settings=dataclasses.replace(SMALL, dtype=dtype))  # type: ignore[arg-type]
    assert [trial.params["operation"] for trial in trials] == list(OPERATIONS)
    brought = gang(trials, [rank.subject for rank in trials[0].ranks], "/tmp")
    for trial, readings in zip(trials, brought, strict=True):
        assert values_of(readings) == values_of(trial.fills)
        assert not [each for each in readings if isinstance(each, Missing)]
        found = [each for each in readings if isinstance(each, Reading)]
        assert [each.samples for each in found if "wrong" in each.metric] == [(0.0,) * 3] * 2
        assert all(min(each.samples) > 0 for each in found if "busbw" in each.metric)


def test_the_whole_cluster_first_and_all_to_all_on_halves_too() -> None:
    seen = [(trial.params["operation"], trial.params["key"]["nodes"]) for trial in trials_of(9)]
    assert seen == [(each, 9) for each in OPERATIONS] + [("all_to_all", 4), ("all_to_all", 2)]
    assert trials_of(1) == []


@pytest.mark.parametrize(("ranks", "dtype", "whole"), [(3, "fp32", 8196), (8, "fp32", 8192), (7, "bf16", 8204)])
def test_bytes_are_rounded_up_to_whole_elements_of_each_part(ranks: int, dtype: str, whole: int) -> None:
    assert whole_bytes(8192, ranks, dtype) == whole


def context(rank: int, ranks: int) -> RankContext:
    subjects = tuple(f"n00/slot{index}" for index in range(ranks))
    return RankContext(subject=subjects[rank], node="n00", device_name="cpu", rank=rank, subjects=subjects)


def run_by_hand(operation: Operation, ranks: int, iteration: int) -> list[int]:
    """The operation done in plain words on the buffers of all ranks; the wrong elements that each counts."""
    size = whole_bytes(4096, ranks, "fp32")
    everyone = [make_exchange(context(rank, ranks), operation, size, "fp32") for rank in range(ranks)]
    for one in everyone:
        one.refill(iteration)
    for one in everyone:
        mine = slice(one.rank * one.part, (one.rank + 1) * one.part)
        if operation == "all_gather":
            arrived = torch.cat([other.send for other in everyone])
        elif operation == "reduce_scatter":
            arrived = torch.stack([other.send[mine] for other in everyone]).sum(dim=0)
        else:
            arrived = torch.cat([other.send[mine] for other in everyone])
        one.receive.copy_(arrived)
    return [int(one.wrong(iteration)) for one in everyone]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("ranks", [2, 5, 16])
@pytest.mark.parametrize("iteration", [0, 1, 250, 251])
def test_what_must_arrive_is_what_the_operation_gives(operation: Operation, ranks: int, iteration: int) -> None:
    assert run_by_hand(operation, ranks, iteration) == [0] * ranks


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_did_not_arrive_is_old_or_is_no_number_is_wrong(operation: Operation) -> None:
    one = make_exchange(context(1, 4), operation, 4096, "fp32")
    one.refill(0)
    assert int(one.wrong(0)) == one.receive.numel(), "nothing arrived"
    one.receive.fill_(float("nan"))
    assert int(one.wrong(0)) == one.receive.numel()


@pytest.mark.parametrize("operation", ["all_gather", "all_to_all"])
def test_parts_of_two_ranks_exchanged_are_wrong(operation: Operation) -> None:
    one = make_exchange(context(0, 4), operation, 4096, "fp32")
    right = torch.cat([one.pattern[rank : rank + one.part] for rank in range(4)])
    one.receive.copy_(right)
    assert int(one.wrong(0)) == 0
    one.receive.copy_(torch.cat([right[one.part : 2 * one.part], right[: one.part], right[2 * one.part :]]))
    assert int(one.wrong(0)) == 2 * one.part


def test_more_ranks_than_the_dtype_sums_exactly_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly in bf16"):
        make_exchange(context(0, 257), "reduce_scatter", 257 * 2, "bf16")


def test_bandwidth_follows_from_the_slowest_rank_by_the_factor_of_nccl_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "timed_iterations", lambda *_: ([[0.1, 0.2, 0.1, 0.1]], [3]))
    monkeypatch.setattr(collectives, "make_exchange", lambda *_: None)
    params = {"operation": "all_to_all", "subject": "cluster", "sizes": [4000], "warm_ups": 1, "iterations": 1}
    busbw, wrong = collectives.exchange(context(0, 4), params | {"key": {"dtype": "fp32"}})
    assert isinstance(busbw, Reading)
    assert isinstance(wrong, Reading)
    assert busbw.samples == pytest.approx((0.75 * 4000 / 0.2 / 1e9,))
    assert wrong.samples == (3.0,)


@pytest.mark.parametrize("wrong", [{"sizes_kib": ()}, {"sizes_kib": (0,)}, {"warm_ups": 0}, {"ranks_a_node": 0}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="collectives needs"):
        dataclasses.replace(SMALL, **wrong)  # type: ignore[arg-type]
