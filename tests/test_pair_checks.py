"""Pairs in the verdict: the node that is slow with everybody, the link between two good nodes, and what stays open."""

import re
from collections.abc import Callable

import msgspec
import pytest
from generated_runs import as_run, make_run

from hwlottery.evidence import AnyRecord, Measurement, NotMeasured
from hwlottery.scoring import Finding, PolicyError, Verdict, policy_from_text, score_run
from hwlottery.scoring.out_of_use import nodes_out

EVIDENCE = "{check: whole, rule: evidence.complete, each: cluster, category: evidence}"
Change = Callable[[AnyRecord], AnyRecord | None]


def verdict_of(*, change: Change | None = None, nodes: int = 4, faults: tuple[str, ...] = ()) -> Verdict:
    header, records = make_run(nodes=nodes, accelerators=2, faults=faults)
    kept = records if change is None else [new for record in records if (new := change(record)) is not None]
    return score_run(as_run(header, kept))


def findings(verdict: Verdict, check: str, result: str = "") -> dict[str, Finding]:
    return {f.subject: f for f in verdict.findings if f.check == check and result in ("", f.result)}


def test_a_healthy_cluster_has_a_capability_for_each_node_and_no_slow_link() -> None:
    verdict = verdict_of()
    nodes = findings(verdict, "pairs.nodes")
    assert list(nodes) == ["n00", "n01", "n02", "n03"]
    assert {f.result for f in nodes.values()} == {"pass"}
    assert all(184.0 < f.observed < 196.0 and f.unit == "GB/s" for f in nodes.values())
    assert all(len(f.evidence) >= 3 and "95 % interval" in f.detail for f in nodes.values())
    assert [f.result for f in findings(verdict, "pairs.links").values()] == ["pass"]
    assert verdict.verdict == "GO"


def test_a_node_slow_with_everybody_is_taken_out_and_no_other() -> None:
    verdict = verdict_of(faults=("slow_node@n02=0.6",))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n02",))
    slow = findings(verdict, "pairs.nodes", "fail")["n02"]
    assert slow.observed == pytest.approx(0.6 * 190, rel=0.05)
    assert slow.expected.startswith("at least 90 % of the 19")
    assert "3 partners that do better" in slow.detail
    assert "NICs, cables" in slow.action
    assert slow.statement.startswith("n02 reaches 11")
    assert slow.confidence == "high"


def test_the_evidence_of_a_slow_node_holds_its_retests() -> None:
    header, records = make_run(nodes=4, accelerators=2, faults=["slow_node@n02=0.6"])
    slow = findings(score_run(as_run(header, records)), "pairs.nodes", "fail")["n02"]
    later = [r for r in records if isinstance(r, Measurement) and r.attempt > 1 and r.metric == "all_reduce.busbw"]
    again = {r.trial for r in later if "n02" in r.subject}
    assert again
    assert again <= set(slow.evidence)


def test_two_slow_nodes_of_four_are_both_named() -> None:
    verdict = verdict_of(faults=("slow_node@n01=0.5", "slow_node@n03=0.7"))
    assert verdict.exclude == ("n01", "n03")
    assert verdict.verdict == "NO_GO", "two of four are more than may be taken out"


def test_a_slow_link_between_good_nodes_is_named_and_its_nodes_are_not() -> None:
    verdict = verdict_of(faults=("slow_link@n00~n03=0.5",))
    assert {f.result for f in findings(verdict, "pairs.nodes").values()} == {"pass"}
    link = findings(verdict, "pairs.links")["n00~n03"]
    assert (link.result, link.excludes, verdict.verdict) == ("fail", "n00~n03", "CONDITIONAL")
    assert "path between n00 and n03" in link.action
    assert verdict.sentence == "Fit for training without 1 of 4 nodes: n03 (for the link n00~n03)."


def test_a_slow_node_and_a_slow_link_elsewhere_are_told_apart() -> None:
    verdict = verdict_of(nodes=6, faults=("slow_node@n02=0.6", "slow_link@n00~n03=0.5"))
    assert set(verdict.exclude) == {"n02", "n00~n03"}


