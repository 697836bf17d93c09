"""The rails probe: each rail of each node with two partners, suspects again and alone, and figures of real ranks."""

import dataclasses
from collections import Counter
from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from plans import Answer, at_speed, cluster_of, driven, nothing

from hwlottery.cluster import Cluster, Finished, Outcome, Trial, WorkerLost
from hwlottery.evidence import Missing, Reading, parse_subject
from hwlottery.fabric import Observation, Thresholds, blame_of_rails, levels_of, places_of, rail_subject
from hwlottery.probes.by_hand import gang, values_of
from hwlottery.probes.rails import Rails, RailsSettings
from hwlottery.probes.tournament import ring

SMALL = RailsSettings(sizes_kib=(8, 64), together=True, warm_ups=1, iterations=4)


def rounds_of(cluster: Cluster, settings: RailsSettings = SMALL, answer: Answer = nothing) -> list[list[Trial]]:
    return driven(Rails(), cluster, settings, answer)


def subject_of(trial: Trial) -> str:
    return str(trial.params["subject"])


def speeds(slow: Mapping[str, float]) -> Answer:
    """Rails at 10 GB/s, times the least share of those of n01/rail2 and n01~n02/rail2 that are named here."""

    def answer(trial: Trial) -> Outcome:
        subject = subject_of(trial)
        pair, _, rail = subject.partition("/")
        parts = [*(f"{node}/{rail}" for node in pair.split("~")), subject]
        return at_speed(trial, 10.0 * min(slow.get(part, 1.0) for part in parts))

    return answer


@pytest.mark.parametrize("nodes", range(2, 10))
def test_a_ring_has_each_node_meet_both_neighbours_once_in_rounds_of_disjoint_pairs(nodes: int) -> None:
    rounds = ring(nodes)
    met = Counter(frozenset(meeting) for meetings in rounds for meeting in meetings)
    assert met == Counter({frozenset({node, (node + 1) % nodes}): 1 for node in range(nodes)})
    assert len(rounds) == (1 if nodes == 2 else 2 if nodes % 2 == 0 else 3)
    for meetings in rounds:
        seated = [node for meeting in meetings for node in meeting]
        assert len(set(seated)) == len(seated)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_every_rail_of_every_node_meets_two_partners_where_there_are_two(nodes: int, together: bool) -> None:
    rounds = rounds_of(cluster_of(nodes, ranks=3), dataclasses.replace(SMALL, together=together))
    partners: dict[tuple[str, int], set[str]] = {}
    for trials in rounds:
        ranks = [rank.subject for trial in trials for rank in trial.ranks]
        assert len(set(ranks)) == len(ranks)
        for trial in trials:
            (one, other) = trial.ranks
            assert one.index == other.index, "rank k of one with rank k of the other"
            assert subject_of(trial) == f"{one.node}~{other.node}/rail{one.index}"
            partners.setdefault((one.node, one.index), set()).add(other.node)
            partners.setdefault((other.node, other.index), set()).add(one.node)
    assert len(partners) == 3 * nodes
    assert {len(met) for met in partners.values()} == {min(2, nodes - 1)}


def test_ranks_that_share_a_nic_take_turns() -> None:
    apart = rounds_of(cluster_of(4, ranks=3), dataclasses.replace(SMALL, together=False))
    assert all(len({trial.ranks[0].index for trial in trials}) == 1 for trials in apart)
    assert len(apart) == 3 * len(rounds_of(cluster_of(4, ranks=3)))


def test_a_node_with_fewer_ranks_has_fewer_rails() -> None:
    cluster = cluster_of(2, ranks=3)
    one, other = cluster.nodes
    fewer = replace(cluster, nodes=(one, replace(other, ranks=other.ranks[:1])))
    for together in (True, False):
        rounds = rounds_of(fewer, dataclasses.replace(SMALL, together=together))
        assert [[subject_of(trial) for trial in trials] for trials in rounds] == [["n00~n01/rail0"]]


def test_one_node_has_nothing_to_do() -> None:
    assert rounds_of(cluster_of(1)) == []


def test_what_is_planned_is_announced() -> None:
    for trial in (trial for trials in rounds_of(cluster_of(3)) for trial in trials):
        assert len(values_of(trial.fills)) == len(trial.fills) == 4
        assert {parse_subject(fill.subject).kind for fill in trial.fills} == {"rail"}
        assert {fill.metric for fill in trial.fills} == set(Rails.metrics)
        assert trial.deadline_s > trial.expected_s > 0


def test_only_accelerators_are_held_to_one_nic() -> None:
    on_cuda = rounds_of(cluster_of(2, device="cuda"))[0][0]
    assert (on_cuda.env["NCCL_ALGO"], on_cuda.env["NCCL_CROSS_NIC"]) == ("Ring", "0")
    assert rounds_of(cluster_of(2))[0][0].env == {}


def again(rounds: list[list[Trial]]) -> Counter[str]:
    return Counter(subject_of(trial) for trials in rounds for trial in trials if trial.attempt > 1)


