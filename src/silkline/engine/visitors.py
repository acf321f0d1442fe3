"""The visitors: as many visits at once as the settings say, and one more for each that is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from silkline.engine.commit import Committer
from silkline.engine.leases import Held
from silkline.engine.visit import Tools, visit

SLOW = 1.0
"""Seconds after which a running visit no longer counts against the concurrency."""

PERIOD = 0.25


class Visitors:
    """Tasks that take ready leases and visit them.

    A host that hangs would hold its slots for the whole timeout and take them from the others. So a visit
    that runs for more than a second gets a stand-in, at most as many as there are visitors. The host
    itself gets no more requests for it: its cap is kept by the frontier.
    """

    def __init__(
        self,
        tools: Tools,
        held: Held,
        committer: Committer,
        wake_leaser: Callable[[], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._tools = tools
        self._held = held
        self._committer = committer
        self._wake_leaser = wake_leaser
        self._tasks = tasks
        self._working: set[asyncio.Task[None]] = set()
        self._wanted = held.concurrency
        self._ending = False
        self._hire()

    async def relieve(self) -> None:
        """Watch for slow visits, for ever."""
        while True:
            await asyncio.sleep(PERIOD)
            slow = self._held.slow(monotonic() - SLOW)
            self._wanted = self._held.concurrency + min(slow, self._held.concurrency)
            self._hire()

    async def end(self) -> None:
        """Cancel what still runs."""
        self._ending = True
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _hire(self) -> None:
        for number in range(len(self._working), 0 if self._ending else self._wanted):
            task = self._tasks.create_task(self._work(), name=f"visitor-{number}")
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _work(self) -> None:
        held, committer = self._held, self._committer
        while len(self._working) <= self._wanted:
            if held.ready.empty():
                committer.starving()
            lease = await held.ready.get()
            if not held.holds(lease):
                continue
            held.began(lease)
            if held.wanted:
                self._wake_leaser()
            try:
                visited = await visit(lease, self._tools)
            finally:
                held.ended(lease)
            committer.put(visited)
