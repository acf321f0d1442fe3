"""The monitor: tells the outside how the worker is doing, twice a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from silkline.engine.leases import Held
from silkline.observe.snapshot import Phase
from silkline.outcome import Stats
from silkline.protocols import Frontier

PERIOD = 0.5

Publish = Callable[[Phase, bool, int, int, Stats | None], None]
"""phase, seeding, in flight, ready, frontier stats."""


class Monitor:
    """Publishes the worker's state, with the frontier's sizes refreshed at most every second.

    Counting a huge frontier takes its time: the next count waits twenty times as long as the last one took.
    """

    def __init__(self, frontier: Frontier, held: Held, seeding: Callable[[], bool], publish: Publish) -> None:
        self.phase: Phase = "crawling"
        self._frontier = frontier
        self._held = held
        self._seeding = seeding
        self._publish = publish
        self._stats: Stats | None = None
        self._next_count = 0.0
        self._counted_at: object = None
        self._changed = True

    def changed(self) -> None:
        """The frontier has other sizes now, perhaps: without this an idle worker asks it nothing."""
        self._changed = True

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            due = time.monotonic() >= self._next_count
            await self.publish_now(fresh=due and (self._changed or self._busy() != self._counted_at))
            await asyncio.sleep(PERIOD)

    async def publish_now(self, *, fresh: bool = True) -> None:
        if fresh:
            self._changed, self._counted_at = False, self._busy()
            started = time.monotonic()
            self._stats = await self._frontier.stats()
            ended = time.monotonic()
            self._next_count = ended + max(1.0 - PERIOD / 2, 20 * (ended - started))
        phase = "paused" if self._held.paused and self.phase == "crawling" else self.phase
        self._publish(phase, self._seeding(), self._held.in_flight, self._held.unstarted, self._stats)

    def _busy(self) -> object:
        return self._held.in_flight, self._held.unstarted
