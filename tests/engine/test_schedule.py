from __future__ import annotations

import asyncio
import time
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.engine.schedule import Cron, Interval, repeat, schedule_from
from silkline.errors import ConfigError


def at(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(fold=fold).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1_800), ("2h", 7_200), ("1d", 86_400), ("500ms", 0.5), ("90", 90)]
)
def test_a_length_of_time_repeats_from_the_start_on(text: str, seconds: float) -> None:
    schedule = schedule_from(text)
    assert schedule.first(1_000_000) == 1_000_000
    assert schedule.after(1_000_000.1) == 1_000_000 + seconds


def test_a_cron_expression_means_local_times() -> None:
    schedule = schedule_from("30 */2 * * *")
    assert schedule.first(at("2030-01-31 03:00")) == at("2030-01-31 04:30")
    assert schedule.after(at("2030-01-31 04:30")) == at("2030-01-31 06:30")
    assert schedule.slot(at("2030-01-31 06:30")) == at("2030-01-31 06:30")


@pytest.mark.parametrize(
    "text", ["", "soon", "0", "-1", "5 apples", "61 * * * *", "0 0 30 2 *", "* * * *", "inf"]
)
def test_what_is_no_schedule_says_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError, match="--every: ") as caught:
        schedule_from(text)
    assert "\n" not in str(caught.value)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_hour_that_comes_twice_keeps_the_pace(berlin: None) -> None:
    moment, found = at("2030-10-27 01:50"), []
    for _ in range(8):
        moment = Cron("*/20 * * * *").after(moment)
        found.append(moment)
    assert [b - a for a, b in pairwise(found)] == [1_200] * 7


def test_a_daily_run_in_the_hour_that_comes_twice_is_due_once(berlin: None) -> None:
    moment, found = at("2030-10-26 12:00"), []
    for _ in range(2):
        moment = Cron("30 2 * * *").after(moment)
        found.append(moment)
    assert found == [at("2030-10-27 02:30"), at("2030-10-28 02:30")]
    assert Cron("30 2 * * *").after(at("2030-10-27 02:29", fold=1)) == at("2030-10-28 02:30")


def test_the_hour_that_is_left_out_stops_nothing(berlin: None) -> None:
    moment = at("2030-03-31 01:30")
    for _ in range(4):
        following = Cron("0 * * * *").after(moment)
        assert 0 < following - moment <= 3_600
        moment = following


@given(st.floats(0.001, 1e6), st.floats(0, 4e9), st.lists(st.floats(0, 1e5), min_size=1, max_size=20))
def test_each_run_of_an_interval_has_a_time_and_a_slot_of_its_own(
    seconds: float, start: float, lengths: list[float]
) -> None:
    schedule = Interval(seconds)
    due = schedule.first(start)
    slot = schedule.slot(due)
    for length in lengths:
        following = schedule.after(due + length)
        assert following > due
        assert following > due + length - 1e-6, "what fell due while it ran is left out"
        assert following < due + length + 2 * seconds
        due, before, slot = following, slot, schedule.slot(following)
        assert slot > before


def test_a_producer_that_is_started_again_in_the_same_slot_goes_on_with_its_visit() -> None:
    first, second = Interval(1_800), Interval(1_800)
    noon = at("2030-01-31 12:00")
    assert first.slot(first.first(noon + 60)) == second.slot(second.first(noon + 1_700))
    assert first.slot(first.after(noon + 1_700)) != first.slot(noon + 60)


class Hours:
    """A clock that a run moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_runs_follow_each_other_and_what_falls_due_meanwhile_is_left_out() -> None:
    clock, runs, stopping = Hours(), [], asyncio.Event()
    busy = 0

    async def run(slot: float) -> None:
        nonlocal busy
        busy += 1
        assert busy == 1
        runs.append(slot)
        clock.now += 25
        await asyncio.sleep(0)
        busy -= 1
        if len(runs) == 3:
            stopping.set()

    def waiting(due: float) -> None:
        clock.now = due

    await repeat(Interval(10), run, stopping, waiting=waiting, clock=clock)
    assert runs == [0, 30, 60]


async def test_a_stop_ends_the_wait_for_the_next_run() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, stopping.set)

    async def run(slot: float) -> None:
        pytest.fail("it is not due")

    async with asyncio.timeout(30):
        await repeat(Cron("0 0 1 1 *"), run, stopping, waiting=lambda due: None)
