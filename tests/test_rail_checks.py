"""Rails, other collectives, NCCL's network and concurrency in the verdict: who is named, and what stays open."""

from collections.abc import Callable

import msgspec
import pytest
from generated_runs import as_run, make_run

from hwlottery.evidence import AnyRecord, Fact, Measurement, NotMeasured
from hwlottery.scoring import Finding, PolicyError, Verdict, policy_from_text, score_run

Change = Callable[[AnyRecord], AnyRecord | None]


def verdict_of(*faults: str, change: Change | None = None, nodes: int = 4) -> Verdict:
    header, records = make_run(nodes=nodes, accelerators=2, faults=faults)
    kept = records if change is None else [new for record in records if (new := change(record)) is not None]
    return score_run(as_run(header, kept))


def findings(verdict: Verdict, check: str, result: str = "") -> dict[str, Finding]:
    return {f.subject: f for f in verdict.findings if f.check == check and result in ("", f.result)}


def test_on_a_healthy_cluster_every_node_has_a_figure_of_its_slowest_rail() -> None:
    verdict = verdict_of()
    wire = findings(verdict, "rails.wire")
    assert {subject: f.result for subject, f in wire.items()} == dict.fromkeys(["n00", "n01", "n02", "n03"], "pass")
    assert all(94.0 < f.observed < 100.0 and f.unit == "GB/s" and f.evidence for f in wire.values())
    assert all("of the line" in f.detail for f in wire.values())
    assert verdict.verdict == "GO"


def test_one_rail_of_one_node_is_named_and_its_node_taken_out() -> None:
    verdict = verdict_of("slow_rail@n02/rail1=0.6")
    failed = findings(verdict, "rails.wire", "fail")
    assert list(failed) == ["n02/rail1"]
    slow = failed["n02/rail1"]
    assert slow.observed == pytest.approx(0.6 * 97, rel=0.05)
    assert (slow.layer, slow.excludes, slow.confidence) == ("peers", "n02", "high")
    assert slow.statement.startswith("n02/rail1 reaches 58")
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n02",))


def test_the_evidence_of_a_slow_rail_holds_its_retests() -> None:
    header, records = make_run(nodes=4, accelerators=2, faults=["slow_rail@n02/rail1=0.6"])
    slow = findings(score_run(as_run(header, records)), "rails.wire", "fail")["n02/rail1"]
    again = [r for r in records if isinstance(r, Measurement) and r.attempt > 1 and r.metric == "rail.busbw"]
    own = {r.trial for r in again if "n02" in r.subject and r.subject.endswith("/rail1")}
    assert own
    assert own <= set(slow.evidence)


def test_a_slow_path_of_one_rail_between_two_good_ones_is_named_and_neither_end() -> None:
    verdict = verdict_of("slow_rail@n01~n02/rail0=0.6", nodes=6)
    failed = findings(verdict, "rails.wire", "fail")
    assert {subject: f.excludes for subject, f in failed.items()} == {"n01~n02/rail0": "n01~n02"}
    assert "path of this rail between n01 and n02" in failed["n01~n02/rail0"].action
    assert verdict.verdict == "CONDITIONAL"


def test_all_rails_equally_far_below_their_line_fail_though_they_agree() -> None:
    """An image without GPUDirect makes all nodes alike, and slow."""
    verdict = verdict_of("slow_rails@cluster=0.5")
    failed = findings(verdict, "rails.wire", "fail")
    assert len(failed) == 8
    assert {f.layer for f in failed.values()} == {"contract"}
    assert failed["n00/rail0"].observed == pytest.approx(0.485, rel=0.02)
    assert verdict.verdict == "NO_GO"


def test_without_line_rates_rails_are_held_against_each_other_alone_and_that_is_said() -> None:
    def unseen(record: AnyRecord) -> AnyRecord | None:
        return None if isinstance(record, Fact) and record.key.startswith("port1.") else record

    wire = findings(verdict_of("slow_rails@cluster=0.5", change=unseen), "rails.wire")
    assert {f.result for f in wire.values()} == {"pass"}
    assert all("line rate is not known" in f.detail for f in wire.values())


def test_a_figure_above_the_line_is_no_share_of_it() -> None:
    def slower_ports(record: AnyRecord) -> AnyRecord:
        rate = isinstance(record, Fact) and record.key == "port1.rate"
        return msgspec.structs.replace(record, value=100_000_000_000) if rate else record

    verdict = verdict_of(change=slower_ports)
    assert {f.result for f in findings(verdict, "rails.wire").values()} == {"pass"}
    assert all("line rate is not known" in f.detail for f in findings(verdict, "rails.wire").values())


