"""Scoring: missing is never a pass, the layers say what they say, and the verdict comes in its fixed order."""

import dataclasses
import hashlib
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from generated_runs import H100, START, as_run, make_run, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence import AnyRecord, Event, Fact, Measurement, NotMeasured, Promised, read_run
from hwlottery.outliers import group_of
from hwlottery.references import with_own
from hwlottery.scoring import (
    EXIT_CODES,
    Finding,
    Verdict,
    defects,
    load_policy,
    policy_from_text,
    score_run,
    verdict_json,
)
from hwlottery.scoring.decision import most_excluded
from hwlottery.scoring.peers import by_peers
from hwlottery.scoring.policy_layers import Peers
from hwlottery.scoring.score import read_verdict

EVIDENCE = "{check: whole, rule: evidence.complete, each: cluster, category: evidence}"


def verdict_of(*, change: Callable[[AnyRecord], AnyRecord | None] | None = None, **wanted: object) -> Verdict:
    """The verdict on a generated run; `change` alters or drops records before they are judged."""
    header, records = make_run(**wanted)  # type: ignore[arg-type]
    kept = records if change is None else [new for record in records if (new := change(record)) is not None]
    return score_run(as_run(header, kept))


def by(verdict: Verdict, check: str, subject: str | None = None) -> Finding:
    """The finding of a check, on a subject or on the only one."""
    found = [f for f in verdict.findings if f.check == check and subject in (None, f.subject)]
    assert len(found) == 1, [f.subject for f in found]
    return found[0]


def policy(*checks: str, **more: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in more.items())
    return f"name: mine\nsignable: false\n{lines}checks:\n" + "".join(f"  - {check}\n" for check in (EVIDENCE, *checks))


def scaled(record: Measurement, factor: float) -> Measurement:
    """The measurement with all its samples times a factor."""
    return msgspec.structs.replace(record, samples=tuple(sample * factor for sample in record.samples or ()))


def altered(metric: str, subject: str, value: float, where: dict[str, object] | None = None) -> Callable:  # type: ignore[type-arg]
    """A change that gives one measurement another value."""

    def change(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, Measurement) or (record.metric, record.subject) != (metric, subject):
            return record
        if any(record.params.get(key) != wanted for key, wanted in (where or {}).items()):
            return record
        return msgspec.structs.replace(record, samples=(value,) * len(record.samples or ()))

    return change


# --- the verdict word ---------------------------------------------------------------------------------------------


def test_a_healthy_cluster_is_go_and_can_be_signed() -> None:
    verdict = verdict_of()
    assert (verdict.verdict, verdict.signable, verdict.exclude) == ("GO", True, ())
    assert verdict.exit_code == 0
    assert verdict.coverage.required == verdict.coverage.measured
    assert verdict.sentence == "Fit for training on 4 nodes."


def test_a_node_that_never_joined_fails_and_can_be_taken_out() -> None:
    verdict = verdict_of(faults=["never_joined@n02"])
    assert (verdict.verdict, verdict.exclude, verdict.exit_code) == ("CONDITIONAL", ("n02",), 5)
    assert by(verdict, "node.responds", "n02").observed == "never joined"
    assert verdict.sentence == "Fit for training without 1 of 4 nodes: n02."


@pytest.mark.parametrize("fault", ["never_joined@n01", "slow@n01/gpu0=0.5", "hung@n01/gpu0"])
def test_of_three_nodes_none_can_be_taken_out(fault: str) -> None:
    verdict = verdict_of(nodes=3, accelerators=2, faults=[fault])
    assert (verdict.verdict, verdict.exit_code) == ("NO_GO", 3)
    assert verdict.exclude == ("n01",), "named all the same"
    assert not verdict.signable


def test_more_than_a_tenth_of_the_nodes_cannot_be_taken_out() -> None:
    verdict = verdict_of(nodes=4, accelerators=1, faults=["never_joined@n01", "never_joined@n03"])
    assert verdict.verdict == "NO_GO"
    assert "at most 1 may be" in verdict.sentence


@pytest.mark.parametrize(
    ("nodes", "most"), [(1, 0), (3, 0), (4, 1), (9, 1), (10, 1), (19, 1), (20, 2), (64, 6), (512, 51)]
)
def test_how_many_may_be_taken_out(nodes: int, most: int) -> None:
    assert most_excluded(nodes, 0.10) == most


def test_a_failure_that_no_node_explains_is_no_go_even_beside_missing_values() -> None:
    verdict = verdict_of(faults=["loss_rises@cluster", "nan@n00/gpu0"])
    assert verdict.verdict == "NO_GO"
    assert verdict.reasons[0].startswith("The burn-in's loss changed by -0.4 nats")


def test_what_is_missing_on_a_node_that_is_taken_out_does_not_matter() -> None:
    assert verdict_of(faults=["never_joined@n02", "nan@n02/gpu0"]).verdict == "CONDITIONAL"
    verdict = verdict_of(faults=["slow@n02/gpu1=0.7", "nan@n00/gpu0"])
    assert (verdict.verdict, verdict.exclude, verdict.exit_code) == ("INCONCLUSIVE", ("n02",), 4)


def test_the_exit_codes() -> None:
    assert EXIT_CODES == {"GO": 0, "NO_GO": 3, "INCONCLUSIVE": 4, "CONDITIONAL": 5}


# --- missing is never a pass --------------------------------------------------------------------------------------


def test_a_sample_that_is_nan_is_not_measured() -> None:
    verdict = verdict_of(faults=["nan@n00/gpu0"])
    finding = by(verdict, "matmul.rate", "n00/gpu0")
    assert (verdict.verdict, finding.result, finding.reason) == ("INCONCLUSIVE", "not_measured", "not_finite")
    assert finding.observed is None
    assert "1 of 20 samples" in finding.detail


def test_a_missing_tool_says_the_command_that_installs_it() -> None:
    verdict = verdict_of(faults=["tool_missing@n01"])
    finding = by(verdict, "filesystem.write", "n01/fs:/scratch")
    assert (verdict.verdict, finding.reason) == ("INCONCLUSIVE", "tool_missing")
    assert "apt-get install fio" in finding.action


def test_a_raised_probe_leaves_its_values_not_measured() -> None:
    verdict = verdict_of(faults=["raised@n01"])
    assert verdict.verdict == "INCONCLUSIVE"
    assert by(verdict, "memory.copy", "n01/gpu3").reason == "raised"
    assert by(verdict, "node.responds", "n01").result == "pass"


def test_a_promised_accelerator_that_nobody_measured_is_asked_for() -> None:
    def without(record: AnyRecord) -> AnyRecord | None:
        return None if getattr(record, "subject", "") == "n01/gpu7" else record

    verdict = verdict_of(change=without)
    assert verdict.verdict == "INCONCLUSIVE"
    assert by(verdict, "matmul.rate", "n01/gpu7").reason == "not_returned"


def test_each_value_of_a_list_of_params_is_asked_for() -> None:
    text = policy(
        "{check: a, metric: matmul.tflops, each: accelerator, category: compute, where: {dtype: [bf16, fp32]}}"
    )
    verdict = verdict_of(policy_text=text)
    finding = by(verdict, "a", "n00/gpu0")
    assert (finding.result, finding.params) == ("not_measured", {"dtype": "fp32"})


def test_a_planned_value_without_a_record_makes_the_evidence_incomplete() -> None:
    def without(record: AnyRecord) -> AnyRecord | None:
        return None if isinstance(record, Measurement) and record.metric == "burn_in.checkpoint" else record

    verdict = verdict_of(change=without)
    assert verdict.verdict == "INCONCLUSIVE"
    assert "burn_in.checkpoint on cluster" in by(verdict, "evidence.complete").detail


