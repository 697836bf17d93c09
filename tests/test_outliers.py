"""Who is measured again: an outlier by the rule that blames, until it was seen twice or seen to come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.outliers import MOST_ATTEMPTS, Threshold, controls, group_of, is_outlier, suspects

RULE = Threshold(effect=0.05, sigmas=5.0)
HEALTHY = {"a": [100.0], "b": [100.2], "c": [99.9], "d": [100.1]}


def test_the_slow_one_is_suspected_once_and_settled_when_it_is_slow_again() -> None:
    assert suspects(HEALTHY, "higher", RULE) == []
    assert suspects(HEALTHY | {"e": [80.0]}, "higher", RULE) == ["e"]
    assert suspects(HEALTHY | {"e": [80.0, 81.0]}, "higher", RULE) == []
    assert suspects(HEALTHY | {"e": [80.0, 100.0]}, "higher", RULE) == []


def test_what_is_bad_for_the_first_time_in_a_retest_is_tried_once_more() -> None:
    assert suspects(HEALTHY | {"e": [100.0, 80.0]}, "higher", RULE) == ["e"]
    assert suspects(HEALTHY | {"e": [100.0, 80.0, 80.0]}, "higher", RULE) == []
    assert suspects(HEALTHY | {"e": [100.0, 100.0, 80.0]}, "higher", RULE) == []


def test_of_a_time_the_long_one_is_bad() -> None:
    assert suspects(HEALTHY | {"e": [80.0]}, "lower", RULE) == []
    assert suspects(HEALTHY | {"e": [120.0]}, "lower", RULE) == ["e"]
    assert suspects(HEALTHY | {"e": [120.0]}, "neither", RULE) == []


def test_one_without_peers_is_suspected_by_what_is_demanded_of_it_alone() -> None:
    alone = {"a": [50.0], "b": [100.0]}
    assert suspects(alone, "higher", RULE) == []
    assert suspects(alone, "higher", RULE, lambda name, value: value < 60) == ["a"]
    assert suspects({"a": [50.0, 51.0]}, "higher", RULE, lambda name, value: value < 60) == []


def test_controls_are_good_ones_near_the_middle() -> None:
    found = HEALTHY | {"e": [80.0], "f": [120.0]}
    assert controls(found, "higher", ["e"]) == ["a", "d"]
    assert controls({"e": [80.0]}, "higher", ["e"]) == []


values = st.floats(1.0, 1000.0)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.lists(values, min_size=1, max_size=5), max_size=12))
def test_asking_again_ends_and_never_asks_for_one_that_was_seen_twice(found: dict[str, list[float]]) -> None:
    again = suspects(found, "higher", RULE)
    group = group_of([attempts[-1] for attempts in found.values()])
    for name in again:
        assert len(found[name]) < MOST_ATTEMPTS
        assert sum(is_outlier(value, group, "higher", RULE) for value in found[name]) == 1
    assert not set(controls(found, "higher", again)) & set(again)


@pytest.mark.parametrize(("effect", "sigmas"), [(0.0, 5.0), (1.0, 5.0), (0.05, 0.0), (float("nan"), 5.0)])
def test_a_threshold_that_is_none_is_refused(effect: float, sigmas: float) -> None:
    with pytest.raises(ValueError, match="effect"):
        Threshold(effect=effect, sigmas=sigmas)
