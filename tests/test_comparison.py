"""Runs side by side: what may be compared, what is told apart, what is forgiven nobody."""

import math

import msgspec
import pytest
from compared_clusters import Cluster, compared_run, whole_cluster
from generated_runs import as_run, make_run
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.evidence import Event, Fact, Measurement, NotMeasured, Problem, Run
from hwlottery.references import run_spreads
from hwlottery.reports.comparison_words import headline
from hwlottery.scoring.comparison import compare
from hwlottery.scoring.comparison_figures import Figure, chosen, spread_figure
from hwlottery.scoring.comparison_intervals import apart, between_runs, not_told_apart
from hwlottery.scoring.comparison_model import Comparison, MetricCompared, comparison_json
from hwlottery.scoring.comparison_sides import ComparisonError


def cluster(seed: int, nodes: int = 3, devices: int = 2) -> Cluster:
    return Cluster(seed=seed, nodes=nodes, devices=devices)


@pytest.fixture(scope="module")
def alike() -> Run:
    return compared_run(cluster(1))


@pytest.fixture(scope="module")
def other() -> Run:
    return compared_run(cluster(2))


@pytest.fixture(scope="module")
def slower() -> Run:
    return compared_run(cluster(3), slower={"training": 0.8}, price=2.0)


def figure_of(found: Comparison, key: str) -> MetricCompared:
    return next(one for one in found.metrics if one.key == key)


def contrast(one: MetricCompared, first: str, second: str):
    return next(each for each in one.contrasts if (each.first, each.second) == (first, second))


def difference(found: Comparison, aspect: str):
    return next(one for one in found.differences if one.aspect == aspect)


def with_facts(run: Run, facts: dict[str, object]) -> Run:
    changed = [msgspec.structs.replace(f, value=facts[f.key]) if f.key in facts else f for f in run.facts]
    return msgspec.structs.replace(run, facts=changed)


def with_header(run: Run, **parts: object) -> Run:
    return msgspec.structs.replace(run, header=msgspec.structs.replace(run.header, **parts))


# --- statistics ------------------------------------------------------------------------------------------------------


def test_the_variance_from_run_to_run_is_the_default_where_there_is_no_history():
    found = between_runs(0.01, 12, [])
    assert (found.spread, found.degrees, found.repeats) == (0.01, 12, 0)


def test_history_moderates_the_default_by_its_degrees_of_freedom():
    found = between_runs(0.01, 12, [[0.0, 0.06], [1.0]])  # one degree of freedom, variance 0.0018
    assert found.spread == pytest.approx(math.sqrt((12 * 0.0001 + 0.0018) / 13))
    assert (found.degrees, found.repeats) == (13, 1)


def test_an_interval_is_students_t_on_the_log_scale():
    from scipy.stats import t

    sure = [Figure(value=value, error=0.0, degrees=math.inf, subjects=1) for value in (110.0, 100.0)]
    found = apart(*sure, between_runs(0.01, 12, []), 4)
    reach = t.ppf(1 - 0.02 / 4 / 2, 12) * math.sqrt(2) * 0.01
    assert found.low == pytest.approx(1.1 * math.exp(-reach), rel=1e-6)
    assert found.high == pytest.approx(1.1 * math.exp(reach), rel=1e-6)


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite():
    from scipy.stats import ttest_ind_from_stats

    one, two = (Figure(value=v, error=e, degrees=d, subjects=1) for v, e, d in ((1.2, 0.02, 4.0), (1.0, 0.03, 7.0)))
    welch = ttest_ind_from_stats(
        math.log(1.2), 0.02 * math.sqrt(5), 5, 0.0, 0.03 * math.sqrt(8), 8, equal_var=False
    )  # fmt: skip
    # At the confidence that Welch's test just reaches, the interval just reaches 1.
    found = apart(one, two, between_runs(1e-12, 12, []), 0.02 / float(welch.pvalue))
    assert found.low == pytest.approx(1, abs=1e-6)


