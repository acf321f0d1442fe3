"""The line of leases that may be visited now."""

from __future__ import annotations

import asyncio

from silkline.engine.ready import Ready
from silkline.outcome import Lease
from silkline.request import Request


def lease(number: int) -> Lease:
    return Lease(Request(f"http://a/{number}"), number, number, "http://a:80")


async def test_leases_are_taken_in_the_order_in_which_they_came_by_whoever_waits() -> None:
    ready = Ready()
    ready.put(lease(0))
    taking = [asyncio.create_task(ready.get()) for _ in range(4)]
    await asyncio.sleep(0)
    for number in (1, 2, 3):
        ready.put(lease(number))
    assert [taken.token for taken in await asyncio.gather(*taking)] == [0, 1, 2, 3]
    assert not ready


async def test_a_lease_is_not_left_behind_when_the_one_that_it_woke_is_cancelled() -> None:
    ready = Ready()
    first, second = asyncio.create_task(ready.get()), asyncio.create_task(ready.get())
    await asyncio.sleep(0)
    ready.put(lease(1))
    first.cancel()
    async with asyncio.timeout(5):
        assert (await second).token == 1
    await asyncio.wait([first])
    assert first.cancelled()


async def test_who_was_woken_too_late_waits_for_the_next_lease() -> None:
    ready = Ready()
    waiting = asyncio.create_task(ready.get())
    await asyncio.sleep(0)
    ready.put(lease(1))
    assert ready.popleft().token == 1
    await asyncio.sleep(0)
    ready.put(lease(2))
    async with asyncio.timeout(5):
        assert (await waiting).token == 2