@pytest.mark.parametrize("kind", ["node_joined", "trial_ended"])
def test_a_lost_event_is_never_a_pass(kind: str) -> None:
    seen: list[str] = []

    def without_the_first(record: AnyRecord) -> AnyRecord | None:
        if isinstance(record, Event) and record.kind == kind:
            seen.append(kind)
            return None if len(seen) == 1 else record
        return record

    assert verdict_of(change=without_the_first).verdict == "INCONCLUSIVE"


def test_a_run_cut_off_is_inconclusive_and_says_what_is_not_whole(tmp_path: Path) -> None:
    verdict = score_run(read_run(write_run(tmp_path / "run", faults=["unfinished@cluster"])))
    assert verdict.verdict == "INCONCLUSIVE"
    assert "the run did not finish" in verdict.reasons[0]


def test_a_policy_text_that_is_not_the_one_of_its_sum_is_not_whole_evidence() -> None:
    header, records = make_run()
    lax = msgspec.structs.replace(header.policy, text=header.policy.text.replace("0.90", "0.10"))
    verdict = score_run(as_run(msgspec.structs.replace(header, policy=lax), records))
    assert verdict.verdict == "INCONCLUSIVE"
    assert "policy" in by(verdict, "evidence.complete").detail


@pytest.mark.parametrize("promised", [(), (Promised(node="n00", device="cuda", ranks=()),)])
def test_a_run_that_promises_nothing_is_inconclusive(promised: tuple[Promised, ...]) -> None:
    header, records = make_run(nodes=1, policy_text=policy())
    verdict = score_run(as_run(msgspec.structs.replace(header, promised=promised), records))
    assert verdict.verdict == "INCONCLUSIVE"


def test_a_filesystem_that_was_not_named_is_asked_for_all_the_same() -> None:
    header, records = make_run()
    verdict = score_run(as_run(msgspec.structs.replace(header, filesystems=()), records))
    assert verdict.verdict == "INCONCLUSIVE"
    assert by(verdict, "checkpoint.save", "n02").detail == "no filesystem of this node was named"


def test_a_value_written_twice_is_no_value() -> None:
    text = policy("{check: a, metric: memory.copy, each: accelerator, category: memory}")
    header, records = make_run(nodes=1, accelerators=1, policy_text=text)
    copy = next(r for r in records if isinstance(r, Measurement) and r.metric == "memory.copy")
    again = msgspec.structs.replace(copy, samples=(9000.0,))
    finding = by(score_run(as_run(header, [*records, again])), "a")
    assert (finding.result, finding.reason) == ("not_measured", "parse_error")


def test_a_run_shorter_than_the_policy_asks_is_not_long_enough() -> None:
    verdict = verdict_of(hours=3)
    finding = by(verdict, "run.length")
    assert (verdict.verdict, finding.result, finding.reason) == ("INCONCLUSIVE", "not_measured", "too_short")
    assert finding.expected == "at least 47 h"


def test_an_acceptance_of_cpus_is_not_a_go() -> None:
    verdict = verdict_of(nodes=1, accelerators=2, device="cpu")
    assert verdict.verdict == "INCONCLUSIVE"
    assert by(verdict, "node.accelerators").reason == "unsupported"


# --- retests ------------------------------------------------------------------------------------------------------


def test_the_last_attempt_is_judged_and_the_first_is_shown() -> None:
    verdict = verdict_of(faults=["slow@n01/gpu3=0.78"])
    finding = by(verdict, "matmul.rate", "n01/gpu3")
    assert (finding.result, len(finding.evidence)) == ("fail", 2)
    assert finding.first_observed == pytest.approx(570, rel=0.02)


def test_attempts_that_disagree_are_a_warning() -> None:
    verdict = verdict_of(faults=["intermittent@n01/gpu3"])
    finding = by(verdict, "matmul.rate", "n01/gpu3")
    assert (verdict.verdict, finding.result) == ("GO", "warn")
    assert re.fullmatch(r"intermittent: first 5\d\d TFLOPS, in the retest 7\d\d TFLOPS", finding.detail)
    assert any("comes and goes" in reason for reason in verdict.reasons)


def test_a_retest_that_never_came_is_not_measured() -> None:
    def without_retest(record: AnyRecord) -> AnyRecord | None:
        gone = isinstance(record, Measurement) and record.attempt == 2 and record.subject == "n01/gpu3"
        return None if gone else record

    verdict = verdict_of(faults=["intermittent@n01/gpu3"], change=without_retest)
    assert verdict.verdict == "INCONCLUSIVE"
    assert by(verdict, "matmul.rate", "n01/gpu3").result == "not_measured"


def test_a_wrong_bit_seen_once_is_not_undone_by_a_retest() -> None:
    def once(record: AnyRecord) -> AnyRecord:
        wrong = isinstance(record, Measurement) and record.metric == "matmul.mismatches" and record.attempt == 1
        if wrong and record.subject == "n01/gpu3":
            return msgspec.structs.replace(record, samples=(1.0,))
        return record

    verdict = verdict_of(faults=["intermittent@n01/gpu3"], change=once)
    assert by(verdict, "matmul.repeats", "n01/gpu3").result == "fail"
    assert verdict.exclude == ("n01",)


@pytest.mark.parametrize(
    ("fault", "check", "subject"),
    [
        ("wrong_elements@n01=4", "all_reduce.exact", "n01"),
        ("mismatch@n01/gpu0=2", "matmul.repeats", "n01/gpu0"),
        ("ecc@n01/gpu0=1", "health.ecc", "n01/gpu0"),
        ("throttled@n01/gpu0=0.4", "health.throttled", "n01/gpu0"),
        ("lost@n01", "node.responds", "n01"),
        ("hung@n01/gpu0", "node.responds", "n01"),
    ],
)
def test_faults_of_a_node_fail_it_and_name_it(fault: str, check: str, subject: str) -> None:
    verdict = verdict_of(faults=[fault])
    finding = by(verdict, check, subject)
    assert (finding.result, finding.excludes, verdict.exclude) == ("fail", "n01", ("n01",))
    assert verdict.verdict == "CONDITIONAL"
    assert finding.statement in verdict.reasons[0]


# --- layers -------------------------------------------------------------------------------------------------------


def test_eight_equally_slow_accelerators_pass_their_peers_and_fail_the_reference() -> None:
    faults = [f"slow@n00/gpu{index}=0.85" for index in range(8)]
    verdict = verdict_of(nodes=1, faults=faults)
    finding = by(verdict, "matmul.rate", "n00/gpu0")
    assert (finding.result, finding.layer) == ("fail", "reference")
    assert by(verdict, "matmul.burst", "n00/gpu0").result == "pass"


OUTLIER = (
    "{check: a, metric: memory.copy, each: accelerator, category: memory, excludable: true, layers: {peers: {}}%s}"
)


def test_an_outlier_that_was_not_retested_decides_nothing() -> None:
    change = altered("memory.copy", "n01/gpu3", 2500.0)
    verdict = verdict_of(policy_text=policy(OUTLIER % ""), change=change)
    finding = by(verdict, "a", "n01/gpu3")
    assert (verdict.verdict, finding.result, finding.layer) == ("INCONCLUSIVE", "not_measured", "peers")
    assert (finding.reason, finding.observed) == ("not_retested", 2500.0)
    assert re.fullmatch(r"2,500 GB/s, 15\.\d % worse than the median of its peers, seen once", finding.detail)
    assert finding.action.startswith("Retest n01/gpu3")
    assert "bad once, and not retested" in verdict.reasons[0]
    assert finding.excludes is None


