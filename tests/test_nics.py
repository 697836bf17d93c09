"""The nics probe: a figure only where NCCL says that the NICs carried it, and a reason everywhere else."""

import dataclasses
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from plans import at_speed, cluster_of, driven, nothing

from hwlottery.cluster import Finished, Outcome, Trial
from hwlottery.evidence import Missing, Observed
from hwlottery.probes import collective_settings
from hwlottery.probes.by_hand import call, gang, values_of
from hwlottery.probes.collective_settings import nccl_debug_env
from hwlottery.probes.nics import FORCED, Nics, NicsSettings, why_not_by_nic
from hwlottery.readers.nccl_settings import nccl_settings

SMALL = NicsSettings(sizes_kib=(8, 64), warm_ups=1, iterations=3)


def only_trial(nodes: int = 1, ranks: int = 2, device: str = "cuda") -> Trial:
    ((trial, *_), *_) = driven(Nics(), cluster_of(nodes, ranks, device), SMALL, nothing)  # type: ignore[arg-type]
    return trial


def test_every_way_inside_the_node_is_switched_off_in_ranks_of_their_own() -> None:
    trial = only_trial()
    assert trial.function == "nics:round_the_nics"
    assert trial.env == nccl_debug_env("/scratch") | FORCED
    assert {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}.items() <= trial.env.items()
    assert trial.env["NCCL_NET_DISABLE_INTRA"] == "0"


@pytest.mark.parametrize(
    ("device", "ranks", "why"), [("cpu", 2, "gloo cannot be told"), ("cuda", 1, "needs two accelerators")]
)
def test_where_it_cannot_be_it_is_said_once_with_its_reason(device: str, ranks: int, why: str) -> None:
    trial = only_trial(ranks=ranks, device=device)
    assert not trial.collective
    readings = call(trial, trial.ranks[0].subject, "/tmp")
    assert values_of(readings) == values_of(trial.fills)
    assert all(isinstance(each, Missing) and each.reason == "unsupported" for each in readings)
    assert all(isinstance(each, Missing) and each.detail.startswith(why) for each in readings)
    assert all(call(trial, rank.subject, "/tmp") == [] for rank in trial.ranks[1:])


def test_real_ranks_whose_library_says_nothing_of_its_way_bring_no_figure() -> None:
    """gloo in NCCL's place: the sums are right, and nothing shows that a NIC carried them."""
    trial = only_trial(ranks=2)
    ranks = tuple(replace(rank, device="cpu") for rank in trial.ranks)
    (brought,) = gang([replace(trial, ranks=ranks)], [rank.subject for rank in ranks], "/tmp")
    missing = [each for each in brought if isinstance(each, Missing)]
    assert values_of(missing) == values_of(trial.fills)
    assert {each.detail for each in missing} == {"the library did not say which way it took"}
    assert [each.value for each in brought if isinstance(each, Observed) and each.key == "nics.backend"] == ["gloo"]


def said(*ways: str) -> str:
    return "\n".join(f"h7:797:811 [0] NCCL INFO Channel 00/0 : 7[7] -> 0[0] [receive] via {way}" for way in ways)


@pytest.mark.parametrize(
    ("ways", "why"),
    [
        (("NET/IB/0/GDRDMA", "NET/IB/1"), ""),
        (("NET/AWS Libfabric/0/GDRDMA",), ""),
        (("NET/IB/0/GDRDMA", "P2P/CUMEM"), "NCCL went by P2P/CUMEM in spite of the switches"),
        (("SHM/direct/direct",), "NCCL went by SHM/direct/direct in spite of the switches"),
        (("NET/Socket/0",), "NCCL uses sockets here, and the kernel turns those round inside the node"),
        ((), "the library did not say which way it took"),
    ],
)
def test_what_nccl_says_of_its_ways_decides(ways: tuple[str, ...], why: str) -> None:
    assert why_not_by_nic(nccl_settings(said(*ways))) == why


def speeds(**slow: float) -> object:
    def answer(trial: Trial) -> Outcome:
        return at_speed(trial, 20.0 * slow.get(trial.fills[0].subject, 1.0))

    return answer


def test_a_node_that_is_slower_than_the_others_is_measured_again_alone() -> None:
    cluster = cluster_of(5, ranks=2, device="cuda")
    rounds = driven(Nics(), cluster, SMALL, speeds(n03=0.7))  # type: ignore[arg-type]
    assert [len(trials) for trials in rounds] == [5, 1], "seen as an outlier twice it is measured no more"
    (retest,) = rounds[1]
    assert (retest.fills[0].subject, retest.attempt, retest.retest_of) == ("n03", 2, "n03#1")


def test_a_healthy_cluster_two_nodes_or_values_that_never_came_need_no_second_look() -> None:
    for nodes, answer in ((5, speeds()), (2, speeds(n01=0.5)), (5, lambda _: Finished(readings=()))):
        assert len(driven(Nics(), cluster_of(nodes, 2, "cuda"), SMALL, answer)) == 1  # type: ignore[arg-type]


def test_each_communicators_lines_are_read_once_though_the_file_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL opens its file once a process, and writes on after its name is gone."""
    monkeypatch.setattr(collective_settings, "_OPEN", [])
    monkeypatch.setenv("NCCL_DEBUG_FILE", nccl_debug_env(str(tmp_path))["NCCL_DEBUG_FILE"])
    with (tmp_path / f"hwlottery-nccl.h7.{os.getpid()}.log").open("w") as nccl:
        nccl.write(said("NET/IB/0/GDRDMA") + "\n")
        nccl.flush()
        assert nccl_settings(collective_settings._debug_text())["transports"] == "NET/IB/0/GDRDMA"
        assert list(tmp_path.iterdir()) == []
        assert nccl_settings(collective_settings._debug_text()) == {}
        nccl.write(said("NET/Socket/0") + "\n")
        nccl.flush()
        assert nccl_settings(collective_settings._debug_text())["transports"] == "NET/Socket/0"
    for log in collective_settings._OPEN:
        log.close()


@pytest.mark.parametrize("wrong", [{"sizes_kib": ()}, {"iterations": 0}, {"effect": 0.9}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="nics needs"):
        dataclasses.replace(SMALL, **wrong)  # type: ignore[arg-type]
