"""A crawl in this process and its operator beside it, who has a frontier object of his own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from silkline import Crawler
from silkline.config import FrontierOptions
from silkline.frontier import frontier_from
from silkline.observe.report import Report
from silkline.observe.snapshot import Snapshot
from silkline.protocols import Frontier

PATIENCE = 20.0


class Crawl:
    """A running crawl. `last` is its newest snapshot."""

    def __init__(self, crawler: Crawler, frontier: Frontier, job: str) -> None:
        self.frontier = frontier
        self.job = job
        self.last: Snapshot | None = None
        self._crawler = crawler
        self._task: asyncio.Task[Report] | None = None

    def start(self, *seeds: Any) -> None:
        self._task = asyncio.create_task(self._crawler.run_async(*seeds, watch=self._saw))

    async def report(self) -> Report:
        assert self._task is not None
        return await asyncio.wait_for(self._task, PATIENCE)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for it, as long as the crawl runs."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                assert self._task is not None
                assert not self._task.done() or condition(), f"the crawl ended: {what}: {self._task}"
                await asyncio.sleep(0.01)

    async def until_phase(self, phase: str) -> None:
        await self.until(lambda: self.last is not None and self.last.phase == phase, phase)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _saw(self, snapshot: Snapshot) -> None:
        self.last = snapshot


@asynccontextmanager
async def operated(url: str, **settings: Any) -> AsyncIterator[Crawl]:
    """`settings` are the crawler's; its handler follows every link."""
    options = {name: settings[name] for name in ("per_host", "delay", "lease_seconds") if name in settings}
    job = f"job-{secrets.token_hex(4)}"
    # An endless site of tests is what a trap is.
    crawler = Crawler(job, frontier=url, quiet=True, traps=False, **settings)
    crawler.handler(lambda page: page.follow("a"))
    frontier = frontier_from(url, FrontierOptions(job=job, **options))
    await frontier.open()
    crawl = Crawl(crawler, frontier, job)
    try:
        yield crawl
    finally:
        await crawl.stop()
        await frontier.close()
