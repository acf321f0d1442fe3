"""Several sessions that take turns, so that a site that blocks one does not block the crawl."""

from __future__ import annotations

import random

import msgspec

from silkline.errors import BannedError, FetchError
from silkline.fetch.bans import Bans
from silkline.fetch.cookies.sessions import Sessions
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response

TRIES = 2
"""Sessions that one visit tries at most."""

STRIKES = 3
"""Bans or failures of one session in a row, until it is retired."""


class SessionPool:
    """Gives each request that names no session one of `size`, each with its own cookies and identity.

    A session that is blocked (see `Bans`) is retired: it begins anew, without cookies, with another browser
    identity and another proxy where the crawl has them. That the session was the reason is certain when
    another one gets the page, which is why the visit tries another one; or after several bans in a row.
    """

    def __init__(self, size: int, sessions: Sessions, bans: Bans | None = None) -> None:
        self._names = [f"pool-{number}" for number in range(1, size + 1)]
        self._sessions = sessions
        self._bans = bans or Bans()
        self._strikes = dict.fromkeys(self._names, 0)

    async def __call__(self, request: Request, call_next: CallNext) -> Response:
        """Raises what the fetch raises, and BannedError for a page that blocks with a status of success."""
        if request.session is not None:
            return await call_next(request)
        blocked: dict[str, int] = {}
        while True:
            name = random.choice([name for name in self._names if name not in blocked])
            generation = self._sessions.get(name).generation
            answer = await self._answer(request, name, generation, call_next)
            if isinstance(answer, Response) and self._bans.reason(answer) is None:
                self._strikes[name] = 0
                for other, others in blocked.items():
                    self._retire(other, others)
                return msgspec.structs.replace(answer, request=request)
            blocked[name] = generation
            if len(blocked) == min(TRIES, len(self._names)):
                for other, others in blocked.items():
                    self._strike(other, others)
                return self._blocked(request, answer)

    async def _answer(
        self, request: Request, name: str, generation: int, call_next: CallNext
    ) -> Response | BannedError:
        try:
            return await call_next(msgspec.structs.replace(request, session=name))
        except BannedError as error:
            return error
        except FetchError:
            self._strike(name, generation)
            raise

    def _blocked(self, request: Request, answer: Response | BannedError) -> Response:
        if isinstance(answer, BannedError):
            raise answer
        if 200 <= answer.status < 300:
            raise BannedError(f"{self._bans.reason(answer)} in place of the page")
        return msgspec.structs.replace(answer, request=request)

    def _strike(self, name: str, generation: int) -> None:
        self._strikes[name] += 1
        if self._strikes[name] >= STRIKES:
            self._retire(name, generation)

    def _retire(self, name: str, generation: int) -> None:
        """Unless it has begun anew since: several visits of one session may be blocked at the same time."""
        if self._sessions.get(name).generation == generation:
            self._sessions.retire(name)
            self._strikes[name] = 0