@pytest.mark.parametrize(
    ("excluded", "out"),
    [
        ((), ""),
        (("n01",), "n01"),
        (("n01~n02",), "n02"),
        (("n01~n02", "n01~n03", "n01~n04"), "n01"),
        (("n01", "n01~n02"), "n01"),
        (("n01", "n02~n03"), "n01 n03"),
        (("n01/gpu0",), "n01"),
        (("n0~n1", "n1~n2", "n2~n3", "n3~n4"), "n1 n3"),
        (("n2~n9", "n2~n10"), "n2"),
        (("n2~n10",), "n10"),
        (("n0~n1", "n1~n2", "n0~n2"), "n1 n2"),
        (("n01~n07/rail3",), "n07"),
    ],
)
def test_a_link_costs_one_of_its_nodes_and_several_as_few_as_are_enough(excluded: tuple[str, ...], out: str) -> None:
    assert nodes_out(excluded) == frozenset(out.split())


def test_a_pair_that_was_slow_once_is_a_warning() -> None:
    verdict = verdict_of(faults=("unsteady_link@n00~n01",))
    (unsteady,) = findings(verdict, "pairs.links").values()
    assert (unsteady.subject, unsteady.result) == ("n00~n01", "warn")
    assert "beside other pairs" in unsteady.detail
    assert verdict.verdict == "GO"


def test_without_its_retests_a_slow_node_is_no_more_than_suspected() -> None:
    def once(record: AnyRecord) -> AnyRecord | None:
        return None if getattr(record, "attempt", 1) > 1 else record

    verdict = verdict_of(change=once, faults=("slow_node@n02=0.6",))
    suspect = findings(verdict, "pairs.nodes")["n02"]
    assert (suspect.result, suspect.reason) == ("not_measured", "not_retested")
    assert suspect.action.startswith("Measure n02~n0") or suspect.action.startswith("Measure n00~n02")
    assert verdict.verdict != "GO", "the records of the retests are gone"


def test_a_retest_without_a_value_leaves_its_suspect_unjudged() -> None:
    def lost(record: AnyRecord) -> AnyRecord | None:
        if not isinstance(record, Measurement) or record.attempt == 1 or "n02" not in record.subject:
            return record
        fields = {name: getattr(record, name) for name in ("metric", "subject", "params", "trial", "attempt")}
        return NotMeasured(reason="timeout", retest_of=record.retest_of, **fields)

    verdict = verdict_of(change=lost, faults=("slow_node@n02=0.6",))
    assert findings(verdict, "pairs.nodes")["n02"].result == "not_measured"
    assert not verdict.signable


def only(*subjects: str) -> Change:
    """Leave these pairs out as if nobody had planned them."""

    def change(record: AnyRecord) -> AnyRecord | None:
        fills = getattr(record, "fills", ())
        named = {getattr(record, "subject", ""), *(fill.subject for fill in fills)}
        return None if any("~" in one and one not in subjects for one in named) else record

    return change


def test_a_node_that_met_one_partner_cannot_be_told_from_its_link() -> None:
    verdict = verdict_of(faults=("slow_node@n03=0.6",), change=only("n00~n01", "n00~n02", "n01~n02", "n01~n03"))
    open_ = findings(verdict, "pairs.nodes")["n03"]
    assert open_.result == "not_measured"
    assert open_.detail == "measured with 1 partner, 2 are wanted"
    assert findings(verdict, "pairs.nodes")["n01"].result == "pass"