def test_without_its_retests_a_slow_rail_is_no_more_than_suspected() -> None:
    def once(record: AnyRecord) -> AnyRecord | None:
        return None if getattr(record, "attempt", 1) > 1 else record

    def lenient(record: AnyRecord) -> AnyRecord | None:
        """Nothing is known of the line, so that the peers alone speak."""
        hidden = isinstance(record, Fact) and record.key == "port1.rate"
        return None if hidden else once(record)

    suspect = findings(verdict_of("slow_rail@n02/rail1=0.8", change=lenient), "rails.wire")["n02/rail1"]
    assert (suspect.result, suspect.reason) == ("not_measured", "not_retested")
    assert suspect.action.startswith("Measure n0")
    by_line = findings(verdict_of("slow_rail@n02/rail1=0.8", change=once), "rails.wire")["n02/rail1"]
    assert (by_line.result, by_line.layer) == ("fail", "contract"), "below its line with two partners, one time each"


def test_one_sample_below_the_line_blames_nobody() -> None:
    def once(record: AnyRecord) -> AnyRecord | None:
        return None if getattr(record, "attempt", 1) > 1 else record

    verdict = verdict_of("slow_rails@cluster=0.5", change=once, nodes=2)
    wire = findings(verdict, "rails.wire")
    assert {(f.result, f.reason) for f in wire.values()} == {("not_measured", "not_retested")}
    assert {f.result for f in findings(verdict_of("slow_rails@cluster=0.5", nodes=2), "rails.wire").values()} == {
        "fail"
    }


def gone(metric: str, subject: str) -> Change:
    def change(record: AnyRecord) -> AnyRecord | None:
        if isinstance(record, Measurement) and (record.metric, record.subject) == (metric, subject):
            fields = {name: getattr(record, name) for name in ("metric", "subject", "params", "trial", "attempt")}
            return NotMeasured(reason="timeout", retest_of=record.retest_of, **fields)
        return record

    return change


def test_a_rail_without_a_value_leaves_both_nodes_unjudged() -> None:
    verdict = verdict_of(change=gone("rail.busbw", "n01~n02/rail1"))
    assert set(findings(verdict, "rails.wire", "not_measured")) == {"n01", "n02"}
    assert verdict.verdict == "INCONCLUSIVE"


def test_rails_that_nobody_measured_are_not_measured_of_any_node() -> None:
    def dropped(record: AnyRecord) -> AnyRecord | None:
        subjects = {getattr(record, "subject", ""), *(fill.subject for fill in getattr(record, "fills", ()))}
        return None if any("/rail" in subject for subject in subjects) else record

    verdict = verdict_of(change=dropped)
    assert {f.result for f in findings(verdict, "rails.wire").values()} == {"not_measured"}
    assert findings(verdict, "rails.exact")["cluster"].result == "not_measured"
    assert not verdict.signable


def test_a_partner_that_never_joined_is_not_held_against_the_others() -> None:
    verdict = verdict_of("never_joined@n02")
    assert {s for s, f in findings(verdict, "rails.wire").items() if f.result == "pass"} == {"n00", "n01", "n03"}
    assert verdict.exclude == ("n02",)


def test_of_two_nodes_one_rail_that_is_slower_than_the_others_cannot_be_told_apart() -> None:
    verdict = verdict_of("slow_rail@n01/rail1=0.7", nodes=2)
    open_ = findings(verdict, "rails.wire", "not_measured") | findings(verdict, "rails.wire", "fail")
    assert set(open_) & {"n00/rail1", "n01/rail1"}
    assert not verdict.signable


def test_a_wrong_sum_on_a_rail_fails_and_no_retest_undoes_it() -> None:
    wrong = findings(verdict_of("wrong_rail@n00~n01/rail1=2"), "rails.exact", "fail")
    assert {subject: f.observed for subject, f in wrong.items()} == {"n00~n01/rail1": 2.0}


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter", "all_to_all"])
def test_a_wrong_element_of_any_collective_is_no_go(operation: str) -> None:
    verdict = verdict_of(f"wrong_{operation}@cluster=2")
    assert findings(verdict, f"{operation}.exact")["cluster"].result == "fail"
    assert verdict.verdict == "NO_GO"


@pytest.mark.parametrize("metric", ["all_to_all.busbw", "all_gather.wrong_elements"])
def test_a_collective_that_brought_nothing_leaves_the_run_open(metric: str) -> None:
    assert verdict_of(change=gone(metric, "cluster")).verdict == "INCONCLUSIVE"


def test_sockets_beside_an_rdma_port_that_is_up_take_the_node_out() -> None:
    verdict = verdict_of("sockets@n01")
    socket = findings(verdict, "fabric.network", "fail")["n01"]
    assert "mlx5_0 port1" in socket.detail
    assert "the RDMA fabric itself was not tested" in socket.detail
    assert verdict.exclude == ("n01",)


