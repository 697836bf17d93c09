"""The four figures and the mark of the verdict: what is compared, what is assumed, and what is no interval."""

import msgspec
import pytest
from generated_runs import write_run
from test_page_safety import Outline

from hwlottery.evidence import Run, read_run
from hwlottery.reports.findings import rows
from hwlottery.reports.first_screen import Figure, figures
from hwlottery.reports.measured import Measured
from hwlottery.reports.page import render
from hwlottery.scoring import score_run
from hwlottery.scoring.verdict import Finding, FindingCost, Interval, Verdict


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict]:
    """Four nodes of GPUs with a price."""
    run = read_run(write_run(tmp_path_factory.mktemp("first") / "run", nodes=4, accelerators=2, price=2.0))
    return run, score_run(run)


def shown(judged: tuple[Run, Verdict], **economics: Interval) -> tuple[Figure, ...]:
    run, verdict = judged
    changed = msgspec.structs.replace(verdict.economics, **economics)
    return figures(run, Measured(run), msgspec.structs.replace(verdict, economics=changed))


def interval(low: float, value: float, high: float, unit: str) -> Interval:
    return Interval(value=value, low=low, high=high, unit=unit, basis="burn-in")


def test_utilisation_has_its_interval_and_what_it_compares_with(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    reference = Finding(
        check="burn_in.mfu", category="burn_in", subject="n00/gpu0", result="pass", required=False,
        metric="burn_in.mfu", layer="reference", threshold=0.39, unit="share", observed=0.384,
    )  # fmt: skip
    money = msgspec.structs.replace(verdict.economics, mfu=interval(0.379, 0.384, 0.388, "share"))
    both = msgspec.structs.replace(verdict, economics=money, findings=(reference,))
    mfu = figures(run, Measured(run), both)[0]
    assert (mfu.value, mfu.interval) == ("38.4 %", "37.9 to 38.8 %")
    assert mfu.note.startswith("ref 39 %")
    assert mfu.bar is not None
    assert mfu.bar.mark == pytest.approx(39.0)


def test_utilisation_without_a_reference_is_held_against_what_products_alone_reach(
    judged: tuple[Run, Verdict],
) -> None:
    run, verdict = judged
    products = tuple(each for each in verdict.findings if each.metric == "matmul.mfu")
    mfu = figures(run, Measured(run), msgspec.structs.replace(verdict, findings=products))[0]
    assert mfu.title == "Model FLOPs utilisation"
    assert mfu.note.startswith("ceiling 7")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("mfu", interval(0.38401, 0.384, 0.38402, "share")),
        ("goodput", interval(0.95, 0.95, 0.95, "share")),
        ("usd_per_pflop_day", interval(1_209_999.0, 1_210_000.0, 1_210_001.0, "USD")),
    ],
)
def test_an_interval_whose_ends_read_the_same_is_none(judged: tuple[Run, Verdict], name: str, same: Interval) -> None:
    place = ("mfu", "goodput", "usd_per_pflop_day").index(name)
    assert shown(judged, **{name: same})[place].interval == ""


def test_goodput_that_rests_on_assumed_failures_is_said_to_be_assumed(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    few = msgspec.structs.replace(verdict.reliability, rate_high=40.0, node_days=0.02, projected_rate=0.004)
    short = msgspec.structs.replace(verdict, reliability=few)
    goodput = figures(run, Measured(run), short)[1]
    assert goodput.qualifier == "assumed"
    assert goodput.note == (
        "projected with 4 failures per 1,000 node-days assumed; 0.0200 node-days observed are too few to tell"
    )
    assert "value secondary" in render(run, short)


def test_goodput_whose_failures_are_bounded_says_by_what(judged: tuple[Run, Verdict]) -> None:
    run, verdict = judged
    many = msgspec.structs.replace(verdict.reliability, rate_high=0.02)
    goodput = figures(run, Measured(run), msgspec.structs.replace(verdict, reliability=many))[1]
    assert goodput.qualifier == ""
    assert goodput.note == "failures at most 0.0200 /node-day"


def test_a_projection_below_one_never_reads_all_of_the_time(judged: tuple[Run, Verdict]) -> None:
    assert shown(judged, goodput=interval(0.99, 0.99997, 1.0, "share"))[1].value == "over 99.9 %"


@pytest.mark.parametrize("word", ["GO", "CONDITIONAL"])
def test_a_verdict_that_is_not_signable_has_an_open_mark_and_the_words_beside_it(
    judged: tuple[Run, Verdict], word: str
) -> None:
    run, verdict = judged
    for signable in (True, False):
        page = render(run, msgspec.structs.replace(verdict, verdict=word, signable=signable, caveats=()))
        (section,) = [e for e in Outline(page).all("section") if e.get("aria-labelledby") == "verdict-word"]
        assert section["class"] == f"verdict {word}" + ("" if signable else " unsigned")
        words = "signable" if signable else "not signable"
        assert f"{word} {words} {verdict.sentence}" in Outline(page).text


def costing(judged: tuple[Run, Verdict], *amounts: tuple[str, float]) -> Verdict:
    costs = tuple(
        FindingCost(subject=name, usd=Interval(value=usd, low=None, high=None, unit="USD", basis="taken out"))
        for name, usd in amounts
    )
    total = sum(usd for _, usd in amounts)
    money = msgspec.structs.replace(judged[1].economics, findings=costs, findings_usd_per_month=total)
    return msgspec.structs.replace(judged[1], economics=money)


def test_the_first_screen_has_the_total_of_what_findings_cost_and_the_dearest_two(judged: tuple[Run, Verdict]) -> None:
    verdict = costing(judged, ("n17", 19_000.0), ("n41", 12_000.0), ("n02", 900.0))
    cost = figures(judged[0], Measured(judged[0]), verdict)[3]
    assert (cost.title, cost.value) == ("What the findings cost", "$ 31,900 a month")
    assert cost.note.startswith("n17 $ 19,000 · n41 $ 12,000 · 1 more · ")


def test_a_finding_carries_what_it_costs_with_its_derivation(judged: tuple[Run, Verdict]) -> None:
    fails = Finding(
        check="health.ecc", category="health", subject="n01/gpu1", result="fail", required=True, excludes="n01"
    )
    verdict = msgspec.structs.replace(costing(judged, ("n01", 2920.0)), findings=(fails,), exclude=("n01",))
    (row,), _ = rows(Measured(judged[0]), verdict)
    assert row.cost == "$ 2,920"
    assert ("Costs", "$ 2,920 a month: taken out.") in row.detail
    page = Outline(render(judged[0], verdict)).text
    assert "Cost a month" in page


def test_without_a_price_findings_are_counted(judged: tuple[Run, Verdict]) -> None:
    money = msgspec.structs.replace(judged[1].economics, findings=(), findings_usd_per_month=None)
    cost = figures(judged[0], Measured(judged[0]), msgspec.structs.replace(judged[1], economics=money))[3]
    assert cost.title == "Findings"