def test_an_outlier_of_a_check_that_is_not_required_warns() -> None:
    change = altered("memory.copy", "n01/gpu3", 2500.0)
    verdict = verdict_of(policy_text=policy(OUTLIER % ", severity: warn"), change=change)
    finding = by(verdict, "a", "n01/gpu3")
    assert (verdict.verdict, finding.result, finding.reason) == ("GO", "warn", "")
    assert finding.action.startswith("Retest n01/gpu3")


def test_an_outlier_that_fails_otherwise_fails() -> None:
    text = policy((OUTLIER % "").replace("{peers: {}}", "{peers: {}, contract: {at_least: 2600}}"))
    verdict = verdict_of(policy_text=text, change=altered("memory.copy", "n01/gpu3", 2500.0))
    assert by(verdict, "a", "n01/gpu3").result == "fail"
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))


@pytest.mark.parametrize("bad", range(1, 7))
@pytest.mark.parametrize("name", ["acceptance", "quick"])
def test_however_many_nodes_of_eight_are_slow_none_of_them_is_signed_for(name: str, bad: int) -> None:
    """0.85 of the others, and still above the floors: peers alone have to tell. With seven, one node is merely fast."""

    def slow(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and record.metric == "memory.copy" and int(record.subject[1:3]) < bad
        return scaled(record, 0.85) if hit else record

    verdict = verdict_of(nodes=8, accelerators=1, policy=name, change=slow)
    assert verdict.verdict == "INCONCLUSIVE"
    for node in range(bad):
        assert by(verdict, "memory.copy", f"n{node:02d}/gpu0").result == "not_measured"


def test_peers_of_which_half_are_slow_say_that_they_cannot_tell() -> None:
    def slow(record: AnyRecord) -> AnyRecord:
        hit = (
            isinstance(record, Measurement) and record.metric == "memory.copy" and record.subject[:3] in ("n00", "n01")
        )
        return scaled(record, 0.3) if hit else record

    verdict = verdict_of(nodes=4, accelerators=1, policy_text=policy(OUTLIER % ""), change=slow)
    finding = by(verdict, "a", "n00/gpu0")
    assert (finding.result, finding.reason) == ("not_measured", "no_power")
    assert "scatter so much" in finding.detail


def test_the_buyers_own_number_decides_where_peers_cannot() -> None:
    def slow(record: AnyRecord) -> AnyRecord:
        hit = (
            isinstance(record, Measurement) and record.metric == "memory.copy" and record.subject[:3] in ("n00", "n01")
        )
        return scaled(record, 0.9) if hit else record

    text = policy((OUTLIER % "").replace("{peers: {}}", "{peers: {}, contract: {at_least: 2000}}"))
    verdict = verdict_of(nodes=4, accelerators=1, policy_text=text, change=slow)
    assert {by(verdict, "a", f"n0{node}/gpu0").result for node in range(4)} == {"pass"}
    assert any("not judged among peers" in line for line in verdict.not_judged)


def test_fewer_than_three_peers_are_stated_and_not_judged() -> None:
    text = policy("{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {peers: {}}}")
    verdict = verdict_of(nodes=1, accelerators=2, policy_text=text, change=altered("memory.copy", "n00/gpu1", 1000.0))
    assert by(verdict, "a", "n00/gpu1").result == "pass"
    assert any("2 peers: too few" in line for line in verdict.not_judged)


def test_a_value_that_is_bad_in_its_retest_alone_blames_nobody() -> None:
    def unlucky(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and (record.subject, record.attempt) == ("n01/gpu2", 2)
        return scaled(record, 0.8) if hit and record.metric == "matmul.tflops" else record

    text = policy(
        "{check: a, metric: matmul.tflops, where: {dtype: bf16, phase: burst}, each: accelerator, category: compute,"
        " excludable: true, layers: {peers: {}}}"
    )
    verdict = verdict_of(faults=["slow@n01/gpu3=0.78"], policy_text=text, change=unlucky)
    suspect = by(verdict, "a", "n01/gpu2")
    assert (suspect.result, suspect.reason) == ("not_measured", "not_retested")
    assert by(verdict, "a", "n01/gpu3").result == "fail"
    assert verdict.exclude == ("n01",)


def mtbf(days: float, **wanted: object) -> Verdict:
    text = policy(
        "{check: m, rule: reliability.mtbf, each: cluster, category: health, statement: '$observed, $expected',"
        f" layers: {{contract: {{at_least: {days}}}}}}}"
    )
    return verdict_of(policy_text=text, **wanted)


def test_a_time_between_failures_is_shown_refuted_or_left_open_with_what_would_settle_it() -> None:
    """Eight nodes for 48 hours are 16 node-days, whose upper bound without a failure is 2.996 / 16."""
    days = by(mtbf(1.0, nodes=8, accelerators=1), "m")
    assert (days.result, days.layer, days.unit) == ("pass", "contract", "node-days")
    assert days.observed == pytest.approx(16 / 2.996, rel=0.02)
    open_still = by(mtbf(200.0, nodes=8, accelerators=1), "m")
    assert (open_still.result, open_still.reason) == ("not_measured", "no_power")
    assert "599 node-days with no failure would show it (95 %), 583 more" in open_still.detail
    assert "with a chance of 22 %" in open_still.detail
    failing = by(mtbf(1000.0, nodes=8, accelerators=1, faults=[f"lost@n0{node}" for node in range(6)]), "m")
    assert failing.result == "fail"
    assert failing.observed == pytest.approx(16 / 2.613, rel=0.03), "the lower bound of 6 failures is 2.613"
    assert "6 failures in 1" in failing.detail


def test_nobody_has_to_prove_a_time_between_failures_where_no_tier_must() -> None:
    text = policy(
        "{check: m, rule: reliability.mtbf, each: cluster, tiers: [], category: health, statement: x,"
        " layers: {contract: {at_least: 200}}}"
    )
    verdict = verdict_of(nodes=4, accelerators=1, policy_text=text)
    assert verdict.verdict == "GO"
    assert any("reliability.mtbf" in line or line.startswith("m not judged") for line in verdict.not_judged)
    lost = verdict_of(nodes=4, accelerators=1, policy_text=text, faults=["lost@n00", "lost@n01", "lost@n02"])
    assert by(lost, "m").result == "fail"


def test_fewer_nodes_than_were_bought_are_not_accepted() -> None:
    text = policy(
        "{check: c, rule: node.count, each: cluster, category: evidence, statement: '$observed of $expected',"
        " layers: {contract: {at_least: 4}}}"
    )
    assert by(verdict_of(nodes=4, accelerators=1, policy_text=text), "c").result == "pass"
    short = verdict_of(nodes=4, accelerators=1, policy_text=text, faults=["never_joined@n02"])
    assert (by(short, "c").result, by(short, "c").observed, short.verdict) == ("fail", 3.0, "NO_GO")
    assert by(verdict_of(nodes=3, accelerators=1, policy_text=text), "c").result == "fail"


def test_what_rests_on_too_few_samples_decides_nothing() -> None:
    check = (
        "{check: a, metric: memory.copy, each: accelerator, category: memory, statement: x, samples_at_least: %d,"
        " layers: {contract: {at_least: 100}}}"
    )
    enough = verdict_of(nodes=1, accelerators=1, policy_text=policy(check % 20))
    assert by(enough, "a").result == "pass"
    few = by(verdict_of(nodes=1, accelerators=1, policy_text=policy(check % 21)), "a")
    assert (few.result, few.reason, few.expected) == ("not_measured", "too_few", "at least 21 samples")
    assert "more iterations" in few.action


def test_the_contract_judges_by_its_own_numbers() -> None:
    slow = verdict_of(nodes=16, policy="contract", change=with_samples)
    assert {f.check: f.layer for f in slow.findings if f.result == "fail"} == {"all_reduce.across_nodes": "contract"}
    assert slow.verdict == "NO_GO"
    change = "{check: all_reduce.across_nodes, layers: {contract: {at_least: 100}}}"
    slower = f"name: mine\nextends: contract\nchecks: [{change}]"
    text = f"{load_policy('contract').text}\n---\n{slower}\n"
    fits = verdict_of(nodes=16, policy_text=text, change=with_samples)
    assert [f.check for f in fits.findings if f.result == "fail"] == []
    assert (by(fits, "node.count").result, fits.verdict) == ("pass", "GO"), fits.reasons
    three = verdict_of(nodes=3, policy_text=text, change=with_samples)
    assert by(three, "node.count").result == "fail"


def with_samples(record: AnyRecord) -> AnyRecord:
    """As many samples as the acceptance profile takes."""
    if isinstance(record, Measurement) and record.samples and len(record.samples) > 1:
        return msgspec.structs.replace(record, samples=record.samples * 5)
    return record


OWN = """
sources: {US: {name: ours, at: spring, date: 2026-04-01}}
fabrics:
  - key: mine
    title: eight NICs
    technology: infiniband
    nics: 8
    gbit: 400
    values: [{metric: all_reduce.busbw, kind: floor, value: %s, source: US}]
"""
ACROSS = (
    "{check: a, metric: all_reduce.busbw, each: cluster, nodes_at_least: 2, category: fabric, statement: x,"
    " where: {bytes: {at_least: 1073741824}}, layers: {contract: {at_least: 40}, reference: {of: floor, fail: 1.0}}}"
)


def on_fabric(nics: int, floor: float | None = None, nodes: int = 2) -> Verdict:
    """A cluster whose nodes show so many InfiniBand NICs that are up."""
    header, records = make_run(nodes=nodes, accelerators=2, policy_text=policy(ACROSS))
    seen = {
        "nic.driver": "mlx5_core", "port1.link_layer": "InfiniBand", "port1.rate": 400_000_000_000,
        "port1.state": "ACTIVE",
    }  # fmt: skip
    facts = [
        Fact(subject=f"n{node:02d}/mlx5_{nic}", key=key, value=value)
        for node in range(nodes)
        for nic in range(8)
        for key, value in (seen if nic < nics else seen | {"port1.state": "DOWN"}).items()
    ]
    own = with_own(OWN % floor, "ours.yaml").own if floor is not None else None
    return score_run(as_run(msgspec.structs.replace(header, references=own), [*records, *facts]))


def test_the_fabric_between_nodes_is_known_by_its_nics_and_has_floors_of_its_own() -> None:
    known = by(on_fabric(8), "a")
    assert (known.result, known.detail) == ("pass", "")
    high = by(on_fabric(8, floor=10_000), "a")
    assert (high.result, high.layer) == ("fail", "reference")
    assert high.expected == "at least 100 % of the floor 10,000 GB/s (ours)"
    verdict = on_fabric(8, floor=10_000)
    assert verdict.references is not None
    assert verdict.references.sha256 == hashlib.sha256((OWN % 10_000).encode()).hexdigest()
    assert on_fabric(8).references is None


def test_an_unknown_fabric_is_said_and_the_buyers_own_number_decides() -> None:
    one_down = on_fabric(7)
    found = by(one_down, "a")
    assert found.result == "pass"
    assert "a fabric of 7 x 400 Gbit/s infiniband has no reference" in found.detail
    unseen = verdict_of(nodes=2, accelerators=2, policy_text=policy(ACROSS))
    assert any("the facts do not tell which fabric this is" in line for line in unseen.not_judged)


def test_a_change_that_could_not_show_is_not_judged_and_what_would_show_it_is_said() -> None:
    text = policy(
        "{check: a, metric: memory.copy, each: accelerator, category: memory, statement: x,"
        " layers: {baseline: {fail: 0.9}, peers: {effect: 0.9}}}"
    )

    def noisy(share: float, spread: float) -> Callable[[AnyRecord], AnyRecord]:
        def change(record: AnyRecord) -> AnyRecord:
            if not isinstance(record, Measurement) or record.metric != "memory.copy":
                return record
            samples = tuple(3000.0 * share * (1 + spread * (place - 9.5) / 9.5) for place in range(20))
            return msgspec.structs.replace(record, samples=samples)

        return change

    def judged(share: float, spread: float) -> Finding:
        header, records = make_run(nodes=1, accelerators=1, policy_text=text)
        before = as_run(header, [noisy(1.0, spread)(record) for record in records])
        return by(score_run(as_run(header, [noisy(share, spread)(record) for record in records]), baseline=before), "a")

    assert [judged(share, 0.02).reason for share in (1.0, 0.95, 0.85)] == ["", "", "not_retested"]
    blind = judged(1.0, 0.8)
    assert (blind.result, blind.reason) == ("not_measured", "no_power")
    assert re.search(r"only a change of \d+.* would show, not one of 10 %: \d+ samples like these", blind.detail)
    assert judged(0.88, 0.8).reason == "no_power", "noise is no fault"
    assert judged(0.3, 0.8).reason == "not_retested", "and what is beyond all noise is to be seen again"


PEERS = Peers()


@pytest.mark.parametrize(
    ("others", "value", "outlier"),
    [
        ([100.0] * 20, 94.0, True),
        ([100.0] * 20, 96.0, False),  # many sigmas, yet less than the effect that matters
        ([97.0, 98.5, 100.0, 101.5, 103.0] * 4, 93.0, False),  # more than the effect, yet within the scatter
        ([99.8, 99.9, 100.0, 100.1, 100.2] * 4, 94.0, True),
        ([99.8, 99.9, 100.0, 100.1, 100.2] * 4, 120.0, False),  # better than the others is no fault
        ([100.0, 100.0], 50.0, True),  # with itself three
        ([100.0], 50.0, False),
    ],
)
def test_an_outlier_needs_the_effect_and_the_sigmas(others: list[float], value: float, outlier: bool) -> None:
    from hwlottery.evidence import metric

    group = group_of([*others, value])
    judged = by_peers(value, PEERS, group, metric("memory.copy"), others=[value])
    assert judged.outlier == outlier
    assert judged.result == ("fail" if judged.outlier else "pass")


@given(st.lists(st.floats(90, 110), min_size=0, max_size=2))
def test_no_outlier_is_told_among_fewer_than_three(others: list[float]) -> None:
    from hwlottery.evidence import metric

    judged = by_peers(1.0, PEERS, group_of(others), metric("memory.copy"), others=[1.0])
    assert (judged.result, judged.outlier) == ("pass", False)
    assert "too few" in judged.not_judged or "not above 0" in judged.not_judged


def test_an_unknown_accelerator_has_no_mfu_and_still_its_tflops() -> None:
    unknown = dataclasses.replace(H100, name="NVIDIA H100 80GB HBM9")
    verdict = verdict_of(chip=unknown)
    mfu, rate = by(verdict, "matmul.mfu", "n00/gpu0"), by(verdict, "matmul.rate", "n00/gpu0")
    assert (mfu.result, mfu.reason) == ("not_measured", "no_reference")
    assert (rate.result, rate.reason) == ("not_measured", "no_reference")
    assert by(verdict, "matmul.burst", "n00/gpu0").observed == pytest.approx(770, rel=0.05)
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.index is None
    assert verdict.economics.mfu is None


def test_where_only_the_peak_is_known_it_is_the_measure_and_makes_no_index() -> None:
    h200 = dataclasses.replace(H100, name="NVIDIA H200", memory_bytes=150_754_820_096)
    healthy = verdict_of(chip=h200)
    assert by(healthy, "matmul.rate", "n00/gpu0").result == "pass"
    assert "of the peak 989 TFLOPS" in by(healthy, "matmul.rate", "n00/gpu0").expected
    assert healthy.index is None
    for tflops, result in ((600.0, "warn"), (300.0, "fail")):
        slow = verdict_of(chip=dataclasses.replace(h200, tflops=dict.fromkeys(H100.tflops, tflops)))
        assert by(slow, "matmul.rate", "n00/gpu0").result == result


def test_mfu_is_tflops_over_the_peak_of_the_dtype() -> None:
    verdict = verdict_of(change=altered("matmul.tflops", "n00/gpu0", 494.5, {"phase": "sustained", "dtype": "bf16"}))
    assert by(verdict, "matmul.mfu", "n00/gpu0").observed == pytest.approx(0.5)


def test_a_contract_speaks_in_the_buyers_numbers() -> None:
    text = policy(
        "{check: a, metric: memory.copy, each: accelerator, category: memory, excludable: true, "
        "layers: {contract: {at_least: 2000, warn_at_least: 2900}}}"
    )
    change = altered("memory.copy", "n01/gpu3", 1999.0)
    verdict = verdict_of(policy_text=text, change=change)
    finding = by(verdict, "a", "n01/gpu3")
    assert (finding.result, finding.layer, finding.threshold) == ("fail", "contract", 2000)
    assert finding.expected == "at least 2,000 GB/s, better at least 2,900 GB/s"
    assert verdict.exclude == ("n01",)


# --- the floors of what is shipped --------------------------------------------------------------------------------

# One figure of a whole cluster at a time, as bad as this everywhere: peers see nothing, floors must.
UNIFORMLY_BAD = {
    "matmul.tflops": 0.5,
    "all_reduce.busbw": 0.6,
    "memory.copy": 0.7,
    "memory.host_to_device": 0.8,
    "memory.device_to_host": 0.8,
    "burn_in.model_tflops": 0.3,
    "topology.pcie_width": 0.5,
    "topology.pcie_gts": 0.5,
    "topology.nvlinks_active": 0.5,
    "checkpoint.save": 100.0,
    "checkpoint.read_back": 200.0,
    "filesystem.write_rate": 0.05,
    "filesystem.read_rate": 0.03,
}


@pytest.mark.parametrize("policy_name", ["acceptance", "quick"])
@pytest.mark.parametrize(("nodes", "accelerators"), [(1, 8), (4, 8), (64, 8)])
def test_a_healthy_cluster_can_be_signed_by_each_policy_at_any_size(
    policy_name: str, nodes: int, accelerators: int
) -> None:
    verdict = verdict_of(nodes=nodes, accelerators=accelerators, policy=policy_name)
    assert (verdict.verdict, verdict.signable) == ("GO", True), verdict.reasons
    assert not [f for f in verdict.findings if f.result != "pass" and f.check != "health.events"]


@pytest.mark.parametrize("policy_name", ["acceptance", "quick"])
@pytest.mark.parametrize("metric", UNIFORMLY_BAD)
def test_a_cluster_that_is_bad_all_over_in_one_figure_is_not_fit(metric: str, policy_name: str) -> None:
    def worse(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and record.metric == metric
        return scaled(record, UNIFORMLY_BAD[metric]) if hit else record

    verdict = verdict_of(nodes=2, policy=policy_name, change=worse)
    assert (verdict.verdict, verdict.signable) == ("NO_GO", False), verdict.reasons


def test_a_link_narrower_than_its_device_can_fails_its_node() -> None:
    verdict = verdict_of(change=altered("topology.pcie_width", "n01/gpu3", 8.0))
    finding = by(verdict, "topology.pcie_width", "n01/gpu3")
    assert (finding.result, verdict.exclude) == ("fail", ("n01",))
    assert finding.statement == (
        "n01/gpu3 runs its PCIe link with 8 lanes under load, expected 16 lanes, the most that the device can."
    )


@pytest.mark.parametrize(
    ("key", "value", "check"),
    [
        ("accelerator.pcie_width_max", 8, "same.pcie_width"),
        ("accelerator.pcie_generation_max", 4, "same.pcie_generation"),
        ("accelerator.nvlinks", 12, "same.nvlinks"),
    ],
)
def test_a_device_that_claims_less_than_the_others_fails_its_node(key: str, value: int, check: str) -> None:
    def less(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Fact) and (record.key, record.subject) == (key, "n02/gpu0")
        return msgspec.structs.replace(record, value=value) if hit else record

    verdict = verdict_of(change=less)
    assert by(verdict, check, "n02/gpu0").result == "fail"
    assert verdict.exclude == ("n02",)


def test_a_slow_fabric_between_nodes_fails_the_cluster() -> None:
    def slow(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and (record.metric, record.subject) == ("all_reduce.busbw", "cluster")
        return scaled(record, 0.03) if hit else record

    verdict = verdict_of(change=slow)
    assert (verdict.verdict, by(verdict, "all_reduce.across_nodes").result) == ("NO_GO", "fail")


def test_without_a_reference_the_buyers_own_number_decides_and_it_is_said() -> None:
    unknown = dataclasses.replace(H100, name="NVIDIA H100 80GB HBM9")
    layers = "layers: {reference: {of: peak, fail: 0.7}%s}"
    check = f"{{check: a, metric: memory.copy, each: accelerator, category: memory, {layers}}}"
    without = verdict_of(chip=unknown, policy_text=policy(check % ""))
    assert by(without, "a", "n00/gpu0").reason == "no_reference"
    assert without.verdict == "INCONCLUSIVE"
    own = verdict_of(chip=unknown, policy_text=policy(check % ", contract: {at_least: 2000}"))
    assert own.verdict == "GO"
    assert any("not judged against a reference" in line for line in own.not_judged)
    missed = verdict_of(chip=unknown, policy_text=policy(check % ", contract: {at_least: 9000}"))
    assert missed.verdict == "NO_GO"


# --- what a value can be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number", "possible"),
    [
        ("memory.copy", 0.0, False),
        ("memory.copy", -2950.0, False),
        ("checkpoint.save", 0.0, False),
        ("checkpoint.stage", 0.0, True),
        ("burn_in.step", 1e-300, False),
        ("matmul.mismatches", 0.5, False),
        ("matmul.mismatches", -1.0, False),
        ("matmul.mismatches", 3.0, True),
        ("health.throttled", 1.01, False),
        ("matmul.mfu", 1.06, False),
        ("matmul.mfu", 1.04, True),
        ("topology.pcie_width", 64.0, False),
        ("health.temperature", -300.0, False),
        ("burn_in.loss_drop", -0.4, True),
        ("memory.copy", 1e300, False),
    ],
)
def test_each_metric_says_what_its_values_can_be(name: str, number: float, possible: bool) -> None:
    from hwlottery.evidence import metric

    assert metric(name).possible.holds(number) == possible


def test_every_rate_and_time_is_above_zero_and_every_count_is_whole() -> None:
    from hwlottery.evidence import CATALOGUE

    for metric in CATALOGUE:
        if metric.unit in ("TFLOPS", "GB/s", "tokens/s", "MHz", "GT/s"):
            assert not metric.possible.holds(0.0), metric.name
        if metric.unit in ("elements", "errors", "rows", "tensors", "steps", "ranks", "lanes", "links"):
            assert metric.possible.whole, metric.name
        if metric.name != "clock.offset":  # a clock may stand years behind
            assert not metric.possible.holds(-1e6), metric.name


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_value_that_is_not_possible_is_not_measured_in_whatever_attempt(attempt: int) -> None:
    def negative(record: AnyRecord) -> AnyRecord:
        hit = isinstance(record, Measurement) and (record.metric, record.attempt) == ("matmul.mismatches", attempt)
        return msgspec.structs.replace(record, samples=(-1.0,)) if hit and record.subject == "n01/gpu3" else record

    verdict = verdict_of(faults=["intermittent@n01/gpu3"], change=negative)
    finding = by(verdict, "matmul.repeats", "n01/gpu3")
    assert (verdict.verdict, finding.result, finding.reason) == ("INCONCLUSIVE", "not_measured", "parse_error")
    assert finding.detail == "-1 elements is not possible: a whole number, at least 0"


def test_a_figure_above_the_accelerators_peak_is_not_believed() -> None:
    verdict = verdict_of(change=altered("matmul.tflops", "n00/gpu0", 1100.0, {"phase": "sustained", "dtype": "bf16"}))
    finding = by(verdict, "matmul.rate", "n00/gpu0")
    assert (verdict.verdict, finding.result, finding.reason) == ("INCONCLUSIVE", "not_measured", "parse_error")
    assert finding.detail == "1,100 TFLOPS is not possible: the peak of h100-sxm-80 is 989 TFLOPS"
    assert by(verdict, "matmul.mfu", "n00/gpu0").result == "not_measured"


@pytest.mark.parametrize(
    ("quantiles", "count"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0), 1000),
        ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0), -3),
        ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0), None),
        ((9.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0), 2000),
        ((1.0, 2.0), 2000),
        (None, 5),
    ],
)
def test_quantiles_out_of_order_or_of_few_samples_are_unreadable(
    quantiles: tuple[float, ...] | None, count: int | None
) -> None:
    samples = None if quantiles else (1.0,)
    with pytest.raises(ValueError, match=r"quantiles|count"):
        Measurement(metric="memory.copy", subject="n00/gpu0", samples=samples, quantiles=quantiles, count=count)


