"""What a rental comes to: closed forms, figures worked by hand, and laws that hold for all inputs."""

import math

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from hwlottery.scoring.goodput import SECONDS_A_DAY
from hwlottery.scoring.projection import (
    HOURS_A_MONTH,
    Outlook,
    Situation,
    hot_spare_pays_from_s,
    outlook,
    spares_needed,
)

LLAMA = Situation(
    nodes=128, accelerators=1024, paid_accelerators=1024, save_s=120, recovery_s=900, wait_s=0,
    failures_per_node_day=4e-3, tflops=400, mfu=0.4, usd_per_gpu_hour=2.5, run_flops=1e24,
)  # fmt: skip


def changed(**fields: float | None) -> Outlook:
    return outlook(msgspec.structs.replace(LLAMA, **fields))


def test_a_run_takes_its_flops_over_the_useful_flops_a_second() -> None:
    found = outlook(LLAMA)
    assert found.goodput == pytest.approx(0.958, abs=0.001)
    useful = 400e12 * 1024 * found.goodput
    assert found.run_s == pytest.approx(1e24 / useful)
    assert found.run_usd == pytest.approx(1e24 / useful / 3600 * 1024 * 2.5)
    assert found.usd_per_pflop_day == pytest.approx(2.5 * 24 / (0.4 * found.goodput))
    assert found.effective == pytest.approx(0.4 * found.goodput)


def test_what_is_paid_for_and_stands_still_makes_the_rest_dearer() -> None:
    whole, part = outlook(LLAMA), changed(accelerators=1008, nodes=126)
    assert part.effective == pytest.approx(0.4 * part.goodput * 1008 / 1024)
    assert (part.usd_per_pflop_day or 0) > (whole.usd_per_pflop_day or 0)


def test_spares_that_stand_ready_are_paid_for() -> None:
    whole, spared = outlook(LLAMA), changed(spare_nodes=16)
    assert spared.goodput == whole.goodput
    assert spared.effective == pytest.approx((whole.effective or 0) * 128 / 144)
    assert spared.usd_per_pflop_day == pytest.approx((whole.usd_per_pflop_day or 0) * 144 / 128)
    assert spared.run_usd == pytest.approx((whole.run_usd or 0) * 144 / 128)


def test_a_hot_spare_costs_what_the_wait_from_which_it_pays_costs() -> None:
    hot = msgspec.structs.replace(LLAMA, spare_nodes=4)
    wait = hot_spare_pays_from_s(hot, LLAMA)
    assert wait == pytest.approx(86_400 / (128 * 4e-3) * math.log(132 / 128))
    waits = outlook(msgspec.structs.replace(LLAMA, wait_s=wait))
    assert waits.usd_per_pflop_day == pytest.approx(outlook(hot).usd_per_pflop_day)
    free = msgspec.structs.replace(hot, usd_per_gpu_hour=None)
    assert hot_spare_pays_from_s(free, msgspec.structs.replace(LLAMA, usd_per_gpu_hour=None)) == pytest.approx(wait)


def test_other_costs_and_the_hours_before_training_are_spread_over_what_trains() -> None:
    plain, all_in = outlook(LLAMA), changed(usd_per_month=1024 * 2.5 * HOURS_A_MONTH)
    assert all_in.usd_per_pflop_day == pytest.approx(2 * (plain.usd_per_pflop_day or 0))
    setup = changed(setup_hours=73.0, rental_hours=730.0)
    assert setup.usd_per_pflop_day == pytest.approx((plain.usd_per_pflop_day or 0) / 0.9)
    assert setup.run_usd == pytest.approx((plain.run_usd or 0) + 73 * 1024 * 2.5)
    assert setup.run_s == plain.run_s


def test_waiting_for_a_node_stops_the_job_for_as_long_as_any_node_is_away() -> None:
    at_once, day_late = changed(recovery_s=0), changed(recovery_s=0, wait_s=86_400)
    none_away = poisson.pmf(0, 128 * 4e-3)  # of 128 nodes, each away a day after a failure
    assert day_late.goodput == pytest.approx(at_once.goodput * none_away)