def test_a_slow_rail_of_a_node_is_measured_again_alone_with_both_partners() -> None:
    rounds = rounds_of(cluster_of(5, ranks=4), answer=speeds({"n02/rail3": 0.5}))
    retests = again(rounds)
    assert {"n01~n02/rail3", "n02~n03/rail3"} <= retests.keys()
    assert not [subject for subject in retests if "n02" in subject and "rail3" not in subject]
    later = [trials for trials in rounds if any(trial.attempt > 1 for trial in trials)]
    assert all(len(trials) == 1 for trials in later)
    assert all(trial.retest_of == f"{subject_of(trial)}#1" for trials in later for trial in trials)


def test_a_healthy_cluster_is_measured_again_only_to_tell_alone_from_together() -> None:
    retests = again(rounds_of(cluster_of(6, ranks=4), answer=speeds({})))
    assert set(retests.values()) == {2}
    assert len(retests) == 3


def test_two_slow_neighbours_are_told_from_their_links_by_others_on_their_own_rail() -> None:
    slow = {"n02/rail1": 0.5, "n03/rail1": 0.5}
    retests = again(rounds_of(cluster_of(8, ranks=2), answer=speeds(slow)))
    beyond = [subject for subject in retests if subject not in {f"n{i:02d}~n{i + 1:02d}/rail1" for i in range(8)}]
    assert [subject for subject in beyond if "n02" in subject and subject.endswith("/rail1")]


def test_of_two_nodes_every_rail_is_measured_again_alone() -> None:
    rounds = rounds_of(cluster_of(2, ranks=3), answer=speeds({}))
    assert len(rounds[0]) == 3
    assert all(len(trials) == 1 for trials in rounds[1:])
    assert set(again(rounds)) == {f"n00~n01/rail{rail}" for rail in range(3)}


def test_retests_are_limited() -> None:
    few = dataclasses.replace(SMALL, most_retests=3)
    assert again(rounds_of(cluster_of(6), few, speeds({"n04/rail0": 0.5}))).total() == 3


def test_a_node_that_is_lost_is_left_alone() -> None:
    def answer(trial: Trial) -> Outcome:
        return WorkerLost(subjects=("n01",)) if "n01" in subject_of(trial) else speeds({})(trial)

    rounds = rounds_of(cluster_of(4, ranks=1), answer=answer)
    assert [subject_of(trial) for trials in rounds for trial in trials if "n01" in subject_of(trial)] == [
        "n00~n01/rail0"
    ]


def judged(slow: Mapping[str, float], nodes: int = 4, rails: int = 2) -> dict[str, bool]:
    """Whom the model names on generated values seen three times: places, and links by their subject."""
    seen = []
    for attempt in (1, 2, 3):
        for meeting in (meeting for meetings in ring(nodes) for meeting in meetings):
            for rail in range(rails):
                one, other = (f"n{index:02d}" for index in meeting)
                places = places_of(one, other, rail)
                share = min(slow.get(part, 1.0) for part in (*places, rail_subject(places)))
                value = 50 * share * (1 + 0.001 * attempt)
                seen.append(Observation(pair=places, value=value, alone=attempt > 1))
    levels = levels_of(seen, Thresholds())
    assert levels is not None
    found = blame_of_rails(levels)
    culprits = [culprit for one in found.values() for culprit in (*one.nodes, *one.links)]
    return {one.node or rail_subject(one.pair or ("", "")): one.confirmed for one in culprits}


def test_one_rail_of_one_node_is_named_and_no_other() -> None:
    assert judged({"n02/rail1": 0.6}) == {"n02/rail1": True}
    assert judged({}) == {}


def test_a_slow_link_of_one_rail_is_named_and_neither_end() -> None:
    assert judged({"n01~n02/rail0": 0.6}, nodes=5) == {"n01~n02/rail0": True}


def test_a_rail_that_is_slow_on_all_nodes_is_held_against_the_others() -> None:
    slow = judged({f"n{index:02d}/rail1": 0.5 for index in range(4)})
    assert not [one for one in slow if "rail0" in one]


def test_two_ranks_bring_what_was_announced_and_sum_right() -> None:
    cluster = cluster_of(2, ranks=1)
    (trial,) = rounds_of(cluster)[0]
    (brought,) = gang([trial], [rank.subject for rank in trial.ranks], "/tmp")
    assert values_of(brought) == values_of(trial.fills)
    assert not [each for each in brought if isinstance(each, Missing)]
    wrong = [each.samples for each in brought if isinstance(each, Reading) and each.metric == "rail.wrong_elements"]
    assert wrong == [(0.0,) * 4] * 2
    assert all(min(each.samples) > 0 for each in brought if isinstance(each, Reading) and "busbw" in each.metric)


def test_values_that_never_came_are_no_bandwidth() -> None:
    assert again(rounds_of(cluster_of(4), answer=lambda _: Finished(readings=()))).total() == 0


@pytest.mark.parametrize("wrong", [{"sizes_kib": ()}, {"iterations": 0}, {"effect": 0.0}, {"most_retests": -1}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rails needs"):
        dataclasses.replace(SMALL, **wrong)  # type: ignore[arg-type]
