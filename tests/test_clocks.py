"""Clock offsets: by the quickest round trip, against the median, and never surer than the trip allows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.cluster.clocks import RoundTrip, ask, estimate, offsets

DELAYS = st.floats(min_value=1e-5, max_value=5)
SECONDS = st.floats(min_value=-1e5, max_value=1e5)


def trip(ahead, there, back, at=1e9):
    return RoundTrip(sent=at, there=at + there + ahead, back=at + there + back)


@given(SECONDS, st.lists(st.tuples(DELAYS, DELAYS), min_size=1, max_size=20))
def test_the_true_offset_lies_within_the_uncertainty_however_uneven_the_way(ahead, delays):
    found = estimate([trip(ahead, *delay) for delay in delays])
    assert abs(found.ahead - ahead) <= found.uncertainty + 1e-5
    assert found.uncertainty <= min(sum(delay) for delay in delays) / 2 + 1e-6


def test_the_quickest_round_trip_is_believed():
    found = estimate([trip(3.0, 0.9, 0.1), trip(3.0, 0.001, 0.001), trip(3.0, 0.0, 2.0)])
    assert found.ahead == pytest.approx(3.0, abs=1e-6)
    assert found.uncertainty == pytest.approx(0.001, abs=1e-6)


def test_a_clock_that_was_never_read_has_no_offset():
    with pytest.raises(ValueError, match=r"empty|iterable"):
        estimate([])


def test_a_clock_is_asked_several_times():
    count = itertools.count()
    ask(lambda: float(next(count)), times=5)
    assert next(count) == 5


@given(st.lists(st.floats(min_value=-0.01, max_value=0.01), min_size=2, max_size=12), SECONDS)
def test_one_wrong_clock_among_several_is_the_one_that_is_off(small, wrong):
    ahead = {f"n{index}": value for index, value in enumerate(small)}
    found = offsets({**ahead, "bad": wrong})
    assert all(abs(found[name]) <= 0.02 for name in ahead)
    assert found["bad"] == pytest.approx(wrong, abs=0.011)


def test_a_single_node_is_held_against_the_head():
    assert offsets({"n1": 120.0}) == {"n1": 120.0}


def test_a_head_with_a_wrong_clock_makes_no_node_look_wrong():
    found = offsets({"n1": 120.0, "n2": 120.001, "n3": 119.999})
    assert all(abs(seconds) < 0.01 for seconds in found.values())