# --- evidence that contradicts itself -----------------------------------------------------------------------------


def test_a_healthy_run_has_no_defects_and_a_real_reader_can_ask_for_them() -> None:
    header, records = make_run()
    assert defects(as_run(header, records)) == []
    altered_profile = msgspec.structs.replace(header.profile, text="name: other\n")
    found = defects(as_run(msgspec.structs.replace(header, profile=altered_profile), records))
    assert [str(problem) for problem in found] == ["run.json: the profile's text is not the one of its SHA-256"]


def test_an_error_that_blames_no_node_is_told_and_decides_nothing() -> None:
    header, records = make_run()
    xid = Event(time=START, kind="xid", subject="cluster", severity="fatal", detail="Xid 79")
    verdict = score_run(as_run(header, [*records, xid]))
    assert verdict.verdict == "INCONCLUSIVE"
    assert "1 error of no promised node: xid Xid 79" in verdict.reasons[0]


def test_an_error_beside_the_measuring_warns_and_a_fatal_one_fails_its_node() -> None:
    header, records = make_run()
    for severity, result in (("error", "warn"), ("fatal", "fail")):
        note = Event(time=START, kind="note", subject="n01", severity=severity, detail="NVML went away")  # type: ignore[arg-type]
        finding = by(score_run(as_run(header, [*records, note])), "health.events", "n01")
        assert (finding.result, finding.observed) == (result, "NVML went away")


