"""memory: what is announced is brought, NUMA nodes come from inventory, and a closed one is said."""

import msgspec
import pytest
import torch

from hwlottery.cluster import Cluster, RankContext
from hwlottery.evidence import Missing, Observed, Reading
from hwlottery.probes import memory
from hwlottery.probes.by_hand import call, gang, one_node, trials_of, values_of
from hwlottery.probes.host_copy import ClosedError, copy_rates, parse_cpu_list, usable_cpus
from hwlottery.probes.memory import Memory, MemorySettings

SMALL = MemorySettings(device_mib=2, host_mib=4, iterations=3)


def test_two_ranks_bring_exactly_what_was_announced() -> None:
    cluster = one_node("cpu", 2, "/tmp")
    trials = list(trials_of(Memory(), cluster, SMALL))
    brought = gang(trials, [rank.subject for rank in cluster.ranks], "/tmp")
    for trial, readings in zip(trials, brought, strict=True):
        assert values_of(readings) == values_of(trial.fills)
    figures = [each for readings in brought for each in readings if isinstance(each, Reading)]
    assert {each.metric for each in figures} == {"memory.copy", "memory.triad", "memory.host_copy"}
    assert all(len(each.samples) == 3 and min(each.samples) > 0 for each in figures)


def test_numa_nodes_are_those_with_cpus_that_inventory_saw() -> None:
    cluster = msgspec.structs.replace(
        one_node("cpu", 1, "/tmp"),
        facts={
            ("here/numa0", "numa.cpus"): "0-3",
            ("here/numa10", "numa.cpus"): "8-11",
            ("here/numa2", "numa.cpus"): "",
            ("elsewhere/numa7", "numa.cpus"): "0-3",
        },
    )
    assert _host_subjects(cluster) == ["here/numa0", "here/numa10"]
    assert _host_subjects(one_node("cpu", 1, "/tmp")) == ["here/numa0"]


def _host_subjects(cluster: Cluster) -> list[str]:
    host = next(trial for trial in trials_of(Memory(), cluster, SMALL) if trial.function == "memory:host")
    return [fill.subject for fill in host.fills]


def test_a_numa_node_we_may_not_use_is_closed_and_the_others_are_measured() -> None:
    cluster = msgspec.structs.replace(
        one_node("cpu", 1, "/tmp"),
        facts={("here/numa0", "numa.cpus"): "0", ("here/numa999", "numa.cpus"): "5000"},
    )
    host = next(trial for trial in trials_of(Memory(), cluster, SMALL) if trial.function == "memory:host")
    readings = [each for each in call(host, "here/slot0", "/tmp") if not isinstance(each, Observed)]
    assert [type(each) for each in readings] == [Reading, Missing]
    assert readings[1].reason == "closed_to_tenant"
    assert values_of(readings) == values_of(host.fills)


def test_each_accelerator_copies_alone_and_then_all_at_once() -> None:
    links = [trial for trial in trials_of(Memory(), one_node("cuda", 3, "/tmp"), SMALL) if "link" in trial.function]
    assert [[rank.index for rank in trial.ranks] for trial in links] == [[0], [1], [2], [0, 1, 2]]
    assert [trial.params["load"] for trial in links] == ["alone", "alone", "alone", "node"]


def test_a_cpu_has_no_link_to_measure() -> None:
    announced = {
        fill.metric for trial in trials_of(Memory(), one_node("cpu", 1, "/tmp"), SMALL) for fill in trial.fills
    }
    assert announced.isdisjoint(memory.LINK)


def test_a_link_brings_exactly_what_was_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, where no memory can be pinned: the code is that of the accelerator."""
    empty = torch.empty

    def unpinned(*size: int, **how: object) -> torch.Tensor:
        how.pop("pin_memory", None)
        return empty(*size, **how)

    monkeypatch.setattr(torch, "empty", unpinned)
    links = [trial for trial in trials_of(Memory(), one_node("cuda", 1, "/tmp"), SMALL) if "link" in trial.function]
    context = RankContext(subject="here/gpu0", node="here", device_name="cpu", subjects=("here/gpu0",))
    for trial in links:
        params = {**trial.params, "bytes": 1 << 16}
        announced = {(metric, dict(key)["load"]) for metric, _, key in values_of(trial.fills)}
        brought = memory.link(context, params)
        assert {(metric, dict(key)["load"]) for metric, _, key in values_of(brought)} == announced
        assert all(isinstance(each, Reading) and len(each.samples) == 3 for each in brought)


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("\n", set())])
def test_linux_lists_of_cpus_are_read(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus


def test_threads_are_bound_without_binding_the_rank() -> None:
    import os

    before = os.sched_getaffinity(0)
    assert copy_rates(usable_cpus(0)[:1], 1 << 20, 2)[0] > 0
    assert os.sched_getaffinity(0) == before


def test_a_numa_node_that_is_not_there_is_closed() -> None:
    with pytest.raises(ClosedError, match="node998"):
        usable_cpus(998)
