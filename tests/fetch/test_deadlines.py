"""Time limits of many fetches on one timer."""

from __future__ import annotations

import asyncio
import time

import pytest

from silkline.errors import FetchTimeout
from silkline.fetch.deadlines import Deadlines


async def limited(deadlines: Deadlines, *, read: bool = False, work: float = 30.0) -> float:
    """One fetch that takes `work` seconds, as the fetcher does it. Returns or raises after that long."""
    deadline = deadlines.start()
    try:
        if read:
            deadlines.waiting()
        await asyncio.sleep(work)
    except BaseException as error:
        deadlines.stop(deadline, error)
        raise
    deadlines.stop(deadline, None)
    return work


async def test_what_ends_in_time_is_left_alone() -> None:
    deadlines = Deadlines(total=30, read=30)
    assert await asyncio.gather(*(limited(deadlines, work=0.001 * n) for n in range(50)))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize(("read", "phase"), [(False, "total"), (True, "read")])
async def test_what_is_overdue_ends_with_its_phase(read: bool, phase: str) -> None:
    started = time.monotonic()
    with pytest.raises(FetchTimeout) as caught:
        await limited(Deadlines(total=0.3 if phase == "total" else 30, read=0.3), read=read)
    assert caught.value.phase == phase
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert 0.25 < time.monotonic() - started < 10


async def test_each_fetch_has_its_own_limit_whatever_their_order() -> None:
    deadlines = Deadlines(total=1.5, read=0.3)
    slow = asyncio.create_task(limited(deadlines))
    stalled = asyncio.create_task(limited(deadlines, read=True))
    fine = asyncio.create_task(limited(deadlines, work=0.4))
    results = await asyncio.gather(slow, stalled, fine, return_exceptions=True)
    assert [getattr(result, "phase", result) for result in results] == ["total", "read", 0.4]


async def test_data_that_keeps_coming_holds_off_the_read_limit() -> None:
    deadlines = Deadlines(total=30, read=1.0)
    deadline = deadlines.start()
    for _ in range(6):
        deadlines.waiting()
        await asyncio.sleep(0.25)
    deadlines.stop(deadline, None)
    assert not deadline.expired


async def test_connecting_is_not_reading() -> None:
    deadlines = Deadlines(total=30, read=0.2)
    deadline = deadlines.start()
    deadlines.waiting()
    deadlines.connecting()
    await asyncio.sleep(0.4)
    deadlines.stop(deadline, None)
    assert not deadline.expired


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    task = asyncio.create_task(limited(Deadlines(total=30, read=30)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_at_the_same_time_is_not_eaten() -> None:
    deadlines = Deadlines(total=0, read=30)

    async def cancelled_twice() -> None:
        deadline = deadlines.start()
        task = asyncio.current_task()
        assert task is not None
        deadlines._expire()
        task.cancel()
        try:
            await asyncio.sleep(30)
        except BaseException as error:
            deadlines.stop(deadline, error)
            raise

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancelled_twice())


async def test_an_error_that_swallowed_the_cancellation_is_still_a_timeout() -> None:
    deadlines = Deadlines(total=0.05, read=30)
    deadline = deadlines.start()
    failure = None
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        failure = OSError("the socket was closed under me")
    with pytest.raises(FetchTimeout):
        deadlines.stop(deadline, failure)
    await asyncio.sleep(0)


async def test_the_timer_sleeps_when_nothing_runs() -> None:
    deadlines = Deadlines(total=0.05, read=30)
    await limited(deadlines, work=0)
    await asyncio.sleep(0.2)
    assert deadlines._timer is None
    deadlines.close()