def test_sockets_where_no_rdma_port_is_seen_are_what_there_is() -> None:
    def unseen(record: AnyRecord) -> AnyRecord | None:
        return None if isinstance(record, Fact) and record.key.startswith("port1.") else record

    network = findings(verdict_of("sockets@n01", change=unseen), "fabric.network")["n01"]
    assert (network.result, network.observed) == ("pass", "sockets")


def test_gpudirect_that_is_off_warns_and_a_library_that_says_nothing_is_no_fault() -> None:
    assert findings(verdict_of("no_gpudirect@n01"), "fabric.network")["n01"].result == "warn"

    def silent(record: AnyRecord) -> AnyRecord | None:
        return None if isinstance(record, Fact) and record.key.startswith("fabric.") else record

    header, records = make_run(nodes=4, accelerators=2)
    verdict = score_run(as_run(header, [record for record in records if silent(record)]))
    assert {f.result for f in findings(verdict, "fabric.network").values()} == {"not_measured"}
    assert not [f for f in findings(verdict, "fabric.network").values() if f.required]


def test_pairs_keep_their_bandwidth_on_a_fabric_that_does_not_block() -> None:
    kept = findings(verdict_of(nodes=6), "fabric.concurrency")["cluster"]
    assert kept.result == "pass"
    assert kept.observed == pytest.approx(1.0, abs=0.03)


def test_an_oversubscribed_fabric_shows_as_what_pairs_lose_beside_others() -> None:
    verdict = verdict_of("oversubscribed@cluster=0.6", nodes=6)
    kept = findings(verdict, "fabric.concurrency")["cluster"]
    assert (kept.result, kept.metric) == ("warn", "fabric.concurrency_kept")
    assert kept.observed == pytest.approx(0.6, abs=0.03)
    assert kept.evidence
    assert not findings(verdict, "pairs.nodes", "fail")


def test_a_slow_node_is_slow_alone_too_and_no_sign_of_a_shared_level() -> None:
    kept = findings(verdict_of("slow_node@n02=0.5", nodes=6), "fabric.concurrency")["cluster"]
    assert kept.observed == pytest.approx(1.0, abs=0.03)


def test_concurrency_needs_three_pairs_measured_both_ways() -> None:
    def never_alone(record: AnyRecord) -> AnyRecord | None:
        return None if getattr(record, "attempt", 1) > 1 else record

    kept = findings(verdict_of(change=never_alone), "fabric.concurrency")["cluster"]
    assert kept.result == "not_measured"
    assert "0 good pairs" in kept.detail


@pytest.mark.parametrize(
    ("algorithm", "result", "word"), [("ring", "warn", "GO"), ("tree", "not_measured", "INCONCLUSIVE")]
)
def test_pairs_above_the_line_of_their_nics_are_marked_and_decide_nothing_unless_the_ring_gave_them(
    algorithm: str, result: str, word: str
) -> None:
    def fast(record: AnyRecord) -> AnyRecord:
        pair = isinstance(record, Measurement) and record.metric == "all_reduce.busbw" and "~" in record.subject
        return msgspec.structs.replace(record, samples=(250.0,) * 20) if pair else record

    header, records = make_run(nodes=4, accelerators=2)
    pairs = sorted({record.subject for record in records if isinstance(record, Measurement) and "~" in record.subject})
    pairs = [pair for pair in pairs if "/" not in pair]
    taken = [Fact(subject=pair, key="pairs.algorithm", value=algorithm) for pair in pairs]
    verdict = score_run(as_run(header, [*map(fast, records), *taken]))
    above = findings(verdict, "pairs.line_rate")
    assert {(f.result, f.observed, f.threshold) for f in above.values()} == {(result, 250.0, 200.0)}
    assert sorted(above) == pairs
    assert all("no baseline for more nodes" in f.detail for f in above.values())
    assert verdict.verdict == word
    assert findings(verdict_of(), "pairs.line_rate")["cluster"].result == "pass"


def test_the_line_of_a_pair_that_no_port_tells_is_not_known() -> None:
    def unseen(record: AnyRecord) -> AnyRecord | None:
        return None if isinstance(record, Fact) and record.key == "port1.rate" else record

    assert findings(verdict_of(change=unseen), "pairs.line_rate")["cluster"].reason == "no_reference"


@pytest.mark.parametrize("wrong", ["rule: rails.wire, each: node", "rule: fabric.network, each: cluster"])
def test_each_rule_is_for_its_own_kind_of_subject(wrong: str) -> None:
    evidence = "{check: whole, rule: evidence.complete, each: cluster, category: evidence}"
    with pytest.raises(PolicyError, match="is for each"):
        policy_from_text(
            f"name: mine\nsignable: false\nchecks:\n  - {evidence}\n  - {{check: a, {wrong}, category: fabric}}\n",
            "x.yaml",
        )
