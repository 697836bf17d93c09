"""How numbers are written in every report."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.reports.numbers import figure, goodput_span, roughly, significant, span
from hwlottery.scoring import words


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.384, "share", "38.4 %"),
        (731.94, "TFLOPS", "732 TFLOPS"),
        (31_412.0, "USD", "31,400 USD"),
        (0.0123, "s", "12.3 ms"),
        (1152, "elements", "1,152 elements"),
        (1.0, "errors", "1 error"),
        (2.0**26, "bytes", "64 MiB"),
        (0.0234, "1/node-day", "0.0234 /node-day"),
        (None, "GB/s", "\N{EM DASH}"),
        (True, "", "yes"),
        (float("nan"), "GB/s", "not finite"),
        ("6.8.0", "", "6.8.0"),
    ],
)
def test_a_figure_reads_as_people_write_it(value: float | str | None, unit: str, shown: str) -> None:
    assert figure(value, unit) == shown


def test_an_interval_names_its_unit_once() -> None:
    assert span(0.379, 0.388, "share") == "37.9 to 38.8 %"
    assert span(None, 0.1, "1/node-day") == "at most 0.100 /node-day"


@given(st.floats(min_value=1e-3, max_value=1e9))
@settings(max_examples=200, deadline=None)
def test_a_number_has_at_most_three_significant_digits_and_is_near_the_value(value: float) -> None:
    shown = significant(value)
    digits = shown.replace(",", "").replace(".", "").strip("0")
    assert len(digits) <= 3
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.006)


@given(st.floats(min_value=0, max_value=1))
@settings(max_examples=100, deadline=None)
def test_a_difference_above_zero_is_never_shown_as_none(share: float) -> None:
    assert (roughly(share) == "0 %") == (share == 0)


def test_a_share_of_time_that_is_not_all_of_it_never_reads_as_all_of_it() -> None:
    assert goodput_span(0.9956, 0.99997) == "99.6 % to over 99.9 %"
    assert goodput_span(0.9, 1.0) == "90 % to 100 %"


@pytest.mark.parametrize(
    ("share", "told"),
    [(3.168, "317 %"), (12.34, "1,230 %"), (0.0321, "3.2 %"), (1.0, "100 %"), (0.9994, "99.9 %"), (-3.168, "-317 %")],
)
def test_a_percentage_has_at_most_three_digits(share: float, told: str) -> None:
    assert words.percent(share) == told


def test_what_is_no_count_has_at_most_three_digits() -> None:
    assert [words.three_digits(value) for value in (1234.5, 731.4, 0.01234, 4096)] == [
        "1,230",
        "731",
        "0.0123",
        "4,096",
    ]
