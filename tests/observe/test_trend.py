from __future__ import annotations

from typing import Any

import pytest

from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
from silkline.observe.trend import HISTORY, Trend
from silkline.outcome import Stats


def snapshot(
    second: float, pages: int, *, waiting: int = 0, dead: int = 0, links: int = 0, **more: Any
) -> Snapshot:
    tally = Tally(pages=pages, dead={"dns": dead}, links_added=links)
    stats = Stats(waiting=waiting, done=pages, dead=dead)
    return Snapshot(
        job="shop", started=0.0, at=second, tally=tally, phase="crawling", **({"stats": stats} | more)
    )


def steady(trend: Trend, seconds: int, per_second: int, **more: Any) -> Snapshot:
    for second in range(seconds + 1):
        last = snapshot(second, second * per_second, **more)
        trend.add(last)
    return last


def test_the_rate_forgets_what_is_long_ago() -> None:
    trend = Trend()
    steady(trend, 20, 100)
    assert trend.rate == pytest.approx(100)
    for second in range(21, 41):
        trend.add(snapshot(second, 2_000 + (second - 20) * 10))
    assert trend.rate == pytest.approx(10)


def test_the_rate_before_and_at_the_first_snapshot_is_zero() -> None:
    trend = Trend()
    assert trend.rate == 0
    trend.add(snapshot(0, 500))
    assert trend.rate == 0


def test_a_clock_that_stands_or_goes_back_does_no_harm() -> None:
    trend = Trend()
    for second in (5.0, 5.0, 3.0):
        trend.add(snapshot(second, 10))
    assert trend.rate == 0


def test_memory_is_bounded_however_long_the_crawl_is() -> None:
    trend = Trend()
    steady(trend, 500, 3)
    assert list(trend.history) == [3.0] * HISTORY
    assert len(trend._samples) < 20


def test_a_list_crawl_knows_its_end() -> None:
    trend = Trend()
    last = steady(trend, 10, 50, waiting=1_000)
    ahead = trend.ahead(last)
    assert ahead is not None
    assert ahead.certain
    assert (ahead.settled, ahead.known) == (500, 1_500)
    assert ahead.seconds == pytest.approx(20)


def test_dead_letters_bring_the_end_nearer_too() -> None:
    trend = Trend()
    for second in range(11):
        last = snapshot(second, second * 10, dead=second * 10, waiting=100)
        trend.add(last)
    ahead = trend.ahead(last)
    assert ahead is not None
    assert ahead.seconds == pytest.approx(5)


@pytest.mark.parametrize(
    "more",
    [{"links": 1}, {"seeding": True}],
    ids=["pages bring new links", "seeds are still being read"],
)
def test_an_open_end_has_no_time_left(more: dict[str, Any]) -> None:
    trend = Trend()
    ahead = trend.ahead(steady(trend, 10, 50, waiting=1_000, **more))
    assert ahead is not None
    assert not ahead.certain
    assert ahead.seconds is None


def test_nothing_is_told_without_the_sizes_of_the_frontier() -> None:
    trend = Trend()
    assert trend.ahead(steady(trend, 10, 50, stats=None)) is None


def test_the_first_seconds_tell_no_time_left() -> None:
    trend = Trend()
    ahead = trend.ahead(steady(trend, 2, 50, waiting=1_000))
    assert ahead is not None
    assert ahead.seconds is None


def test_a_crawl_that_stands_still_tells_no_time_left() -> None:
    trend = Trend()
    for second in range(30):
        last = snapshot(second, 100, waiting=5)
        trend.add(last)
    ahead = trend.ahead(last)
    assert ahead is not None
    assert ahead.seconds is None


@pytest.mark.parametrize(
    ("budget", "waiting", "links", "known"),
    [(1_000, 200, 9, 1_000), (1_000, 5_000, 9, 1_000), (1_000, 5_000, 0, 1_000), (1_000, 200, 0, 700)],
    ids=[
        "budget beyond what is known",
        "budget below it",
        "budget cuts a list",
        "list ends before the budget",
    ],
)
def test_a_page_budget_is_an_end(budget: int, waiting: int, links: int, known: int) -> None:
    trend = Trend(max_pages=budget)
    ahead = trend.ahead(steady(trend, 10, 50, waiting=waiting, links=links))
    assert ahead is not None
    assert (ahead.settled, ahead.known) == (500, known)
    assert ahead.seconds == pytest.approx((known - 500) / 50)


def test_a_resumed_job_counts_what_earlier_runs_did() -> None:
    trend = Trend()
    for second in range(11):
        last = snapshot(second, second * 10, stats=Stats(done=900 + second * 10, waiting=100 - second * 10))
        trend.add(last)
    ahead = trend.ahead(last)
    assert ahead is not None
    assert (ahead.settled, ahead.known, ahead.seconds) == (1_000, 1_000, 0.0)


def test_with_a_delay_the_time_left_is_told_from_several_of_them() -> None:
    """One host, a page every 20 s, 30 to go."""
    trend = Trend(delay=20.0)
    for second in range(0, 161):
        last = snapshot(second, 1 + second // 20, waiting=30)
        trend.add(last)
        ahead = trend.ahead(last)
        assert ahead is not None
        assert (ahead.seconds is None) == (second < 40)
    assert ahead.seconds == pytest.approx(600, rel=0.01)
    assert len(trend._samples) < 210


def test_a_delay_of_days_leaves_the_time_left_unknown() -> None:
    trend = Trend(delay=8_640_000.0)
    last = steady(trend, 60, 1, waiting=30)
    ahead = trend.ahead(last)
    assert ahead is not None
    assert ahead.seconds is None
    assert len(trend._samples) < 5
