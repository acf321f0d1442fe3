"""Keeps the job's sessions, cookies above all, where a resumed run and the other workers find them."""

from __future__ import annotations

import asyncio
import time

from silkline.fetch.cookies.sessions import Sessions
from silkline.protocols import Frontier

PAUSE = 2.0
"""Seconds between two writes at least: a site that sets cookies with every page makes no write per page."""
REFRESH = 5.0
"""Seconds between two looks at what other workers stored."""


class Keeper:
    """Stores what changed: the first change after a pause at once, such as a login; later ones together.

    So a crash loses at most what changed in the last PAUSE seconds.
    """

    def __init__(self, frontier: Frontier, sessions: Sessions) -> None:
        self._frontier = frontier
        self._sessions = sessions
        self._changed = asyncio.Event()
        sessions.on_change = self._changed.set

    async def load(self) -> None:
        """Take over what the job has, from an earlier run and from other workers."""
        self._sessions.merge(await self._frontier.recall())

    async def flush(self) -> None:
        """Store what changed, on top of what others stored in the meantime."""
        if self._sessions.changed:
            await self.load()
            await self._frontier.remember(self._sessions.changes(time.time()))

    async def run(self) -> None:
        """For ever. Raises FrontierError."""
        while True:
            try:
                async with asyncio.timeout(REFRESH):
                    await self._changed.wait()
            except TimeoutError:
                await self.load()
            self._changed.clear()
            if self._sessions.changed:
                await self.flush()
                await asyncio.sleep(PAUSE)
