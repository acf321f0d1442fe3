"""A `Robots` over a memory frontier and a fetcher without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from silkline.config import FrontierOptions
from silkline.events import Trouble
from silkline.fetch.mock import MockFetcher
from silkline.fetch.retry_after import retry_after_seconds
from silkline.frontier import MemoryFrontier
from silkline.politeness.robots import Robots, RobotsOptions


class Guest:
    """A worker's robots, and what came of them."""

    def __init__(self, robots: Robots, frontier: MemoryFrontier, fetcher: MockFetcher) -> None:
        self.robots = robots
        self.frontier = frontier
        self.fetcher = fetcher
        self.spaced: list[tuple[str, float]] = []
        self.troubles: list[str] = []

    @property
    def asked(self) -> list[str]:
        """URLs, in order."""
        return [request.url for request in self.fetcher.requests]


Make = Callable[..., Any]


@pytest.fixture
def guest() -> Make:
    """`async with guest(pages, frontier=..., max_delay=...) as g`: options are those of RobotsOptions."""

    @asynccontextmanager
    async def make(
        pages: dict[str, Any], *, frontier: MemoryFrontier | None = None, **options: Any
    ) -> AsyncIterator[Guest]:
        frontier = frontier or MemoryFrontier(FrontierOptions())
        await frontier.open()
        fetcher = MockFetcher(pages)
        troubles: list[Any] = []
        robots = Robots(
            frontier,
            RobotsOptions(**options),
            tell=troubles.append,
            retry_after=lambda value: retry_after_seconds(value, 0.0),
        )
        made = Guest(robots, frontier, fetcher)
        robots.use(fetcher.fetch, lambda host, delay: made.spaced.append((host, delay)))
        yield made
        made.troubles += [event.message for event in troubles if isinstance(event, Trouble)]
        await robots.close()

    return make