@given(
    st.floats(1, 1000), st.floats(1, 1000), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(0.001, 0.1),
    st.integers(1, 500),
)  # fmt: skip
def test_a_comparison_reads_the_same_from_both_sides_and_more_of_them_are_less_sure(a, b, e, f, spread, count):
    between = between_runs(spread, 12, [])
    one, two = (Figure(value=v, error=err, degrees=5.0, subjects=6) for v, err in ((a, e), (b, f)))
    forth, back = apart(one, two, between, count), apart(two, one, between, count)
    assert forth.told_apart == back.told_apart
    assert forth.low == pytest.approx(1 / back.high)
    assert forth.low < forth.ratio < forth.high
    assert apart(one, two, between, count + 1).high > forth.high


def test_the_error_of_a_figure_is_that_of_a_median_over_nodes():
    found = spread_figure({"n0": [98.0, 100.0], "n1": [101.0, 103.0], "n2": [104.0, 106.0], "n3": [100.0, 102.0]})
    assert found.value == 101.5
    logs = [math.log(value) for value in (99.0, 102.0, 105.0, 101.0)]
    mean = sum(logs) / 4
    deviation = math.sqrt(sum((log - mean) ** 2 for log in logs) / 3)
    assert found.error == pytest.approx(1.2533 * deviation / 2)
    assert (found.degrees, found.subjects) == (3, 8)


def test_stretches_of_runs_that_cannot_be_told_apart_may_share_a_run():
    assert not_told_apart([2, 0, 1], [(2, 1)]) == [(2, 0), (0, 1)]
    assert not_told_apart([0, 1, 2], []) == [(0, 1, 2)]
    assert not_told_apart([0, 1], [(0, 1)]) == []


def test_figures_are_compared_with_the_settings_that_most_runs_share_then_the_largest():
    one = Figure(value=1.0, error=0.0, degrees=1.0, subjects=1)
    small, large = (("bytes", 1024),), (("bytes", 2048),)
    assert chosen([{small: one, large: one}, {small: one}]) == small
    assert chosen([{small: one, large: one}]) == large
    assert chosen([]) is None


def test_every_figure_that_is_compared_has_a_stated_variance_from_run_to_run():
    from hwlottery.scoring.comparison_figures import COMPARED

    spreads = run_spreads()
    for what in COMPARED:
        found = spreads.of(what.metric, what.each)
        assert 0 < found.spread < 0.1
        assert found.source in spreads.sources


# --- what may be compared --------------------------------------------------------------------------------------------


def test_two_runs_of_one_cluster_cannot_be_told_apart(alike):
    found = compare([alike, compared_run(cluster(1), run=1)])
    assert found.comparable
    assert not any(each.told_apart for one in found.metrics for each in one.contrasts)
    assert found.ranking.places[0].tied == (found.ranking.places[1].letter,)


def test_a_slower_cluster_is_told_apart_and_costs_more_where_it_is_no_cheaper(alike, other):
    slow = compared_run(cluster(3), slower={"training": 0.8, "products": 0.97})
    found = compare([alike, other, slow])
    training = figure_of(found, "training")
    assert {(c.first, c.second) for c in training.contrasts if c.told_apart} == {("A", "C"), ("B", "C")}
    assert [set(group) for group in training.alike] == [{"A", "B"}]
    assert [place.letter for place in found.ranking.places][-1] == "C"
    assert found.ranking.by == "money"
    assert any("Training speed" in reason and "below" in reason for reason in found.ranking.places[-1].reasons)


def test_a_lower_price_makes_up_for_less_speed(alike, slower):
    found = compare([alike, slower])
    money = figure_of(found, "money")
    assert money.better == "lower"
    # 0.8 of the speed at 2.0 instead of 2.5 USD costs the same.
    assert money.contrasts[0].ratio == pytest.approx(1, abs=0.03)
    assert not money.contrasts[0].told_apart
    assert figure_of(found, "useful").contrasts[0].better == "A"


def test_without_every_price_useful_throughput_ranks(alike, slower):
    found = compare([with_header(alike, price_per_gpu_hour=None), slower])
    assert found.ranking.by == "useful"
    standing = figure_of(found, "money").standings[0]
    assert standing.value is None
    assert "--price" in standing.why_not


