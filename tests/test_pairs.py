"""The pairs probe: every pair once, suspects again and alone, and real ranks that bring what was announced."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import msgspec
import pytest
from plans import Answer, at_speed, cluster_of, driven

from hwlottery.cluster import Cluster, Finished, Joining, Outcome, Raised, TimedOut, Trial, WorkerLost
from hwlottery.evidence import Missing, Observed, Reading, parse_subject, reading
from hwlottery.probes.by_hand import gang, values_of
from hwlottery.probes.pairs import Pairs, PairsSettings
from hwlottery.probes.profiles import load_profile
from hwlottery.runner.preview import preview

SMALL = PairsSettings(sizes_kib=(8, 64), warm_ups=1, iterations=4, latency_iterations=3, lone_pairs=0)


def tournament(cluster: Cluster, settings: PairsSettings, answer: Answer) -> list[list[Trial]]:
    return driven(Pairs(), cluster, settings, answer)


def speeds(slow: Mapping[str, float]) -> Answer:
    """Pairs at 10 GB/s, times the least share of node and link named here."""

    def answer(trial: Trial) -> Outcome:
        subject = trial.params["subject"]
        share = min([slow.get(part, 1.0) for part in (*subject.split("~"), subject)])
        return at_speed(trial, 10.0 * share)

    return answer


def pairs_of(rounds: list[list[Trial]], *, attempt: int) -> Counter[str]:
    return Counter(
        trial.params["subject"]
        for trials in rounds
        for trial in trials
        if "~" in trial.params["subject"] and (trial.attempt == 1) == (attempt == 1)
    )


@pytest.mark.parametrize("nodes", [2, 3, 5, 8])
def test_every_pair_is_measured_once_in_rounds_of_disjoint_ranks(nodes: int) -> None:
    rounds = tournament(cluster_of(nodes), SMALL, speeds({}))
    wanted = {f"n{one:02d}~n{other:02d}" for one, other in combinations(range(nodes), 2)}
    assert pairs_of(rounds, attempt=1) == dict.fromkeys(wanted, 1)
    for trials in rounds:
        ranks = [rank.subject for trial in trials for rank in trial.ranks]
        assert len(set(ranks)) == len(ranks)


def test_what_is_planned_is_announced_and_belongs_to_a_pair_or_the_cluster() -> None:
    for trial in (trial for trials in tournament(cluster_of(3), SMALL, speeds({})) for trial in trials):
        assert len(values_of(trial.fills)) == len(trial.fills) == 3 * 2 + 3
        assert {parse_subject(fill.subject).kind for fill in trial.fills} <= {"pair", "cluster"}
        assert {fill.metric for fill in trial.fills} <= set(Pairs.metrics)
        assert trial.collective
        assert trial.deadline_s > trial.expected_s > 0


def test_one_node_has_nothing_to_do() -> None:
    assert tournament(cluster_of(1), SMALL, speeds({})) == []


def stalling(counts: Mapping[str, tuple[float, ...]]) -> Answer:
    """Healthy pairs; those named here have so many stalls in each attempt, and none after these."""

    def answer(trial: Trial) -> Outcome:
        found = counts.get(trial.params["subject"], ())
        count = found[trial.attempt - 1] if trial.attempt <= len(found) else 0.0
        told = speeds({})(trial)
        stalls = [reading(f.metric, f.subject, count, **f.params) for f in trial.fills if "stalls" in f.metric]
        return Finished(readings=(*told.readings, *stalls))

    return answer


def test_pairs_that_stall_are_measured_again_twice_and_a_single_stall_is_no_reason() -> None:
    answer = stalling({"n00~n02": (3.0,), "n01~n02": (2.0,), "n02~n03": (4.0,), "n00~n01": (1.0,)})
    again = pairs_of(tournament(cluster_of(4), SMALL, answer), attempt=2)
    plain = pairs_of(tournament(cluster_of(4), SMALL, speeds({})), attempt=2)
    assert {pair: again[pair] for pair in ("n00~n02", "n01~n02", "n02~n03")} == dict.fromkeys(
        ("n00~n02", "n01~n02", "n02~n03"), 2
    )
    assert again["n00~n01"] == plain["n00~n01"]


def test_of_many_pairs_that_stall_with_one_node_a_few_are_measured_again() -> None:
    answer = stalling({f"n{other:02d}~n15": (5.0, 5.0, 5.0) for other in range(15)})
    again = pairs_of(tournament(cluster_of(16), SMALL, answer), attempt=2)
    assert sum(pair.endswith("n15") for pair in again) == 3


def test_a_healthy_cluster_is_measured_again_only_to_tell_alone_from_together() -> None:
    again = pairs_of(tournament(cluster_of(6), SMALL, speeds({})), attempt=2)
    assert set(again.values()) == {2}
    assert len(again) == 3


def test_a_slow_node_meets_two_good_partners_again_alone() -> None:
    rounds = tournament(cluster_of(6), SMALL, speeds({"n04": 0.5}))
    later = [trials for trials in rounds if any(trial.attempt > 1 for trial in trials)]
    assert all(len(trials) == 1 for trials in later), "retests are alone on the fabric"
    again = pairs_of(rounds, attempt=2)
    of_suspect = [subject for subject in again if "n04" in subject]
    assert len(of_suspect) == 2
    assert len([subject for subject in again if "n04" not in subject]) >= 1, "good pairs to compare with"


def test_a_slow_link_is_measured_again_and_each_of_its_ends_with_another() -> None:
    again = pairs_of(tournament(cluster_of(6), SMALL, speeds({"n01~n04": 0.5})), attempt=2)
    assert again["n01~n04"] == 2
    for node in ("n01", "n04"):
        assert [subject for subject in again if node in subject and subject != "n01~n04"]


def test_a_retest_names_the_trial_that_it_repeats() -> None:
    rounds = tournament(cluster_of(4), SMALL, speeds({"n03": 0.5}))
    again = [trial for trials in rounds for trial in trials if trial.attempt > 1]
    assert again
    assert all(trial.retest_of == f"{trial.params['subject']}#1" for trial in again)


def test_retests_are_limited() -> None:
    few = dataclasses.replace(SMALL, most_retests=4)
    assert pairs_of(tournament(cluster_of(6), few, speeds({"n04": 0.5})), attempt=2).total() == 4


def test_many_nodes_meet_a_few_partners_each() -> None:
    sampled = dataclasses.replace(SMALL, round_robin_up_to=8)
    met = pairs_of(tournament(cluster_of(20, ranks=1), sampled, speeds({})), attempt=1)
    assert len(met) < 20 * 19 / 2 / 2
    partners = Counter(node for subject in met for node in subject.split("~"))
    assert min(partners[f"n{index:02d}"] for index in range(20)) >= 3


def test_what_a_sampled_tournament_leaves_open_is_measured() -> None:
    """n00 and n01 have one fast partner among them; whom else they meet decides."""
    sampled = dataclasses.replace(SMALL, round_robin_up_to=1)
    rounds = tournament(cluster_of(4), sampled, speeds({"n00": 0.5}))
    assert [subject for subject in pairs_of(rounds, attempt=2) if "n00" in subject]


def test_the_whole_cluster_then_half_of_it_then_a_quarter() -> None:
    rounds = tournament(cluster_of(9), SMALL, speeds({}))
    whole = [trial for trials in rounds for trial in trials if trial.params["subject"] == "cluster"]
    assert [trial.params["key"]["nodes"] for trial in whole] == [9, 4, 2]
    assert [len(trial.ranks) for trial in whole] == [18, 8, 4]


def test_a_node_that_retests_have_shown_to_be_slow_has_no_part_in_the_whole() -> None:
    rounds = tournament(cluster_of(6), SMALL, speeds({"n02": 0.5}))
    whole = [trial for trials in rounds for trial in trials if trial.params["subject"] == "cluster"]
    assert [trial.params["key"]["nodes"] for trial in whole] == [5, 2]
    assert not any(rank.node == "n02" for trial in whole for rank in trial.ranks)


def test_fewer_ranks_a_node_can_be_taken() -> None:
    one_each = dataclasses.replace(SMALL, ranks_a_node=1)
    rounds = tournament(cluster_of(3, ranks=4), one_each, speeds({}))
    assert {len(trial.ranks) for trials in rounds[:3] for trial in trials} == {2}


@pytest.mark.parametrize("how", ["lost", "raised", "timed out"])
def test_a_node_that_fails_does_not_cost_the_others_their_pairs(how: str) -> None:
    def answer(trial: Trial) -> Outcome:
        nodes = {rank.node for rank in trial.ranks}
        if "n02" not in nodes:
            return speeds({})(trial)
        if how == "lost":
            return WorkerLost(subjects=("n02",))
        return Raised(subject="n02/slot0", message="x") if how == "raised" else TimedOut(subjects=("n02/slot0",))

    rounds = tournament(cluster_of(8), SMALL, answer)
    met = pairs_of(rounds, attempt=1)
    wanted = {f"n{a:02d}~n{b:02d}" for a, b in combinations([0, 1, 3, 4, 5, 6, 7], 2)}
    assert wanted <= met.keys()
    assert sum("n02" in subject for subject in met) == (1 if how == "lost" else 3), "then it is left alone"
    assert rounds[-1][0].params["key"]["nodes"] <= 7


def test_values_that_are_none_are_no_bandwidth() -> None:
    def answer(trial: Trial) -> Outcome:
        bad = float("nan") if "n01" in trial.params["subject"] else 0.0
        return Finished(readings=tuple(reading(f.metric, f.subject, [bad], **f.params) for f in trial.fills))

    assert pairs_of(tournament(cluster_of(3), SMALL, answer), attempt=2).total() == 0


def test_two_ranks_of_two_nodes_bring_what_was_announced_and_sum_right() -> None:
    cluster = cluster_of(2, ranks=1)
    trials = [trials[0] for trials in tournament(cluster, SMALL, lambda _: Finished(readings=()))]
    assert [trial.params["subject"] for trial in trials] == ["n00~n01", "cluster"]
    brought = gang(trials, [rank.subject for rank in cluster.ranks], "/tmp")
    for trial, readings in zip(trials, brought, strict=True):
        assert values_of(readings) == values_of(trial.fills)
        assert not [each for each in readings if isinstance(each, Missing)]
        by_metric = {each.metric: each for each in readings if isinstance(each, Reading)}
        assert set(by_metric["all_reduce.wrong_elements"].samples) == {0.0}
        assert all(one > 0 for one in by_metric["all_reduce.busbw"].samples)
        assert all(0 < one < 1 for one in by_metric["all_reduce.latency"].samples)
    pair, whole = ([each for each in readings if isinstance(each, Observed)] for readings in brought)
    assert {(each.subject, each.key, each.value) for each in pair} >= {("n00~n01", "pairs.algorithm", "ring")}
    assert {each.subject for each in whole} == {"n00/slot0", "n01/slot0"}, "each rank tells of its own part"
    assert {each.value for each in whole if each.key == "fabric.backend"} == {"gloo"}


def test_only_accelerators_ask_nccl_for_its_settings() -> None:
    on_cuda = tournament(cluster_of(2, device="cuda"), SMALL, speeds({}))[0][0]
    assert on_cuda.env["NCCL_DEBUG_FILE"].startswith("/scratch/")
    assert tournament(cluster_of(2), SMALL, speeds({}))[0][0].env == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes_kib": ()},
        {"sizes_kib": (0,)},
        {"iterations": 0},
        {"effect": 0.0},
        {"latency_bytes": 1},
        {"ranks_a_node": 0},
    ],
)
def test_settings_that_cannot_run_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="pairs needs"):
        dataclasses.replace(SMALL, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["smoke", "quick", "acceptance"])
def test_the_preview_counts_the_rounds_of_the_tournament(name: str) -> None:
    shown = preview((Pairs(),), load_profile(name), cluster_of(4), (), None)
    assert (shown.probes[0].rounds, shown.probes[0].trials) == (5, 8)


def test_in_a_join_newcomers_meet_everybody_and_accepted_nodes_only_a_few() -> None:
    joining = Joining(number=1, accepted=frozenset(("n00", "n01", "n02", "n03")))
    cluster = msgspec.structs.replace(cluster_of(6), joining=joining)
    rounds = tournament(cluster, SMALL, speeds({"n05": 0.5}))
    met = {frozenset(subject.split("~")) for subject in pairs_of(rounds, attempt=1)}
    among_accepted = {pair for pair in met if pair <= joining.accepted}
    assert among_accepted == {frozenset(("n00", "n01")), frozenset(("n02", "n03"))}
    assert len(met - among_accepted) == 4 + 4 + 1
    again = {frozenset(subject.split("~")) for subject in pairs_of(rounds, attempt=2)}
    assert any("n05" in pair for pair in again), "a slow newcomer is measured again before it is blamed"
    assert {trial.params["join"] for trials in rounds for trial in trials} == {1}
    whole = [trial for trials in rounds for trial in trials if trial.params["subject"] == "cluster"]
    assert [len({rank.node for rank in trial.ranks}) for trial in whole] == [5, 2], "without the one that is slow"


def test_the_whole_cluster_is_measured_without_a_node_that_is_lost_meanwhile() -> None:
    def answer(trial: Trial) -> Outcome:
        if trial.params["subject"] == "cluster" and len(trial.ranks) == len(cluster_of(4).ranks):
            return WorkerLost(subjects=("n03",))
        return speeds({})(trial)

    rounds = tournament(cluster_of(4), SMALL, answer)
    whole = [trial for trials in rounds for trial in trials if trial.params["subject"] == "cluster"]
    assert [sorted({rank.node for rank in trial.ranks}) for trial in whole] == [
        ["n00", "n01", "n02", "n03"],
        ["n00", "n01", "n02"],
    ]
