"""Retry-After in every form of RFC 9110, and in none."""

from __future__ import annotations

import email.utils
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.fetch.retry_after import retry_after_seconds

NOW = 784_111_777.0
"""Sun, 06 Nov 1994 08:49:37 GMT"""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("007", 7),
        ("+5", 5),
        ("-5", 0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("sun, 06 nov 1994 08:50:37 gmt", 60),
        ("Sun, 6 Nov 1994 08:50:37 GMT", 60),
        ("Sun, 06 Nov 1994 08:49:60 GMT", 22),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Mon, 01 Jan 0001 00:00:00 GMT", 0),
    ],
)
def test_seconds_and_dates(value: str, seconds: float) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "1.5",
        "1e3",
        "٣",
        "12 seconds",
        "Sun, 06 Nov 1994 25:00:00 GMT",
        "Sun, 31 Feb 1994 08:00:00 GMT",
        "Sun, 06 Foo 1994 08:00:00 GMT",
        "Sun, 06 Nov 1994 08:50:37",
        "Sun, 06 Nov 1994 08:50:37 PST",
        "1994-11-06",
        "Sun, 06 Nov 0000 08:00:00 GMT",
    ],
)
def test_nonsense_is_none(value: str) -> None:
    assert retry_after_seconds(value, NOW) is None


def test_two_digit_years_are_never_more_than_fifty_years_ahead() -> None:
    in_2025 = 1_750_000_000.0
    assert retry_after_seconds("Sunday, 06-Nov-94 08:49:37 GMT", in_2025) == 0
    assert retry_after_seconds("Sunday, 06-Nov-60 08:49:37 GMT", in_2025) == 2_866_956_577 - in_2025


@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_an_absurd_number_stays_a_finite_number(digits: int) -> None:
    seconds = retry_after_seconds("9" * digits, NOW)
    assert seconds is not None
    assert 1e15 < seconds < math.inf


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_a_date_is_exact_to_the_second(moment: int) -> None:
    assert retry_after_seconds(email.utils.formatdate(moment, usegmt=True), 0.0) == moment


@given(st.text(max_size=40))
def test_no_value_raises(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or seconds >= 0