def test_in_doubt_between_a_node_and_its_link_both_are_named_and_what_would_settle_it() -> None:
    text = (
        f"name: mine\nsignable: false\nchecks:\n  - {EVIDENCE}\n"
        "  - {check: p, rule: pairs.nodes, each: node, partners_at_least: 1, category: fabric}\n"
    )
    header, records = make_run(nodes=4, accelerators=2, faults=["slow_node@n03=0.6"], policy_text=text)
    change = only("n00~n01", "n00~n02", "n01~n02", "n01~n03")
    verdict = score_run(as_run(header, [new for record in records if (new := change(record)) is not None]))
    open_ = findings(verdict, "p")["n03"]
    assert (open_.result, open_.reason) == ("not_measured", "undecided")
    assert "n03, the link n01~n03" in open_.detail
    assert open_.action == "Measure n00~n03, n02~n03: that would settle it."


def test_a_partner_that_never_joined_is_not_held_against_the_others() -> None:
    verdict = verdict_of(faults=("never_joined@n02",))
    assert {s for s, f in findings(verdict, "pairs.nodes").items() if f.result == "pass"} == {"n00", "n01", "n03"}
    assert verdict.exclude == ("n02",)


def test_a_pair_whose_trial_failed_is_missing_of_both_nodes() -> None:
    verdict = verdict_of(faults=("no_pair@n00~n01",))
    assert set(findings(verdict, "pairs.nodes", "not_measured")) == {"n00", "n01"}
    assert verdict.verdict == "INCONCLUSIVE"


def test_two_nodes_alone_have_nothing_to_be_compared_with_and_that_is_said() -> None:
    verdict = verdict_of(nodes=2, faults=("slow_link@n00~n01=0.3",))
    assert {f.result for f in findings(verdict, "pairs.nodes").values()} == {"pass"}
    assert any("one pair has no other to be compared with" in line for line in verdict.not_judged)


def test_one_node_is_asked_nothing_of_pairs() -> None:
    verdict = verdict_of(nodes=1)
    assert not [f for f in verdict.findings if f.check.startswith("pairs.")]


def test_a_run_without_any_pair_is_inconclusive() -> None:
    verdict = verdict_of(change=only())
    assert {f.result for f in findings(verdict, "pairs.nodes").values()} == {"not_measured"}
    assert findings(verdict, "pairs.links")["cluster"].result == "not_measured"
    assert findings(verdict, "pairs.exact")["cluster"].result == "not_measured"
    assert verdict.verdict == "INCONCLUSIVE"


def test_wrong_sums_of_one_pair_fail_and_no_retest_undoes_them() -> None:
    verdict = verdict_of(faults=("wrong_pair@n00~n01=3",))
    wrong = findings(verdict, "pairs.exact")["n00~n01"]
    assert (wrong.result, wrong.observed, wrong.excludes) == ("fail", 3.0, None)
    assert verdict.verdict == "NO_GO"


def test_wrong_sums_of_all_pairs_of_a_node_take_that_node_out() -> None:
    verdict = verdict_of(faults=("wrong_pair@n00~n01=3", "wrong_pair@n01~n02=1"))
    assert {f.excludes for f in findings(verdict, "pairs.exact", "fail").values()} == {"n01"}
    assert verdict.verdict == "CONDITIONAL"


@pytest.mark.parametrize("nodes", [6, 16])
def test_where_most_links_are_slow_alone_too_the_fabric_has_two_levels_and_no_cable_is_blamed(nodes: int) -> None:
    verdict = verdict_of(nodes=nodes, faults=("two_levels@cluster=0.7",))
    (split,) = findings(verdict, "pairs.links").values()
    assert (split.subject, split.result) == ("cluster", "warn")
    of_all = {6: "9 of 15 pairs", 16: "64 of 120 pairs"}[nodes]
    assert (split.observed, split.metric, split.unit) == (f"{of_all} slow", None, "")
    assert f"{of_all} are slower than good ones, and 8 of 8 measured alone are slow there too" in split.detail
    assert split.statement.startswith(f"The fabric has levels: {of_all} of nodes are slower than good ones (")
    assert "different leaves" in split.action
    assert len(split.evidence) == 20
    assert verdict.exclude == ()