def test_useful_throughput_is_speed_times_goodput_times_usable_nodes():
    plain, excluded = (
        compared_run(cluster(1, nodes=4), faults=faults) for faults in ((), ["slow@n01/gpu1=0.78"])
    )  # fmt: skip
    found = compare([plain, with_header(excluded, run_id="again")])
    values = [each.value for each in figure_of(found, "useful").standings]
    assert found.runs[1].excluded == ("n01",)
    assert values[1] / values[0] == pytest.approx(0.75, abs=0.02)


def test_another_accelerator_may_be_compared_by_training_and_money_alone(alike, other):
    found = compare(
        [alike, with_facts(other, {"accelerator.name": "NVIDIA H200", "accelerator.memory": 150_754_820_096})]
    )
    compared = {one.key for one in found.metrics if one.compared}
    # The product whose reference is unknown here still trains; matrix products of two products are not compared.
    assert {"training", "save", "load"} <= compared
    assert not compared & {"products", "memory", "host_link", "node_reduce", "pair_reduce", "cluster_reduce"}
    assert difference(found, "accelerator").effect == "forbids"


def test_a_power_limit_is_named_as_what_may_explain_a_difference(alike):
    capped = compared_run(cluster(4), slower={"training": 0.85, "products": 0.85})
    found = compare([alike, with_facts(capped, {"accelerator.power_limit": 500.0})])
    assert difference(found, "power limit").effect == "may explain"
    contrast = figure_of(found, "training").contrasts[0]
    assert contrast.told_apart
    assert contrast.may_explain == ("power limit",)


def test_another_version_of_a_method_forbids_its_figures_alone(alike, other):
    plans = [msgspec.structs.replace(p, method="2") if p.probe == "matmul" else p for p in other.plans]
    found = compare([alike, msgspec.structs.replace(other, plans=plans)])
    assert difference(found, "method of matmul").effect == "forbids"
    assert not figure_of(found, "products").compared
    assert figure_of(found, "training").compared


def test_other_sizes_forbid_a_figure_and_are_named(alike, other):
    changed = [
        msgspec.structs.replace(m, params={**m.params, "m": 4096}) if m.metric == "matmul.tflops" else m
        for m in other.measurements
    ]
    plans = [
        msgspec.structs.replace(p, fills=tuple(
            msgspec.structs.replace(f, params={**f.params, "m": 4096}) if f.metric == "matmul.tflops" else f
            for f in p.fills)) for p in other.plans
    ]  # fmt: skip
    found = compare([alike, msgspec.structs.replace(other, measurements=changed, plans=plans)])
    assert not figure_of(found, "products").compared
    told = difference(found, "settings of matrix products under load")
    assert (told.effect, told.metrics) == ("forbids", ("Matrix products under load",))


def test_runs_that_may_not_be_compared_stand_in_groups_of_their_own(alike, other, slower):
    """Two of one accelerator and two of another, whose figures lie between each other."""
    another = {"accelerator.name": "NVIDIA H200", "accelerator.memory": 150_754_820_096}
    between = [compared_run(cluster(seed), slower={"products": 0.98}) for seed in (7, 8)]
    found = compare([with_facts(between[0], another), alike, with_facts(between[1], another), other])
    products = figure_of(found, "products")
    assert [set(group) for group in products.comparable] == [{"A", "C"}, {"B", "D"}]
    assert [set(group) for group in products.alike] == [{"A", "C"}, {"B", "D"}]
    shares = {each.letter: each.share for each in products.standings}
    assert [shares[group[0]] for group in products.comparable] == [1.0, 1.0]
    assert all(share <= 1 for share in shares.values())
    assert [set(group) for group in figure_of(found, "training").comparable] == [{"A", "B", "C", "D"}]


@pytest.mark.parametrize("device_of", ["simulated", "cpu"])
def test_nothing_is_comparable_with_a_simulation_or_with_cpus(alike, device_of):
    if device_of == "simulated":
        odd = with_header(compared_run(cluster(2)), simulated=True)
    else:
        odd = compared_run(cluster(2), device="cpu", policy="smoke")
    found = compare([alike, odd])
    assert not found.comparable
    assert found.differences[0].effect == "forbids"
    assert found.runs[1].marks, "the run is marked"
    assert not found.ranking.places


