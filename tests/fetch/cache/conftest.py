from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.fetch.cache.origin import Clock

from silkline.fetch.cache.sqlite import SqliteCache
from silkline.fetch.cache.store import CacheStore

OpenStore = Callable[..., Awaitable[CacheStore]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite"])
async def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[OpenStore]:
    """`await open_store()`: a store; the next one is another process's view of the same one."""
    stores: list[CacheStore] = []

    async def start(limit: int = 100_000_000) -> CacheStore:
        stores.append(SqliteCache(tmp_path / "cache.db", limit, clock))
        await stores[-1].open()
        return stores[-1]

    yield start
    for store in stores:
        await store.close()