def test_without_a_price_money_is_missing_and_time_is_not() -> None:
    found = changed(usd_per_gpu_hour=None)
    assert (found.usd_per_pflop_day, found.run_usd) == (None, None)
    assert found.run_s == outlook(LLAMA).run_s


def test_what_never_gets_done_has_neither_time_nor_price() -> None:
    stuck = changed(failures_per_node_day=1e6)
    assert stuck == Outlook(
        goodput=0.0, interval_s=stuck.interval_s, effective=0.0, usd_per_pflop_day=None, run_s=None, run_usd=None
    )
    assert changed(failures_per_node_day=0.0).goodput == 1.0
    assert changed(failures_per_node_day=0.0).interval_s is None
    assert changed(tflops=None).run_s is None


SITUATIONS = st.builds(
    Situation,
    nodes=st.integers(1, 2048),
    accelerators=st.floats(1, 16_384),
    paid_accelerators=st.just(20_000.0),
    save_s=st.floats(0.1, 1e4),
    recovery_s=st.floats(0, 1e4),
    wait_s=st.floats(0, 1e6),
    failures_per_node_day=st.floats(0, 1),
    tflops=st.floats(0.01, 1e4),
    mfu=st.floats(0.01, 1),
    straggler_loss=st.floats(0, 0.9),
    usd_per_gpu_hour=st.floats(0.01, 100),
    usd_per_month=st.floats(0, 1e7),
    run_flops=st.floats(1e15, 1e27),
)
WORSE = {
    "save_s": 1.5, "recovery_s": 1.5, "wait_s": 1.5, "failures_per_node_day": 1.5, "straggler_loss": 1.1,
    "tflops": 0.7, "usd_per_gpu_hour": 1.5, "usd_per_month": 1.5, "paid_accelerators": 1.5,
}  # fmt: skip


@settings(deadline=None)
@given(SITUATIONS, st.sampled_from(sorted(WORSE)))
def test_whatever_gets_worse_nothing_gets_cheaper_and_no_goodput_is_gained(at: Situation, name: str) -> None:
    worse = msgspec.structs.replace(at, **{name: getattr(at, name) * WORSE[name]})
    before, after = outlook(at), outlook(worse)
    assume(at.mtbf_s > at.save_s / 2)  # Daly's interval is the best only where a save can succeed at all
    assert after.goodput <= before.goodput * (1 + 1e-3)
    for cheaper, dearer in [
        (before.usd_per_pflop_day, after.usd_per_pflop_day),
        (before.run_s, after.run_s),
        (before.run_usd, after.run_usd),
    ]:
        assert dearer is None or (cheaper is not None and dearer >= cheaper * (1 - 1e-3))


@given(SITUATIONS)
def test_no_figure_is_ever_nan_or_infinite(at: Situation) -> None:
    found = msgspec.structs.asdict(outlook(at))
    assert all(value is None or math.isfinite(value) for value in found.values())
    assert 0 <= found["goodput"] <= 1


def test_spare_nodes_by_hand() -> None:
    assert spares_needed(64, 0.0, 24) == 0
    assert spares_needed(1, 4e-3, 24) == 0  # away 0.4 % of the time
    away = 4e-3 / (1 + 4e-3)
    assert binom.cdf(0, 64, away) < 0.95 <= binom.cdf(1, 65, away)
    assert spares_needed(64, 4e-3, 24) == 1
    assert spares_needed(2048, 4e-3, 24) == 13


@settings(deadline=None)
@given(st.integers(1, 2048), st.floats(0, 0.5), st.floats(0, 200))
def test_the_spares_are_the_fewest_that_are_enough(nodes: int, rate: float, hours: float) -> None:
    spares, share = spares_needed(nodes, rate, hours), rate * hours / 24 / (1 + rate * hours / 24)
    assert binom.cdf(spares, nodes + spares, share) >= 0.95
    assert spares == 0 or binom.cdf(spares - 1, nodes + spares - 1, share) < 0.95
    assert spares_needed(nodes, rate * 1.5, hours) >= spares


def test_a_day_has_its_seconds() -> None:
    assert changed(run_flops=400e12 * 1024 * outlook(LLAMA).goodput * SECONDS_A_DAY).run_s == pytest.approx(86_400)
