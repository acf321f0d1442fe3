from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from tests.fetch.cache.origin import Clock
from tests.servers import valkey_url

from silkline.fetch.cache.redis import RedisCache
from silkline.fetch.cache.sqlite import SqliteCache
from silkline.fetch.cache.store import CacheStore

OpenStore = Callable[..., Awaitable[CacheStore]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "redis"])
async def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[OpenStore]:
    """`await open_store()`: a store; the next one is another process's view of the same one."""
    stores: list[CacheStore] = []
    clients: list[Any] = []
    job = uuid.uuid4().hex

    async def start(limit: int = 100_000_000) -> CacheStore:
        if request.param == "sqlite":
            store: CacheStore = SqliteCache(tmp_path / "cache.db", limit, clock)
        else:
            clients.append(redis.asyncio.from_url(valkey_url()))
            store = RedisCache(clients[-1].execute_command, f"{job}:", limit, clock)
        stores.append(store)
        await store.open()
        return store

    yield start
    for store in stores:
        await store.close()
    for client in clients:
        await client.aclose()