def test_runs_on_cpus_are_compared_with_each_other_and_marked():
    runs = [compared_run(cluster(seed, nodes=1), device="cpu", policy="smoke") for seed in (1, 2)]
    found = compare(runs)
    training = figure_of(found, "training")
    assert training.compared
    assert training.spread == 0.4, "shared machines vary by far more than accelerators do"
    assert all(any("CPUs" in mark for mark in run.marks) for run in found.runs)


def test_a_run_whose_records_are_not_whole_is_not_compared(alike, other):
    torn = msgspec.structs.replace(other, problems=[Problem(kind="torn", place="measurements.jsonl", detail="x")])
    found = compare([alike, torn])
    assert not found.comparable
    assert any("not whole" in mark for mark in found.runs[1].marks)


def test_a_figure_with_a_missing_accelerator_is_no_figure(alike):
    header, records = make_run(nodes=3, accelerators=2, seed=5, faults=["missing@n01/gpu1"])
    found = compare([alike, as_run(msgspec.structs.replace(header, run_id="gap"), records)])
    standing = figure_of(found, "memory").standings[1]
    assert standing.value is None
    assert standing.why_not == "1 accelerator of 6 without a value"


def test_a_no_go_run_stands_last_whatever_it_costs_with_all_that_it_delivered(alike, other):
    cheap = compared_run(cluster(6), price=0.5, slower={"products": 0.85})
    found = compare([cheap, alike, other])
    assert found.runs[0].verdict == "NO_GO"
    last = found.ranking.places[-1]
    assert last.letter == "A"
    assert last.reasons[0].startswith("NO-GO")
    assert figure_of(found, "products").standings[0].subjects == 6


def test_what_can_be_signed_stands_before_what_was_not_decided_and_that_before_no_go():
    signed = compared_run(cluster(1, 4), price=2.5)
    undecided = compared_run(cluster(2, 4), price=0.6, faults=["nan@n01/gpu1"])
    unfit = compared_run(cluster(6, 4), price=0.5, slower={"products": 0.85})
    found = compare([unfit, undecided, signed])
    assert [run.verdict for run in found.runs] == ["NO_GO", "INCONCLUSIVE", "GO"]
    assert [place.letter for place in found.ranking.places] == ["C", "B", "A"]
    assert found.ranking.places[1].reasons[0].startswith("INCONCLUSIVE")
    told = headline(found)
    assert "B is INCONCLUSIVE and stands behind: there is nothing to sign" in told
    assert "A is NO-GO and stands behind: not to be used as delivered" in told
    assert "none can be signed" not in told
    assert "none can be signed" in headline(compare([unfit, undecided]))


def test_a_node_that_never_joined_takes_no_access_tier_from_the_others():
    runs = [compared_run(cluster(1, 4), faults=["never_joined@n02"]), compared_run(cluster(2, 4), tier="vm")]
    assert difference(compare(runs), "access tier").values == ("container-root", "vm")


# --- history ---------------------------------------------------------------------------------------------------------


def test_repeated_runs_of_a_cluster_widen_the_variance_they_show(alike, other):
    wild = cluster(1)
    wild.wilder = 6.0
    repeated = [compared_run(wild, run=run) for run in range(2, 7)]
    without, with_history = compare([alike, other]), compare([alike, other], repeated)
    assert with_history.history == 5
    before, after = (figure_of(found, "training") for found in (without, with_history))
    assert after.spread > 1.5 * before.spread
    assert "moderated by 5 repeated runs" in after.basis
    assert after.contrasts[0].high > before.contrasts[0].high


def test_another_price_of_an_earlier_run_is_no_noise():
    """The same cluster was run at 1.50 USD before: what differs by a third in speed still differs in money."""
    first, again = (compared_run(cluster(1, 8, 8), run=run, price=price) for run, price in ((0, 2.5), (1, 1.5)))
    slow = compared_run(cluster(2, 8, 8), price=2.5, slower=whole_cluster(0.75))
    without = figure_of(compare([first, slow]), "money")
    for found in (compare([first, slow], [again]), compare([first, slow, again])):
        for key in ("money", "useful", "training"):
            assert contrast(figure_of(found, key), "A", "B").told_apart, key
        money = figure_of(found, "money")
        assert money.standings[0].value == pytest.approx(without.standings[0].value)
        assert money.spread == figure_of(found, "training").spread < 0.02
        assert money.standings[0].high < money.standings[1].low, "the intervals in the chart, too"