def test_so_many_slow_links_without_a_sample_measured_alone_are_not_judged() -> None:
    leaves = ({"n00", "n01", "n02"}, {"n03", "n04", "n05"})

    def across(record: AnyRecord) -> AnyRecord:
        ends = set(record.subject.split("~")) if isinstance(record, Measurement) else set()
        if len(ends) < 2 or any(ends <= leaf for leaf in leaves) or record.metric != "all_reduce.busbw":
            return record
        return msgspec.structs.replace(record, samples=tuple(0.7 * one for one in record.samples or ()))

    verdict = verdict_of(nodes=6, change=across)
    (open_,) = findings(verdict, "pairs.links").values()
    assert (open_.subject, open_.result, open_.reason) == ("cluster", "not_measured", "not_retested")
    assert "9 of 15 pairs were slow beside others, and of 8 wanted" in open_.detail
    assert "most_retests" in open_.action
    assert verdict.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("nodes", [4, 5, 6, 16, 40])
def test_a_tournament_whose_pairs_slow_each_other_accuses_nobody(nodes: int) -> None:
    verdict = verdict_of(nodes=nodes, faults=("contention@cluster=0.5",))
    assert {f.result for check in ("pairs.nodes", "pairs.links") for f in findings(verdict, check).values()} == {"pass"}
    (links,) = findings(verdict, "pairs.links").values()
    told = r"\d+ pairs more were slow beside others and not measured alone: of \d+ such pairs that were, none is slow"
    assert (nodes >= 16) == bool(re.search(told, links.detail))


@pytest.mark.parametrize("wrong", ["rule: pairs.nodes, each: cluster", "rule: pairs.links, each: node"])
def test_a_pair_rule_is_for_its_own_kind_of_subject(wrong: str) -> None:
    with pytest.raises(PolicyError, match="is for each"):
        policy_from_text(
            f"name: mine\nsignable: false\nchecks:\n  - {EVIDENCE}\n  - {{check: a, {wrong}, category: fabric}}\n",
            "x.yaml",
        )


def test_a_node_whose_small_messages_stall_with_everybody_is_taken_out() -> None:
    verdict = verdict_of(faults=("lossy_node@n02",))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n02",))
    lossy = findings(verdict, "pairs.stalls", "fail")["n02"]
    assert lossy.observed == 5.0
    assert len(lossy.evidence) >= 3
    assert {f.result for s, f in findings(verdict, "pairs.stalls").items() if s != "n02"} == {"pass"}


def test_a_node_whose_small_messages_stall_once_and_not_again_is_not_taken_out() -> None:
    verdict = verdict_of(faults=("busy_node@n02",))
    assert verdict.exclude == ()
    busy = findings(verdict, "pairs.stalls", "warn")["n02"]
    assert "n00~n02: 5, 0, 0" in busy.detail
    assert {f.result for s, f in findings(verdict, "pairs.stalls").items() if s != "n02"} == {"pass"}


def test_stalls_that_were_never_measured_again_are_not_judged() -> None:
    def without_retests(record: AnyRecord) -> AnyRecord | None:
        of_pairs = "~" in getattr(record, "subject", "") or getattr(record, "probe", "") == "pairs"
        return None if of_pairs and getattr(record, "attempt", 1) > 1 else record

    verdict = verdict_of(faults=("lossy_node@n02",), change=without_retests)
    assert verdict.exclude == ()
    unsure = findings(verdict, "pairs.stalls", "not_measured")["n02"]
    assert unsure.reason == "not_retested"
    assert "again" in unsure.action


def test_without_a_count_of_stalls_a_node_is_not_judged() -> None:
    def uncounted(record: AnyRecord) -> AnyRecord | None:
        stalls = getattr(record, "metric", "") == "all_reduce.stalls"
        return None if stalls and "n00" in record.subject else record

    verdict = verdict_of(change=uncounted)
    assert set(findings(verdict, "pairs.stalls", "not_measured")) == {"n00", "n01", "n02", "n03"}
    assert verdict.verdict == "INCONCLUSIVE"
