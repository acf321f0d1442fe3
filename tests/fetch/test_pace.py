"""How fast a body comes in."""

from __future__ import annotations

import pytest

from silkline.errors import FetchTimeout
from silkline.fetch.options import FetchOptions
from silkline.fetch.pace import Pace

OPTIONS = FetchOptions(read_timeout=10, min_speed=100, min_speed_window=30)


def test_a_pause_may_be_as_long_as_the_read_limit_and_no_longer() -> None:
    pace = Pace(0)
    pace.check(5_000, 1, OPTIONS)
    pace.check(5_000, 11, OPTIONS)
    with pytest.raises(FetchTimeout) as caught:
        pace.check(5_000, 11.1, OPTIONS)
    assert caught.value.phase == "read"


def test_each_window_is_judged_by_itself() -> None:
    pace = Pace(0)
    size = 0
    for second in range(1, 31):
        size += 200
        pace.check(size, second, OPTIONS)
    for second in range(31, 60):
        size += 50
        pace.check(size, second, OPTIONS)
    with pytest.raises(FetchTimeout) as caught:
        pace.check(size + 50, 60, OPTIONS)
    assert caught.value.phase == "speed"


def test_a_burst_makes_up_for_a_pause_in_the_same_window() -> None:
    pace = Pace(0)
    for second in range(1, 300):
        pace.check(3_000 * (1 + second // 9), second, OPTIONS)


def test_no_minimum_lets_a_body_drip() -> None:
    pace = Pace(0)
    options = FetchOptions(read_timeout=10, min_speed=0, min_speed_window=30)
    for second in range(1, 300):
        pace.check(second, second, options)