def test_one_cluster_at_three_prices_is_known_as_well_as_its_speed():
    found = compare([compared_run(cluster(1), run=run, price=price) for run, price in enumerate((0.5, 0.6, 2.5))])
    money, training = (figure_of(found, key) for key in ("money", "training"))
    for dear, fast in zip(money.standings, training.standings, strict=True):
        assert dear.high / dear.low < (fast.high / fast.low) ** 1.5, "beside its speed goodput is not known"
    assert contrast(money, "A", "C").told_apart


def test_nodes_that_were_out_in_an_earlier_run_are_no_noise():
    whole = compared_run(cluster(1, 16, 2))
    fewer = compared_run(cluster(1, 16, 2), run=1, faults=["lost@n03"])
    other = compared_run(cluster(2, 16, 2))
    found = compare([whole, other], [fewer])
    useful, training = (figure_of(found, key) for key in ("useful", "training"))
    assert useful.spread == training.spread
    assert useful.standings[0].high / useful.standings[0].low < 1.1


def test_a_cluster_that_became_slower_stands_apart_from_itself_in_the_chart_too():
    found = compare([compared_run(cluster(1)), compared_run(cluster(1), run=1, slower={"training": 0.85})])
    fast, slow = figure_of(found, "training").standings
    assert slow.high < fast.low


def test_a_cluster_that_became_slower_cannot_excuse_itself_by_its_own_difference(alike):
    found = compare([alike, compared_run(cluster(1), run=1, slower={"training": 0.85})])
    assert figure_of(found, "training").contrasts[0].told_apart


def test_history_that_cannot_be_judged_is_left_out_and_named(alike, other):
    policy = msgspec.structs.replace(other.header.policy, text="checks: 7")
    odd = with_header(compared_run(cluster(1), run=3), policy=policy)
    found = compare([alike, other], [odd])
    assert found.history == 0
    assert found.notes[0].startswith("Left out of the history: run: ")


def test_history_of_a_run_that_is_compared_counts_once(alike, other):
    assert compare([alike, other], [alike]).history == 0


# --- the whole -------------------------------------------------------------------------------------------------------


def test_two_to_ten_runs_each_once(alike, other):
    with pytest.raises(ComparisonError, match="two to 10"):
        compare([alike])
    with pytest.raises(ComparisonError, match="same run"):
        compare([alike, other, msgspec.structs.replace(alike)])
    with pytest.raises(ComparisonError, match="over 10 runs"):
        compare([with_header(alike, run_id=str(place)) for place in range(11)])


def test_the_same_runs_give_the_same_bytes_and_the_order_of_records_does_not_matter(alike, other):
    turned = msgspec.structs.replace(other, measurements=other.measurements[::-1], facts=other.facts[::-1])
    assert comparison_json(compare([alike, other])) == comparison_json(compare([alike, other]))
    there, back = (compare([alike, each]).metrics for each in (other, turned))
    assert [one.standings for one in there] == [one.standings for one in back]


def test_the_order_in_which_runs_are_given_changes_letters_alone(alike, other, slower):
    there, back = compare([alike, other, slower]), compare([slower, other, alike])
    turned = {"A": "C", "B": "B", "C": "A"}
    for one, two in zip(there.metrics, back.metrics, strict=True):
        told = {frozenset((c.first, c.second)) for c in one.contrasts if c.told_apart}
        assert told == {frozenset((turned[c.first], turned[c.second])) for c in two.contrasts if c.told_apart}


def test_a_run_of_nothing_but_gaps_has_no_figure_and_breaks_nothing(alike):
    header, records = make_run(nodes=1, accelerators=1, seed=9)
    gaps = [
        NotMeasured(metric=r.metric, subject=r.subject, params=r.params, reason="died", trial=r.trial)
        if isinstance(r, Measurement) else r
        for r in records
    ]  # fmt: skip
    found = compare([alike, as_run(msgspec.structs.replace(header, run_id="gaps"), gaps)])
    assert not found.comparable
    bare = [r for r in records if isinstance(r, Event | Fact)]
    assert not compare([alike, as_run(msgspec.structs.replace(header, run_id="bare"), bare)]).comparable
