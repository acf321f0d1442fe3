"""Seeds into the frontier, a batch at a time, while the crawl runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable

from silkline.engine.refusals import keep_refused_seeds
from silkline.events import Seeded
from silkline.outcome import NONE_REFUSED
from silkline.protocols import Frontier, Hook
from silkline.request import Request
from silkline.router import Router
from silkline.seeds import SeedSource


class Seeder:
    """Reads the source to its end. While `active`, an empty frontier does not mean a finished job."""

    def __init__(self, source: SeedSource, frontier: Frontier, router: Router) -> None:
        self.active = True
        self._source = source
        self._frontier = frontier
        self._router = router

    async def run(self, hook: Hook, wake_leaser: Callable[[], None]) -> None:
        """Raises UnknownLabelError, and what the source raises for a file it cannot read (ConfigError)."""
        added, duplicate, refused = 0, 0, NONE_REFUSED
        async for batch in read_ahead(self._source):
            self._router.check(batch)
            result = await self._frontier.add(batch)
            added += result.added
            duplicate += result.duplicate
            refused += result.refused
            wake_leaser()
        if added or duplicate or refused.count:
            await keep_refused_seeds(self._frontier, refused)
        hook(Seeded(added, duplicate, self._source.invalid, self._source.reasons, refused))
        self.active = False
        wake_leaser()


async def read_ahead(source: Iterable[list[Request]]) -> AsyncGenerator[list[Request], None]:
    """Read the source in a thread, since a pipe may keep its reader waiting while the crawl goes on.

    A daemon thread of its own, because one that waits for input can be neither stopped nor joined. Where
    nobody reads on, it closes the source's iterator as soon as that gives something, and ends.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[list[Request] | Exception | None] = asyncio.Queue(maxsize=2)
    wanted = True

    def put(entry: list[Request] | Exception | None) -> None:
        if wanted and not loop.is_closed():
            asyncio.run_coroutine_threadsafe(queue.put(entry), loop).result()

    def read() -> None:
        batches = iter(source)
        try:
            for batch in batches:
                put(batch)
                if not wanted:
                    break
        except Exception as error:
            put(error)
        else:
            put(None)
        finally:
            if isinstance(batches, Generator):
                batches.close()

    threading.Thread(target=read, name="seeds", daemon=True).start()
    try:
        while (got := await queue.get()) is not None:
            if isinstance(got, Exception):
                raise got
            yield got
    finally:
        wanted = False
        while not queue.empty():
            queue.get_nowait()  # lets the thread out of its `put`