def test_a_run_of_some_probes_is_not_for_signing() -> None:
    header, records = make_run()
    verdict = score_run(as_run(msgspec.structs.replace(header, only=("matmul",)), records))
    assert not verdict.signable
    assert verdict.caveats[0] == "Not for signing: only matmul ran (--only), the rest was not measured."


def test_a_resumed_run_with_other_software_may_stand_where_all_was_measured_again() -> None:
    header, records = make_run()
    first = header.segments[0]
    old = msgspec.structs.replace(
        first, start=first.start - timedelta(hours=1), software={"n00": {"torch": "1.0"}}, methods={"matmul": "0"}
    )
    resumed = msgspec.structs.replace(header, segments=(old, first))
    assert defects(as_run(resumed, records)) == []
    later = msgspec.structs.replace(old, start=first.start + timedelta(hours=1))
    mixed = msgspec.structs.replace(header, segments=(first, later))
    assert "unlike software" in str(defects(as_run(mixed, records))[0])


def test_a_run_counts_from_its_first_event_and_not_from_what_its_header_says() -> None:
    header, records = make_run(hours=3)
    early = msgspec.structs.replace(header.segments[0], start=START - timedelta(days=9999))
    verdict = score_run(as_run(msgspec.structs.replace(header, segments=(early,)), records))
    assert by(verdict, "run.length").reason == "too_short"


