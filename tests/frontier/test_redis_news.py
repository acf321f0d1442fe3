"""What workers tell each other."""

from __future__ import annotations

import asyncio

import redis
import uvloop

from tests.frontier.conftest import done, pages
from tests.frontier.redis_worker import opened


async def _subscribed(client: redis.Redis, job: str, count: int) -> None:
    async with asyncio.timeout(20):
        while dict(client.pubsub_numsub(f"{job}:news"))[f"{job}:news"] < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class TestNews:
    async def test_an_idle_worker_hears_of_work_and_of_the_end(self, job: str, client: redis.Redis) -> None:
        heard = asyncio.Event()
        async with opened(job) as idle, opened(job) as busy:
            await _subscribed(client, job, 2)
            idle.listen(heard.set, lambda line: None)
            assert not (await idle.lease(1)).leases
            await busy.add(pages("a", 1))
            await asyncio.wait_for(heard.wait(), 10)
            heard.clear()
            leases = (await busy.lease(1)).leases
            assert not (await idle.lease(1)).leases
            heard.clear()
            await busy.commit(done(*leases))
            await asyncio.wait_for(heard.wait(), 10)
            assert (await idle.lease(1)).finished

    async def test_a_worker_that_gets_nothing_asks_less_and_less_often(self, job: str) -> None:
        async with opened(job, per_host=1) as busy, opened(job, per_host=1) as idle:
            await busy.add(pages("a", 50))
            await busy.lease(1)
            waits = [(await idle.lease(1)).wake_in for _ in range(8)]
            assert all(wait is not None for wait in waits)
            assert waits[-1] >= 0.9  # type: ignore[operator]

    async def test_one_that_got_less_than_it_wanted_is_not_woken_by_every_bit_of_news(self, job: str) -> None:
        told: list[int] = []
        async with opened(job) as frontier:
            frontier.listen(lambda: told.append(1), lambda line: None)
            await frontier.add(pages("a", 2))
            assert len((await frontier.lease(5)).leases) == 2
            frontier._news._heard(b"work")
            frontier._news._heard(b"work")
            assert not told
            await asyncio.sleep(0.15)
            assert told == [1]


def test_news_that_come_when_a_timer_is_about_to_ring_are_heard() -> None:
    """The loop of a crawl has timers that do not tell when they ring."""

    async def hear() -> int:
        rounds = 0
        told: list[int] = []
        async with opened("news-under-uvloop") as frontier:
            frontier.listen(lambda: told.append(1), lambda line: None)
            for _ in range(3):
                told.clear()
                frontier._news._not_before = asyncio.get_running_loop().time() + 0.0003
                frontier._news._heard(b"work")
                frontier._news._heard(b"work")
                await asyncio.sleep(0.02)
                rounds += bool(told)
        return rounds

    assert uvloop.run(hear()) == 3
