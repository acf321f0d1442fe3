"""Keeps the job's sessions, cookies above all, where a resumed run and the other workers find them."""

from __future__ import annotations

import asyncio
import secrets
import time

from silkline.config import Settings
from silkline.fetch.cookies.sessions import Sessions
from silkline.frontier.open import on_server
from silkline.protocols import Frontier

PAUSE = 2.0
"""Seconds between two writes at least, beside those before commits: a site that sets cookies with every page
makes no write per page."""
REFRESH = 5.0
"""Seconds between two looks at what other workers stored."""
MARK = "sessions"
"""The kept value that is another one after every write."""
MARKED = 3_600.0
"""Seconds for which it is kept. Whoever looks later than that has looked every REFRESH seconds in between."""


async def keeper_for(settings: Settings, frontier: Frontier, sessions: Sessions) -> Keeper | None:
    """With what the job has already; None where no cookies are wanted."""
    if settings.cookies == "off":
        return None
    keeper = Keeper(frontier, sessions, shared=settings.processes > 1 or on_server(settings.frontier_url))
    await keeper.load()
    return keeper


class Keeper:
    """Stores what changed: the first change after a pause at once, such as a login; later ones together.

    So a crash loses at most what changed in the last PAUSE seconds.

    shared: there may be other workers. Then what the cookies of a page changed is stored before the commit
    that makes its links known, and looked for after each lease: whoever is handed a page behind a login has
    the login.
    """

    def __init__(self, frontier: Frontier, sessions: Sessions, *, shared: bool = False) -> None:
        self._frontier = frontier
        self._sessions = sessions
        self._shared = shared
        self._mark: bytes | None = None
        self._storing = asyncio.Lock()
        self._changed = asyncio.Event()
        sessions.on_change = self._changed.set

    async def load(self) -> None:
        """Take over what the job has, from an earlier run and from other workers."""
        self._sessions.merge(await self._frontier.recall())

    async def flush(self) -> None:
        """Store what changed, on top of what others stored in the meantime."""
        async with self._storing:
            if not self._sessions.changed:
                return
            await self.load()
            await self._frontier.remember(self._sessions.changes(time.time()))
            if self._shared:
                self._mark = secrets.token_bytes(8)
                await self._frontier.keep(MARK, self._mark, MARKED)

    async def share(self) -> None:
        """Before a commit."""
        if self._shared:
            await self.flush()  # or wait until one that has begun is through

    async def look(self) -> None:
        """After a lease, before any of its pages is visited."""
        if not self._shared:
            return
        found = await self._frontier.kept(MARK)
        if found is not None and found.value != self._mark:
            self._mark = found.value
            await self.load()

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