# --- facts and access tiers ---------------------------------------------------------------------------------------


def test_a_node_that_differs_from_the_majority_is_named() -> None:
    verdict = verdict_of(faults=["kernel@n03"])
    finding = by(verdict, "same.kernel", "n03")
    assert (verdict.verdict, finding.result) == ("GO", "warn")
    assert finding.statement == "n03 has kernel 6.9.0-odd, expected 6.8.0-31-generic, as on 3 of 4."
    assert by(verdict, "same.kernel", "n00").result == "pass"


def test_with_a_tie_nobody_is_called_right() -> None:
    verdict = verdict_of(nodes=2, faults=["kernel@n01"])
    assert {by(verdict, "same.kernel", node).result for node in ("n00", "n01")} == {"warn"}


@pytest.mark.parametrize(
    ("limit", "result"), [("unlimited", "pass"), (2**36, "pass"), (65536, "warn"), ("odd", "not_measured")]
)
def test_a_limit_is_a_number_or_unlimited(limit: str | int, result: str) -> None:
    def with_limit(record: AnyRecord) -> AnyRecord:
        same = isinstance(record, Fact) and record.key == "limit.memlock"
        return msgspec.structs.replace(record, value=limit) if same else record

    assert by(verdict_of(change=with_limit), "limits.memlock", "n00").result == result


def test_a_fact_that_could_not_be_read_is_closed_to_the_tenant() -> None:
    def unreadable(record: AnyRecord) -> AnyRecord:
        same = isinstance(record, Fact) and record.key == "limit.memlock"
        return msgspec.structs.replace(record, key="unreadable.limit.memlock", value="no") if same else record

    finding = by(verdict_of(change=unreadable), "limits.memlock", "n00")
    assert (finding.result, finding.reason, finding.detail) == ("not_measured", "closed_to_tenant", "no")


KERNEL_LOG = "{check: log, fact: kernel.log, each: node, category: health, tiers: [bare-root, vm-root]}"


def tiered(*, found: str | None, declared: str | None, segment: str | None = None) -> Verdict:
    header, records = make_run(nodes=1, policy_text=policy(KERNEL_LOG))
    start = msgspec.structs.replace(header.segments[0], tiers={"n00": segment} if segment else {})
    header = msgspec.structs.replace(header, declared_tier=declared, segments=(start,))

    def with_tier(record: AnyRecord) -> Iterable[AnyRecord]:
        if isinstance(record, Fact) and record.key == "node.tier":
            return [msgspec.structs.replace(record, value=found)] if found else []
        return [record]

    run = as_run(header, [new for record in records for new in with_tier(record)])
    # A fact was taken out on purpose, and so its trial must not count it.
    uncounted = [msgspec.structs.replace(event, counts=None) for event in run.events]
    return score_run(msgspec.structs.replace(run, events=uncounted))


