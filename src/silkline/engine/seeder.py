"""Seeds into the frontier, a batch at a time, while the crawl runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from silkline.events import Seeded
from silkline.protocols import Frontier, Hook
from silkline.request import Request
from silkline.router import Router


class SeedSource(Protocol):
    """Batches of requests; `invalid` and `reasons` are right once it is read to the end."""

    @property
    def invalid(self) -> int: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[list[Request]]: ...


class Seeder:
    """Reads the source to its end. While `active`, an empty frontier does not mean a finished job."""

    def __init__(self, source: SeedSource, frontier: Frontier, router: Router) -> None:
        self.active = True
        self._source = source
        self._frontier = frontier
        self._router = router

    async def run(self, hook: Hook, wake_leaser: Callable[[], None]) -> None:
        """Raises UnknownLabelError, and what the source raises for a file it cannot read (ConfigError)."""
        added = duplicate = 0
        batches = iter(self._source)
        # In a thread: a pipe may make us wait, and the crawl goes on meanwhile.
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            self._router.check(batch)
            result = await self._frontier.add(batch)
            added += result.added
            duplicate += result.duplicate
            wake_leaser()
        hook(Seeded(added, duplicate, self._source.invalid, self._source.reasons))
        self.active = False
        wake_leaser()
