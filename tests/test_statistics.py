"""Failure rates and goodput: the figures that the literature and tables give, and laws that hold for all."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, bootstrap, chi2, gamma, poisson

from hwlottery.scoring.baselines import Against
from hwlottery.scoring.goodput import (
    daly_interval_s,
    goodput,
    goodput_by_meta,
    job_mtbf_s,
    longest_save_s,
)
from hwlottery.scoring.statistics import (
    PRIOR_RATE,
    bootstrap_median,
    bootstrap_ratio,
    chance_of_a_failure,
    chance_of_showing,
    error_of_median,
    lower_rate,
    median_interval,
    node_days_to_show,
    node_days_without_failure,
    projected_rate,
    upper_rate,
)

rates = st.floats(1e-5, 1.0)
days = st.floats(0.01, 1e6)


@pytest.mark.parametrize(
    ("failures", "at_80", "at_90", "at_95"),
    [(0, 1.609, 2.303, 2.996), (1, 2.994, 3.890, 4.744), (2, 4.279, 5.322, 6.296), (3, 5.515, 6.681, 7.754)],
)
def test_upper_bounds_are_those_of_the_published_table(failures: int, at_80: float, at_90: float, at_95: float) -> None:
    bounds = [upper_rate(failures, 1.0, confidence) for confidence in (0.80, 0.90, 0.95)]
    assert bounds == pytest.approx([at_80, at_90, at_95], abs=0.0006)


@given(st.integers(0, 200), days, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_bounds_are_those_of_chi_squared_and_keep_their_word(
    failures: int, node_days: float, confidence: float
) -> None:
    high, low = upper_rate(failures, node_days, confidence), lower_rate(failures, node_days, confidence)
    assert high == pytest.approx(chi2.ppf(confidence, 2 * failures + 2) / (2 * node_days))
    assert poisson.cdf(failures, high * node_days) == pytest.approx(1 - confidence)
    if failures:
        assert poisson.sf(failures - 1, low * node_days) == pytest.approx(1 - confidence)
    assert low <= failures / node_days <= high


def test_zero_failures_are_a_bound_and_never_an_infinite_time() -> None:
    assert upper_rate(0, 32) == pytest.approx(0.094, abs=0.0005)
    assert lower_rate(0, 32) == 0.0
    with pytest.raises(ValueError, match="node-days above 0"):
        upper_rate(0, 0.0)


def test_node_days_that_show_a_rate() -> None:
    assert round(node_days_without_failure(6.5e-3, 0.95)) == 461
    assert round(node_days_without_failure(6.5e-3, 0.80)) == 248
    assert round(node_days_without_failure(PRIOR_RATE)) == 749
    with pytest.raises(ValueError, match="above 0"):
        node_days_without_failure(0.0)


@given(st.integers(0, 50), st.floats(1e-4, 1.0))
def test_node_days_that_show_a_rate_are_those_whose_upper_bound_is_it(failures: int, rate: float) -> None:
    needed = node_days_to_show(rate, failures)
    assert upper_rate(failures, needed) == pytest.approx(rate)
    assert needed == pytest.approx(chi2.ppf(0.95, 2 * failures + 2) / 2 / rate)
    if failures == 0:
        assert needed == pytest.approx(node_days_without_failure(rate))


@settings(deadline=None)
@given(st.floats(0.05, 1.0), st.floats(0.01, 1.0), st.floats(1.0, 500.0))
def test_the_chance_of_showing_a_rate_is_that_of_few_enough_failures(rate: float, share: float, days: float) -> None:
    few_enough = chi2.ppf(0.95, 2 * np.arange(1000) + 2) / 2 / days <= rate * (1 + 1e-9)
    expected = poisson.cdf(few_enough.sum() - 1, rate * share * days)
    assert chance_of_showing(rate, rate * share, days) == pytest.approx(expected, abs=1e-9)


def test_who_is_as_good_as_promised_shows_it_by_luck_alone() -> None:
    days = node_days_to_show(0.005, 0)
    assert chance_of_showing(0.005, 0.005, days) == pytest.approx(0.05)
    assert chance_of_showing(0.005, 0.0025, days) == pytest.approx(0.05**0.5, abs=1e-6)
    assert chance_of_showing(0.005, 0.0, days) == 1.0
    assert chance_of_showing(0.005, 0.0, 0.9 * days) == 0.0


def test_the_chance_to_see_any_failure_in_a_burn_in() -> None:
    assert chance_of_a_failure(4e-3, 16 * 2) == pytest.approx(0.12, abs=0.005)
    assert chance_of_a_failure(4e-3, 64 * 2) == pytest.approx(0.40, abs=0.005)


@given(st.integers(0, 100), st.floats(0, 1e6))
def test_the_projection_is_the_gamma_posterior(failures: int, node_days: float) -> None:
    found = projected_rate(failures, node_days)
    posterior = gamma(0.5 + failures, scale=1 / (125 + node_days))
    assert found.point == pytest.approx(posterior.mean())
    assert (found.low, found.high) == pytest.approx((posterior.ppf(0.025), posterior.ppf(0.975)), rel=1e-6)


def test_with_no_data_the_projection_is_the_prior() -> None:
    assert projected_rate(0, 0.0).point == pytest.approx(4e-3)


@pytest.mark.parametrize(
    ("nodes", "save_s", "exact"), [(32, 30, 0.989), (128, 30, 0.976), (128, 120, 0.958), (2048, 120, 0.786)]
)
def test_goodput_figures(nodes: int, save_s: float, exact: float) -> None:
    mtbf = job_mtbf_s(nodes, 4e-3)
    share = goodput(save_s, mtbf, 900)
    assert share == pytest.approx(exact, abs=0.001)
    assert goodput_by_meta(save_s, mtbf, 900, daly_interval_s(save_s, mtbf)) == pytest.approx(share, abs=0.01)


def test_intervals_and_the_longest_save() -> None:
    mtbf = job_mtbf_s(32, 4e-3)
    assert daly_interval_s(30, mtbf) / 60 == pytest.approx(106, abs=0.5)
    assert job_mtbf_s(128, 4e-3) / 3600 == pytest.approx(46.9, abs=0.05)
    assert longest_save_s(0.02, job_mtbf_s(128, 4e-3)) == pytest.approx(34, abs=0.5)
    assert longest_save_s(0.05, job_mtbf_s(128, 4e-3)) == pytest.approx(211, abs=0.5)
    assert daly_interval_s(10, 4.0) == 4.0


@given(st.floats(0.1, 600), st.floats(3600, 1e7), st.floats(0, 3600))
def test_dalys_interval_is_close_to_the_best_there_is(save_s: float, mtbf: float, recovery: float) -> None:
    best = goodput(save_s, mtbf, recovery)
    tau = daly_interval_s(save_s, mtbf)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert goodput(save_s, mtbf, recovery, tau * factor) <= best + 1e-4
    assert 0 <= best < 1


@given(st.floats(0.1, 600), st.floats(1800, 1e7), st.floats(1.01, 10))
def test_goodput_falls_with_longer_saves_and_more_failures(save_s: float, mtbf: float, factor: float) -> None:
    share = goodput(save_s, mtbf, 900)
    assert goodput(save_s * factor, mtbf, 900) <= share + 1e-9
    assert goodput(save_s, mtbf / factor, 900) <= share + 1e-9


def test_what_never_fails_and_what_fails_all_the_time() -> None:
    assert goodput(30, math.inf, 900) == 1.0
    assert goodput(30, math.inf, 900, interval_s=270) == pytest.approx(0.9)
    assert goodput(1e6, 1.0, 1e6) == 0.0
    with pytest.raises(ValueError, match="take time"):
        goodput(0, 100, 1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_the_interval_of_a_median_is_the_narrowest_with_its_confidence(numbers: list[float]) -> None:
    found, ordered, count = median_interval(numbers), sorted(numbers), len(numbers)
    assert found.low <= (found.point or 0.0) <= found.high or count < 2
    cuts = [k for k in range(count // 2) if 2 * binom.cdf(k, count, 0.5) <= 0.05]
    cut = max(cuts, default=0)
    assert (found.low, found.high) == (ordered[cut], ordered[count - 1 - cut])


@given(st.lists(st.floats(1, 100), min_size=2, max_size=60), st.text(max_size=5))
def test_a_bootstrap_interval_is_the_same_each_time_and_holds_the_median(numbers: list[float], seed: str) -> None:
    found = bootstrap_median(numbers, seed)
    assert found == bootstrap_median(numbers, seed)
    assert min(numbers) <= found.low <= found.high <= max(numbers)
    assert found.point == pytest.approx(float(np.median(numbers)))
    assert bootstrap_ratio(numbers, [2.0, 2.0], seed).point == pytest.approx(float(np.median(numbers)) / 2)


def test_a_bootstrap_interval_is_that_of_scipy() -> None:
    numbers = np.random.default_rng(1).normal(100, 5, 80)
    ours = bootstrap_median(list(numbers), "run and metric")
    theirs = bootstrap((numbers,), np.median, n_resamples=9999, method="percentile", rng=np.random.default_rng(2))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.3)


def test_a_bootstrap_interval_of_a_ratio_keeps_its_word() -> None:
    """Over 300 pairs of 40 samples with a true ratio of 0.9, the interval holds it in about 95 of 100."""
    generator = np.random.default_rng(3)
    held = 0
    for trial in range(300):
        now, before = generator.normal(90, 3, 40), generator.normal(100, 3, 40)
        found = bootstrap_ratio(list(now), list(before), f"trial {trial}")
        held += found.low <= 0.9 <= found.high
    assert 0.92 <= held / 300 <= 0.995


def test_the_error_of_a_median_is_that_of_many_medians() -> None:
    generator = np.random.default_rng(4)
    medians = [np.median(generator.normal(100, 4, 50)) for _ in range(4000)]
    noise = 1.349 * 4 / 100
    assert error_of_median(noise, 50) == pytest.approx(np.std(medians) / 100, rel=0.05)


def test_what_a_comparison_hides_and_how_many_samples_would_show_it() -> None:
    told = Against(share=0.95, error=0.10, between=0.0, samples=10)
    assert told.margin == pytest.approx(0.196)
    assert told.hides(0.90)
    assert not told.hides(0.80)
    assert not msgspec.structs.replace(told, share=0.5).hides(0.90), "what is far beyond noise shows"
    assert told.samples_to_see(0.10) == 39
    assert not Against(share=0.95, error=0.10 * (10 / 39) ** 0.5, between=0.0, samples=39).hides(0.90)
    assert msgspec.structs.replace(told, between=0.06).samples_to_see(0.10) is None, "runs differ by more"


def test_a_ratio_is_to_numbers_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        bootstrap_ratio([1.0], [0.0], "x")