@pytest.mark.parametrize(
    ("found", "declared", "segment", "required"),
    [
        ("container", None, None, False),
        ("bare-root", None, None, True),
        ("container", "bare-root", None, True),  # declared higher: more is asked
        ("bare-root", "container", None, True),  # declared lower: nothing is taken away
        ("container", None, "vm-root", True),  # an earlier start saw more
        ("container", "container", "container", False),
        (None, None, None, True),  # not known: the most is asked
        ("nonsense", None, None, True),
    ],
)
def test_what_the_recorded_tier_asks_is_never_reduced(
    found: str | None, declared: str | None, segment: str | None, required: bool
) -> None:
    verdict = tiered(found=found, declared=declared, segment=segment)
    finding = by(verdict, "log")
    assert (finding.result, finding.required) == ("not_measured", required)
    assert verdict.verdict == ("INCONCLUSIVE" if required else "GO")


def test_a_fault_that_was_seen_counts_in_every_tier() -> None:
    event = "{check: events, rule: health.events, each: node, category: health, tiers: [], excludable: true}"
    header, records = make_run(policy_text=policy(event))
    later = START + timedelta(hours=1)
    xid = Event(time=later, kind="xid", subject="n02/gpu1", severity="error", detail="Xid 79")
    verdict = score_run(as_run(header, [*records, xid]))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n02",))
    healthy = score_run(as_run(header, records))
    assert by(healthy, "events", "n00").result == "not_measured", "nobody watched: none seen is no proof of none"
    assert healthy.verdict == "GO"


@pytest.mark.parametrize(("said", "result"), [([True], "pass"), ([False, True], "not_measured"), ([], "not_measured")])
def test_no_xid_counts_only_where_the_log_was_watched_all_the_time(said: list[bool], result: str) -> None:
    header, records = make_run(nodes=1)
    watched = [Fact(subject="n00", key="kernel_log.watched", value=value) for value in said]
    assert by(score_run(as_run(header, [*records, *watched])), "health.events").result == result


# --- what the verdict says ----------------------------------------------------------------------------------------

FAULTY = ["slow@n01/gpu3=0.78", "never_joined@n02", "nan@n00/gpu0", "tool_missing@n00", "kernel@n03", "ecc@n03/gpu0=2"]


def test_every_failure_says_what_cures_it_and_every_gap_how_to_measure_it() -> None:
    for finding in verdict_of(faults=FAULTY).findings:
        if finding.result == "pass":
            continue
        assert finding.action, finding
        if finding.result != "not_measured":
            assert finding.statement.endswith("."), finding
            assert "$" not in finding.statement + finding.action
        else:
            assert finding.reason, finding


def test_at_most_five_reasons_the_weightiest_first() -> None:
    verdict = verdict_of(faults=[*FAULTY, "loss_rises@cluster"])
    assert len(verdict.reasons) == 5
    assert verdict.reasons[0].startswith("The burn-in's loss")
    assert "more" in verdict.reasons[-1]


def test_the_first_lines_say_simulated_cpu_and_not_signable() -> None:
    assert verdict_of(simulated=True).caveats == ("Simulated: no hardware was measured.",)
    assert not verdict_of(simulated=True).signable
    smoke = verdict_of(nodes=1, accelerators=2, device="cpu", policy="smoke", tier="container")
    assert smoke.verdict == "GO"
    assert not smoke.signable
    assert smoke.caveats[0] == "This was no GPU cluster: measured on CPUs."
    assert smoke.caveats[1].startswith("Not for signing:")


def test_smoke_on_a_cpu_asks_for_right_results_and_lets_spread_warn() -> None:
    wanted: dict[str, object] = {"nodes": 1, "accelerators": 2, "device": "cpu", "policy": "smoke"}
    slow = verdict_of(**wanted, faults=["slow@n00/slot1=0.5"])
    assert (slow.verdict, by(slow, "matmul.spread").result) == ("GO", "warn")
    for fault in ("mismatch@n00/slot0=1", "wrong_elements@n00=1", "loss_rises@cluster", "hash@cluster=1"):
        assert verdict_of(**wanted, faults=[fault]).verdict == "NO_GO", fault
    assert verdict_of(**wanted, faults=["tool_missing@n00"]).verdict == "INCONCLUSIVE"


def test_a_node_with_one_rank_is_not_asked_for_a_reduction() -> None:
    verdict = verdict_of(nodes=1, accelerators=1, device="cpu", policy="smoke")
    assert not [finding for finding in verdict.findings if finding.check == "all_reduce.exact"]


def test_failures_are_bounded_and_never_said_to_be_impossible() -> None:
    verdict = verdict_of()
    assert verdict.reliability.failures == 0
    assert verdict.reliability.node_days == pytest.approx(8, rel=0.01)
    assert verdict.reliability.rate_high == pytest.approx(2.996 / verdict.reliability.node_days, rel=0.001)
    assert verdict.reliability.sentence.startswith("No failure in 8.0")
    assert "infinit" not in verdict.reliability.sentence.lower()
    assert verdict.confidence.endswith("low for failures: 8.05 node-days")
    lost = verdict_of(faults=["lost@n01"]).reliability
    assert lost.failures == 1
    assert lost.rate_low is not None
    assert lost.rate_low > 0


def test_a_node_that_never_joined_is_no_failure_in_time() -> None:
    assert verdict_of(faults=["never_joined@n02"]).reliability.failures == 0


def test_money_is_price_over_useful_flops() -> None:
    money = verdict_of(price=2.5).economics
    assert money.mfu is not None
    assert money.goodput is not None
    assert money.usd_per_pflop_day is not None
    assert money.mfu.value == pytest.approx(386 / 989, rel=0.005)
    assert 0.9 < (money.goodput.value or 0) < 1
    expected = 2.5 * 24 / (0.386 * (money.goodput.value or 0))
    assert money.usd_per_pflop_day.value == pytest.approx(expected, rel=0.02)
    assert money.missing == ()
    for figure in (money.mfu, money.goodput, money.usd_per_pflop_day):
        assert (figure.low or 0) <= (figure.value or 0) <= (figure.high or 0)


def test_taking_a_node_out_makes_useful_flops_dearer() -> None:
    whole, less = (verdict_of(faults=f).economics.usd_per_pflop_day for f in ([], ["never_joined@n02"]))
    assert whole is not None
    assert less is not None
    assert less.value == pytest.approx((whole.value or 0) * 4 / 3, rel=0.01)


def test_a_straggler_that_is_taken_out_costs_no_steps() -> None:
    healthy, without = (verdict_of(faults=f).economics.usd_per_pflop_day for f in ([], ["slow@n01/gpu3=0.7"]))
    assert healthy is not None
    assert without is not None
    assert without.value == pytest.approx((healthy.value or 0) * 4 / 3, rel=0.01)


def test_what_money_needs_is_listed() -> None:
    assert any("--price" in line for line in verdict_of(price=None).economics.missing)


def test_the_index_is_none_unless_all_of_it_was_measured_and_never_above_100() -> None:
    healthy = verdict_of().index
    assert healthy is not None
    assert 90 < healthy <= 100
    assert verdict_of(faults=["missing@n00/gpu3"]).index is None

    def less_of_the_memory_rate(record: AnyRecord) -> AnyRecord:
        same = isinstance(record, Measurement) and record.metric == "memory.copy"
        return msgspec.structs.replace(record, samples=(2500.0,) * 20) if same else record

    slow = verdict_of(change=less_of_the_memory_rate).index
    assert slow is not None
    assert slow < healthy


