"""The way to Redis. What it makes of servers that go away is in test_redis.py."""

from __future__ import annotations

import asyncio

import pytest

from silkline.frontier.redis_link import RedisLink
from tests import servers


@pytest.mark.parametrize("loops", [1, 3])
async def test_a_cancellation_is_heeded_whatever_the_client_is_doing(loops: int) -> None:
    link = RedisLink(servers.valkey_url())
    await link.open()
    over = False

    async def ask_for_ever() -> None:
        while not over:
            await link.command("PING")

    for number in range(200):
        asking = [asyncio.create_task(ask_for_ever()) for _ in range(loops)]
        for _ in range(number % 10):
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        await asyncio.wait(asking, timeout=1)
        heeded = all(task.cancelled() for task in asking)
        over = not heeded  # or the test would not end
        assert heeded
    await link.close()
