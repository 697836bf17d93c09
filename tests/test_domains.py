"""NVLink domains: who shares one, pairs on levels of their own, sums of each domain, and whom the verdict blames."""

import dataclasses
from collections.abc import Mapping
from itertools import combinations

import msgspec
import pytest
from generated_runs import as_run, make_run
from plans import Answer, at_speed, cluster_of, driven

from hwlottery.cluster import Outcome, Trial
from hwlottery.evidence import AnyRecord, Fact, Measurement, parse_subject
from hwlottery.fabric import domains_of, level_of
from hwlottery.probes.pairs import Pairs, PairsSettings
from hwlottery.scoring import Finding, score_run

SMALL = PairsSettings(sizes_kib=(8, 64), warm_ups=1, iterations=4, latency_iterations=3, lone_pairs=0)
RACKS = {"n00": "a.1", "n01": "a.1", "n02": "a.1", "n03": "b.1", "n04": "b.1", "n05": "b.1"}


def test_a_domain_is_what_two_nodes_share_with_all_of_their_accelerators() -> None:
    seen = {
        "n00": ["a.1", "a.1"],
        "n01": ["a.1", "a.1"],
        "n02": ["a.1", "b.1"],  # its accelerators disagree
        "n03": ["c.1", None],  # one says nothing
        "n04": ["d.1"],  # alone in it
        "n05": [],
        "n06": ["c.1"],
        "n07": ["c.1"],
    }
    assert domains_of(seen) == {"n00": "D1", "n01": "D1", "n06": "D2", "n07": "D2"}


@pytest.mark.parametrize(
    ("pair", "level"),
    [(("n00", "n01"), "domain"), (("n00", "n06"), "between"), (("n04", "n05"), "between"), (("n00", "n05"), "between")],
)
def test_a_pair_is_within_a_domain_or_between_two(pair: tuple[str, str], level: str) -> None:
    assert level_of(pair, {"n00": "D1", "n01": "D1", "n06": "D2", "n07": "D2"}) == level
    assert level_of(pair, {}) == ""


def facts_of(racks: Mapping[str, str]) -> dict[tuple[str, str], str]:
    return {
        (f"{node}/gpu{index}", "accelerator.nvlink_domain"): rack for node, rack in racks.items() for index in range(2)
    }


def speeds(slow: Mapping[str, float]) -> Answer:
    """NVLink within a rack at 400 GB/s, NICs between racks at 40."""

    def answer(trial: Trial) -> Outcome:
        subject = trial.fills[0].subject
        nodes = parse_subject(subject).nodes
        fast = len({RACKS[node] for node in nodes}) == 1
        return at_speed(trial, (400.0 if fast else 40.0) * min([slow.get(node, 1.0) for node in nodes], default=1.0))

    return answer


def rounds_of(answer: Answer, settings: PairsSettings = SMALL) -> list[list[Trial]]:
    return driven(Pairs(), cluster_of(6, device="cuda", facts=facts_of(RACKS)), settings, answer)


def test_pairs_say_on_which_level_they_are() -> None:
    trials = [trial for trials in rounds_of(speeds({})) for trial in trials if "~" in trial.fills[0].subject]
    assert {len({fill.params["level"] for fill in trial.fills}) for trial in trials} == {1}
    levels = {trial.fills[0].subject: trial.fills[0].params["level"] for trial in trials}
    for one, other in combinations(sorted(RACKS), 2):
        assert levels[f"{one}~{other}"] == ("domain" if RACKS[one] == RACKS[other] else "between")
    plain = driven(Pairs(), cluster_of(6, device="cuda"), SMALL, speeds({}))
    assert not any("level" in fill.params for trials in plain for trial in trials for fill in trial.fills)


def test_pairs_between_domains_are_no_suspects_for_being_slower_than_those_within() -> None:
    retests = {trial.fills[0].subject for trials in rounds_of(speeds({})) for trial in trials if trial.attempt > 1}
    within = [subject for subject in retests if len({RACKS[node] for node in subject.split("~")}) == 1]
    assert len(retests) <= 6, "a few good pairs of each level to compare with"
    assert within
    assert len(within) < len(retests)


def test_a_node_that_is_slow_between_domains_is_measured_again_there() -> None:
    def answer(trial: Trial) -> Outcome:
        nodes = parse_subject(trial.fills[0].subject).nodes
        across = len({RACKS[node] for node in nodes}) > 1
        return speeds({"n04": 0.5} if across else {})(trial)

    retests = [trial.fills[0].subject for trials in rounds_of(answer) for trial in trials if trial.attempt > 1]
    own = [subject for subject in retests if "n04" in subject]
    across = {subject for subject in own if len({RACKS[node] for node in subject.split("~")}) > 1}
    assert len(across) == 2
    assert all(own.count(subject) >= 2 for subject in across)


