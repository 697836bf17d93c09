"""Which nodes a user cannot use is one answer: verdict, money, page, comparison and lists agree."""

from pathlib import Path

import msgspec
import pytest
from compared_clusters import Cluster, compared_run
from generated_runs import as_run, make_run, write_run

from hwlottery.evidence import Run, read_run
from hwlottery.reports.money import training_run
from hwlottery.reports.node_lists import exclude, hostfile
from hwlottery.reports.page import render
from hwlottery.reports.prometheus import render as prometheus
from hwlottery.scoring import load_policy, score_run
from hwlottery.scoring.comparison import compare
from hwlottery.scoring.verdict import Verdict

LINK = "slow_link@n00~n05=0.6"
RENT = 2.5 * 730  # of an accelerator a month


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Sixteen nodes with one slow link between good ones."""
    run = read_run(write_run(tmp_path_factory.mktemp("link") / "run", nodes=16, faults=[LINK]))
    return run, score_run(run)


def test_a_link_takes_a_node_along_in_the_verdict_and_in_the_money(judged: tuple[Run, Verdict]) -> None:
    _, verdict = judged
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n00~n05",))
    assert verdict.sentence == "Fit for training without 1 of 16 nodes: n05 (for the link n00~n05)."
    money = verdict.economics
    assert money.situation is not None
    assert (money.situation.nodes, money.situation.accelerators, money.situation.paid_accelerators) == (15, 120, 128)
    assert money.effective_throughput is not None
    assert "120 of 128 paid accelerators" in money.effective_throughput.basis
    assert money.usd_per_pflop_day is not None
    assert money.usd_per_pflop_day.value == pytest.approx(167, abs=1.5)
    (cost,) = money.findings
    assert (cost.subject, cost.usd.value) == ("n05", pytest.approx(8 * RENT))
    assert cost.usd.basis.startswith("taken out with n00~n05: 8 accelerators paid for")
    assert money.findings_usd_per_month == pytest.approx(14_600)


def test_page_and_lists_name_the_node_that_the_money_leaves_out(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    page = render(run, verdict)
    assert "n05 (for the link n00~n05)" in page
    assert "--exclude=n05" in page
    assert exclude(run, verdict).text == "n05\n"
    assert len(hostfile(run, verdict).text.splitlines()) == 15
    assert 'hwlottery_node_excluded{node="n05"} 1' in prometheus(run, verdict)
    assert 'hwlottery_node_excluded{node="n00"} 0' in prometheus(run, verdict)


def test_a_comparison_counts_the_same_nodes() -> None:
    made = [compared_run(Cluster(seed=seed), faults=faults) for seed, faults in ((1, ()), (1, (LINK,)))]
    whole, less = (score_run(run).economics.usd_per_pflop_day for run in made)
    assert whole is not None
    assert less is not None
    assert (less.value or 0) / (whole.value or 1) == pytest.approx(16 / 15, rel=0.005)
    found = compare([made[0], compared_run(Cluster(seed=1), run=1, faults=(LINK,))])
    useful = next(one for one in found.metrics if one.key == "useful").standings
    training = next(one for one in found.metrics if one.key == "training").standings
    assert [each.subjects for each in training] == [128, 120]
    shares = [(useful[place].value or 0) / (training[place].value or 1) for place in (0, 1)]
    assert shares[1] / shares[0] == pytest.approx(15 / 16, rel=0.005)


def test_two_bad_nodes_and_a_link_are_three_nodes_everywhere(tmp_path: Path) -> None:
    faults = [LINK, "slow@n01/gpu3=0.78", "lost@n09"]
    run = read_run(write_run(tmp_path / "run", nodes=16, faults=faults))
    verdict = score_run(run)
    assert verdict.sentence.startswith("Not fit as it stands: 3 of 16 nodes would have to be taken out")
    assert verdict.economics.situation is not None
    assert verdict.economics.situation.nodes == 13
    assert {cost.subject for cost in verdict.economics.findings} == {"n01", "n05", "n09"}
    assert exclude(run, verdict).text == "n01,n05,n09\n"


def test_who_is_out_holds_nobody_back(tmp_path: Path) -> None:
    verdict = score_run(read_run(write_run(tmp_path / "run", nodes=16, faults=["slow@n01/gpu3=0.78"])))
    assert verdict.verdict == "CONDITIONAL"
    assert not any("Waiting for the slowest" in reason for reason in verdict.reasons)
    (stragglers,) = (each for each in verdict.findings if each.check == "burn_in.stragglers")
    assert stragglers.result == "pass"
    assert stragglers.observed == pytest.approx(verdict.economics.situation.straggler_loss, rel=1e-4)  # type: ignore[union-attr]
    assert stragglers.detail.startswith("without n01; 22 % with n01 in")


def test_a_demand_on_the_whole_is_met_by_what_remains(tmp_path: Path) -> None:
    """A buyer who allows no more than 10 % for stragglers: taking out the node mends that."""
    warned = "severity: warn\n    layers: {contract: {warn_at_most: 0.05}}\n    category: burn_in"
    text = load_policy("acceptance").text
    assert text.count(warned) == 1
    policy = text.replace(warned, "layers: {contract: {at_most: 0.1}}\n    category: burn_in")
    made = write_run(tmp_path / "run", nodes=16, faults=["slow@n01/gpu3=0.78"], policy_text=policy)
    verdict = score_run(read_run(made))
    assert (verdict.verdict, verdict.exclude) == ("CONDITIONAL", ("n01",))


def test_what_cannot_be_judged_without_the_nodes_that_are_out_says_that_they_are_in(tmp_path: Path) -> None:
    faults = ["slow@n01/gpu3=0.78", "loss_rises@cluster"]
    verdict = score_run(read_run(write_run(tmp_path / "run", nodes=16, faults=faults)))
    assert verdict.verdict == "NO_GO"
    assert any(reason.endswith("(with n01 in).") for reason in verdict.reasons)


def test_where_all_nodes_are_out_nothing_is_said_to_be_unmeasured(tmp_path: Path) -> None:
    header, records = make_run(nodes=16, accelerators=2, faults=["slow_rails@cluster=0.5"])
    verdict = score_run(as_run(msgspec.structs.replace(header, run_flops=1e24), records))
    assert len(verdict.exclude) == 16
    (line,) = verdict.economics.missing
    assert line.endswith("a node that can be used; all would be taken out")
    told = training_run(verdict.economics)
    assert "all would be taken out" in told
    assert "burn-in" not in told
