"""The cache in Redis: its keys are the job's, its sizes add up, and it is where the frontier is."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import redis
import redis.asyncio
from tests.fetch.cache.origin import Origin, answer_of
from tests.fetch.cache.test_store import META, OWNER, key
from tests.servers import valkey_url

from silkline.config import Settings
from silkline.engine.fetching import opened_cache
from silkline.errors import FrontierError
from silkline.fetch.cache.redis import RedisCache
from silkline.fetch.middleware import compose
from silkline.frontier.redis_lookup import remove
from silkline.request import Request


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4().hex}:"


@pytest.fixture
def server() -> Iterator[Any]:
    with redis.from_url(valkey_url()) as client:
        yield client


@pytest.fixture
async def store(prefix: str) -> AsyncIterator[RedisCache]:
    client = redis.asyncio.from_url(valkey_url())
    yield RedisCache(client.execute_command, prefix, 50_000)
    await client.aclose()


def names(server: Any, prefix: str) -> set[str]:
    return {name.decode().removeprefix(prefix) for name in server.scan_iter(f"{prefix}*")}


async def test_all_keys_are_the_jobs_so_that_a_purge_removes_them_and_a_fresh_start_does_not(
    store: RedisCache, prefix: str, server: Any
) -> None:
    await store.put(key(1), META, b"x")
    found = names(server, prefix)
    assert found == {
        "cache:used",
        "cache:sizes",
        "cache:total",
        f"cache:o:{key(1).url.hex()}",
        f"cache:r:{key(1).url.hex()}:{OWNER.hex()}",
    }
    assert remove(valkey_url(), prefix[:-1], keep_cache=True) == 0
    assert names(server, prefix) == found
    assert remove(valkey_url(), prefix[:-1]) == len(found)
    assert names(server, prefix) == set()


async def test_the_sizes_add_up_whatever_happens(store: RedisCache, prefix: str, server: Any) -> None:
    chance = random.Random(1)
    for _ in range(400):
        place = key(
            chance.randrange(20), OWNER[:-1] + bytes([chance.randrange(3)]), b"%d" % chance.randrange(4)
        )
        match chance.randrange(6):
            case 0:
                await store.invalidate(place.url)
            case 1:
                for stored in await store.find(place.url, place.owner):
                    await store.forget(stored)
            case 2:
                for stored in await store.find(place.url, place.owner):
                    await store.refresh(stored, META)
            case _:
                await store.put(place, META, chance.randbytes(chance.randrange(4_000)))
    measured = sum(
        len(value)
        for name in server.scan_iter(f"{prefix}cache:r:*")
        for value in server.hgetall(name).values()
    )
    assert 0 < measured <= 50_000
    assert int(server.get(f"{prefix}cache:total")) == measured
    assert sum(map(int, server.hvals(f"{prefix}cache:sizes"))) == measured


async def test_a_crawl_with_its_frontier_in_redis_has_its_cache_there(prefix: str, server: Any) -> None:
    settings = Settings(job=prefix[:-1], frontier=valkey_url(), cache="on")
    origin = Origin(
        lambda request: answer_of(request, 200, [("Cache-Control", "max-age=60")], b"from the origin")
    )
    for round_ in range(2):
        async with AsyncExitStack() as opened:
            fetch = compose([await opened_cache(settings, opened)], origin)
            response = await fetch(Request("https://shop.example/"))
            assert (response.body, response.from_cache) == (b"from the origin", bool(round_))
    assert len(origin.requests) == 1
    assert "cache:total" in names(server, prefix)


async def test_a_server_that_does_not_answer_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silkline.frontier.redis_link.FIRST_PATIENCE", 0.2)
    settings = Settings(frontier="redis://127.0.0.1:1/0", cache="on")
    with pytest.raises(FrontierError, match=r"no Redis answers at redis://127\.0\.0\.1:1"):
        async with AsyncExitStack() as opened:
            await opened_cache(settings, opened)