def test_each_domain_sums_alone_all_at_once() -> None:
    own = [trials for trials in rounds_of(speeds({})) if trials[0].fills[0].subject.startswith("domain:")]
    ((first, second),) = own
    assert [trial.fills[0].subject for trial in (first, second)] == ["domain:D1", "domain:D2"]
    assert {rank.node for rank in first.ranks} == {"n00", "n01", "n02"}
    assert first.params["key"] == {"dtype": "fp32", "ranks": 6, "nodes": 3, "algorithm": "default"}
    assert "NCCL_ALGO" not in first.env


def test_pairs_take_the_ring_and_the_whole_cluster_both() -> None:
    rounds = driven(Pairs(), cluster_of(4, device="cuda"), SMALL, lambda trial: at_speed(trial, 40.0))
    for trial in (trial for trials in rounds for trial in trials):
        assert (trial.env.get("NCCL_ALGO") == "Ring") == (trial.params["key"]["algorithm"] == "ring")
    whole = [trials[0].params for trials in rounds if trials[0].fills[0].subject == "cluster"]
    assert [(each["key"]["nodes"], each["key"]["algorithm"]) for each in whole] == [
        (4, "default"),
        (4, "ring"),
        (2, "ring"),
    ]
    assert [each["tell"] for each in whole] == ["first", "each", "first"]
    on_cpus = driven(Pairs(), cluster_of(4), SMALL, lambda trial: at_speed(trial, 40.0))
    assert {trial.params["key"]["algorithm"] for trials in on_cpus for trial in trials} == {"ring"}


def test_pairs_are_measured_alone_from_the_slowest_to_the_fastest_until_enough_were() -> None:
    def answer(trial: Trial) -> Outcome:
        nodes = parse_subject(trial.fills[0].subject).nodes
        return at_speed(trial, 40.0 * (1 - 0.01 * sum(int(node[1:]) for node in nodes)))

    cluster = cluster_of(5, device="cuda")
    rounds = driven(Pairs(), cluster, dataclasses.replace(SMALL, lone_pairs=7), answer)
    alone = {trial.fills[0].subject for trials in rounds for trial in trials if trial.attempt > 1}
    assert len(alone) == 7
    assert all(len(trials) == 1 for trials in rounds for trial in trials if trial.attempt > 1)
    three = driven(Pairs(), cluster_of(3, device="cuda"), dataclasses.replace(SMALL, lone_pairs=7), answer)
    assert not [trial for trials in three for trial in trials if trial.attempt > 1], "no two pairs ever ran at once"


# --- the verdict ---------------------------------------------------------------------------------------------------


def judged(slow: Mapping[str, float], check: str) -> dict[str, Finding]:
    """Findings on a run of two racks, in which pairs within a rack reach eight times as much as the others."""

    def change(record: AnyRecord) -> AnyRecord:
        nodes = parse_subject(record.subject).nodes if isinstance(record, Measurement) else ()
        if len(nodes) < 2 or not isinstance(record, Measurement) or record.metric != "all_reduce.busbw":
            return record
        within = len({RACKS[node] for node in nodes}) == 1
        share = 8.0 if within else min(slow.get(node, 1.0) for node in nodes)
        return msgspec.structs.replace(record, samples=tuple(share * one for one in record.samples or ()))

    header, records = make_run(nodes=6, accelerators=2)
    facts = [Fact(subject=subject, key=key, value=rack) for (subject, key), rack in facts_of(RACKS).items()]
    verdict = score_run(as_run(header, [*facts, *(change(record) for record in records)]))
    return {finding.subject: finding for finding in verdict.findings if finding.check == check}


def test_two_racks_that_are_well_within_and_between_have_no_slow_node_and_no_slow_link() -> None:
    assert {f.result for f in judged({}, "pairs.nodes").values()} == {"pass"}
    assert {f.result for f in judged({}, "pairs.links").values()} == {"pass"}


def test_a_node_slow_between_domains_is_blamed_there_by_what_good_pairs_between_domains_reach() -> None:
    nodes = judged({"n04": 0.6}, "pairs.nodes")
    assert {node for node, finding in nodes.items() if finding.result != "pass"} == {"n04"}
    assert "between domains" in nodes["n04"].expected
    assert nodes["n04"].observed == pytest.approx(0.6 * 190, rel=0.05)


def test_pairs_over_nvlink_are_not_held_against_the_line_of_nics() -> None:
    (finding,) = judged({}, "pairs.line_rate").values()
    assert finding.result == "pass"
    assert "9 pairs" in finding.detail
