"""A producer that waits while its frontier has enough to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from silkline.protocols import Frontier

RESUME_AT = 0.8
"""Once over the limit, a producer goes on when the queue is down to this part of it: no stop and go."""
FRESH = 1.0
"""Seconds that a count is believed: other producers and new links add, too."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two looks at a frontier that is full; each pause is half as long again as the last."""


class Backpressure:
    """Keeps waiting + delayed + inbox at `limit` or below, as far as one producer can.

    say: is told in one line when the producer has to wait for the first time.
    """

    def __init__(
        self, frontier: Frontier, limit: int, say: Callable[[str], None], *, fresh: float = FRESH
    ) -> None:
        self._frontier = frontier
        self._limit = limit
        self._say = say
        self._fresh = fresh
        self._room = 0
        self._counted_at = -1e9
        self._said = False

    async def room(self, stopping: asyncio.Event) -> int:
        """How many requests may be added now: 1 or more, once there is room; 0 if `stopping` is set first."""
        if self._room < 1 or time.monotonic() - self._counted_at > self._fresh:
            queued = await self._count()
            if queued >= self._limit:
                await self._until(int(self._limit * RESUME_AT), queued, stopping)
        return 0 if stopping.is_set() else self._room

    def took(self, number: int) -> None:
        """So many were added."""
        self._room -= number

    async def _until(self, low: int, queued: int, stopping: asyncio.Event) -> None:
        if not self._said:
            self._said = True
            self._say(
                f"{queued:,} requests are queued and --max-waiting is {self._limit:,}: "
                f"waiting until there are {low:,}"
            )
        pause = FIRST_PAUSE
        while queued > low and not stopping.is_set():
            try:
                async with asyncio.timeout(pause):
                    await stopping.wait()
            except TimeoutError:
                pause = min(pause * 1.5, LONGEST_PAUSE)
                queued = await self._count()

    async def _count(self) -> int:
        stats = await self._frontier.stats()
        queued = stats.waiting + stats.delayed + stats.inbox
        self._room, self._counted_at = self._limit - queued, time.monotonic()
        return queued