def test_reasons_begin_with_what_decides() -> None:
    verdict = verdict_of(faults=["slow@n02/gpu1=0.7", "nan@n00/gpu0"])
    assert verdict.reasons[0].startswith("matmul.rate not measured on n00/gpu0: a sample was not finite")
    assert any(reason.startswith("n02/gpu1 multiplies at") for reason in verdict.reasons[1:])


def test_the_sentence_counts_as_coverage_does() -> None:
    verdict = verdict_of(faults=["slow@n02/gpu1=0.7", "nan@n00/gpu0"])
    told = re.fullmatch(
        r"Not decided: (\d+) of (\d+) required values on what remains were measured; (\d+) more are on excluded n02\.",
        verdict.sentence,
    )
    assert told, verdict.sentence
    measured, required, more = map(int, told.groups())
    assert required + more == verdict.coverage.required
    gone = [f for f in verdict.findings if f.required and f.subject.startswith("n02")]
    assert (measured, more) == (verdict.coverage.measured - len(gone), len(gone))
    assert verdict_of(faults=["nan@n00/gpu0"]).sentence.endswith("required values were measured.")


def test_a_policy_that_asks_nothing_of_this_run_says_so() -> None:
    header, records = make_run(nodes=1, accelerators=1)
    verdict = score_run(as_run(msgspec.structs.replace(header, promised=()), records), load_policy("prolog"))
    assert "0 of 0" not in verdict.sentence + " ".join(verdict.reasons)


def test_confidence_names_no_speed_where_none_was_judged_and_is_not_high_after_a_short_run() -> None:
    cpu: dict[str, object] = {"nodes": 1, "accelerators": 2, "device": "cpu", "hours": 0.01}
    assert verdict_of(**cpu, policy="prolog").confidence.startswith("none for speed: no speed was judged, low for")
    assert not verdict_of(**cpu, policy="smoke").confidence.startswith("high")
    assert verdict_of().confidence.startswith("high for speed")


def test_one_number_has_no_interval_and_a_share_says_of_what() -> None:
    mfu = verdict_of(nodes=1, accelerators=1).economics.mfu
    assert mfu is not None
    assert (mfu.low, mfu.high) == (None, None)
    assert mfu.reference == "h100-sxm-80: dense bf16 peak 989 TFLOPS (stas00/ml-engineering)"


def test_one_of_a_thing_is_told_in_the_singular() -> None:
    verdict = verdict_of(faults=["ecc@n01/gpu0=1"])
    assert by(verdict, "health.ecc", "n01/gpu0").statement == "n01/gpu0 had 1 error that could not be corrected."
    alone = policy("{check: a, metric: memory.copy, each: accelerator, category: memory, layers: {peers: {}}}")
    assert any("1 peer: too few" in line for line in verdict_of(nodes=1, accelerators=1, policy_text=alone).not_judged)


def test_a_check_that_concerns_nothing_here_is_named_with_its_conditions() -> None:
    verdict = verdict_of(nodes=1, accelerators=1)
    (across,) = (line for line in verdict.not_judged if line.startswith("all_reduce.across_nodes, all_reduce.across_"))
    assert across.endswith(" concern no cluster of this run (for cuda only, from 2 nodes on).")
    assert (
        "burn_in.replicas, burn_in.stragglers concern no cluster of this run (from 2 ranks on)." in verdict.not_judged
    )
    assert "all_reduce.exact concerns no node of this run (from 2 ranks on)." in verdict.not_judged


def test_a_policy_whose_speed_checks_concern_nothing_here_proves_nothing() -> None:
    checks = (
        "{check: n, rule: node.responds, each: node, category: evidence}",
        "{check: a, metric: matmul.tflops, device: cpu, each: accelerator, category: compute}",
    )
    text = policy(*checks).replace("signable: false", "signable: true")
    verdict = verdict_of(policy_text=text)
    assert (verdict.verdict, verdict.signable) == ("INCONCLUSIVE", False)
    assert verdict.sentence == "Not decided: no figure of speed that the policy requires concerns this run."


def test_a_policy_that_borrows_a_name_is_called_by_its_sum() -> None:
    text = load_policy("acceptance").text.replace("fail: 0.90", "fail: 0.10")
    verdict = verdict_of(policy_text=text)
    assert verdict.caveats[0].startswith("The policy calls itself acceptance and is not the one that comes with this")
    assert verdict_of().caveats == ()


# --- the file -----------------------------------------------------------------------------------------------------


def test_verdict_json_comes_back_the_same_and_holds_no_nan() -> None:
    verdict = verdict_of(faults=FAULTY)
    content = verdict_json(verdict)
    assert read_verdict(content) == verdict
    assert b": NaN" not in content
    assert all(not isinstance(f.observed, float) or math.isfinite(f.observed) for f in verdict.findings)


def test_same_evidence_and_policy_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", faults=FAULTY)
    code = (
        "import sys, pathlib; from hwlottery.evidence import read_run; from hwlottery.scoring import *;"
        "sys.stdout.buffer.write(verdict_json(score_run(read_run(pathlib.Path(sys.argv[1])))))"
    )
    source = str(Path(__file__).parent.parent / ".src")
    written = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": source},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(written) == 1
    assert written == {verdict_json(score_run(read_run(path)))}


def test_a_run_can_be_judged_by_another_policy() -> None:
    header, records = make_run(hours=0.1)
    run = as_run(header, records)
    assert score_run(run).verdict == "INCONCLUSIVE"
    assert score_run(run, load_policy("smoke")).verdict == "GO"
    assert score_run(run, policy_from_text(policy(), "mine.yaml")).policy.name == "mine"


def test_an_absence_beside_a_failure_does_not_hide_the_failure() -> None:
    def hide(record: AnyRecord) -> AnyRecord:
        if isinstance(record, Measurement) and (record.metric, record.subject) == ("all_reduce.wrong_elements", "n01"):
            if record.params["bytes"] == 2**30:
                return NotMeasured(
                    number=record.number, metric=record.metric, subject=record.subject, params=record.params,
                    reason="timeout", trial=record.trial,
                )  # fmt: skip
            return msgspec.structs.replace(record, samples=(3.0,))
        return record

    assert by(verdict_of(change=hide), "all_reduce.exact", "n01").result == "fail"


# --- evidence from anybody ----------------------------------------------------------------------------------------

ODD = st.sampled_from([0.0, -0.0, -1.0, 5e-324, 1e-300, 1e300, 1.7976931348623157e308, -1e308, 0.5, 1e9])
ODD_FACTS = st.one_of(ODD, st.booleans(), st.text(max_size=8), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), ODD, ODD_FACTS, st.sampled_from([[], FAULTY]))
def test_no_value_however_odd_ends_in_anything_but_a_verdict(
    seed: int, number: float, fact: bool | int | float | str, faults: list[str]
) -> None:
    chance = random.Random(seed)

    def odd(record: AnyRecord) -> AnyRecord:
        if isinstance(record, Measurement) and chance.random() < 0.3:
            return msgspec.structs.replace(record, samples=(number,) * len(record.samples or ()))
        if isinstance(record, Fact) and chance.random() < 0.3:
            return msgspec.structs.replace(record, value=fact)
        return record

    verdict = verdict_of(nodes=4, accelerators=1, faults=faults, change=odd)
    assert read_verdict(verdict_json(verdict)).verdict == verdict.verdict


def test_a_time_without_its_zone_is_unreadable_and_no_crash(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", nodes=1, accelerators=1)
    file = path / "events.jsonl"
    file.write_bytes(file.read_bytes().replace(b'Z","kind":"trial_ended"', b'","kind":"trial_ended"'))
    run = read_run(path)
    assert any(problem.kind == "unreadable" for problem in run.problems)
    assert score_run(run).verdict == "INCONCLUSIVE"
