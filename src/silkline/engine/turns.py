"""Redirects keep the politeness of the host they lead to: which are followed at once, and which have to wait.

A visit holds a slot of one politeness group. A hop within it is a further request to the same host, and goes
on at once unless that host wants a delay or is blocked, as far as this worker knows. Every other hop goes
back to the frontier and is handed out again when its host is due: the commit that says so, and the next
lease, are those that are on their way anyway.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from silkline.engine.leases import Held
from silkline.errors import SilklineError, StatusError
from silkline.fetch.redirect import stays_here
from silkline.outcome import Lease, Moved
from silkline.protocols import CallNext
from silkline.request import Onward, Request
from silkline.response import Response
from silkline.url import host_of

RUN_OUT = frozenset({400, 401, 403, 404, 410})
"""Statuses with which servers answer URLs whose time is over."""

SHORT_LIVED = 10.0
"""Seconds for which a URL that a redirect leads to is taken to be good."""

TRIES = 2

Keys = Callable[[Sequence[str]], Awaitable[Sequence[str]]]


class Turns:
    """keys: the politeness keys of URLs. check: raises where a redirect must not be followed at all."""

    def __init__(self, keys: Keys, held: Held, check: Callable[[Request], None] | None) -> None:
        self._keys = keys
        self._held = held
        self._check = check

    def begin(self, lease: Lease) -> None:
        """What the current task fetches from now on is of this lease's visit."""
        stays_here.set(partial(self._stays, lease))

    async def moved(self, onward: Onward) -> Moved:
        """The verdict on a visit that goes on there."""
        (host,) = await self._keys((onward.url,))
        return Moved(host, onward)

    async def led_away(self, response: Response, lease: Lease) -> bool:
        """Whether redirects have led the visit out of the lease's politeness group: a fetcher of the user's
        own follows them itself."""
        if not was_redirected(response, lease) or host_of(response.url) == host_of(lease.request.target):
            return False
        (host,) = await self._keys((response.url,))
        return host != lease.host

    async def anew(self, lease: Lease, error: SilklineError) -> Moved | None:
        """Begin again at the first URL, TRIES times at most, where the one that redirects led to may have
        run out while it waited: some are good for a minute. None where that is not why it failed."""
        request, onward = lease.request, lease.request.onward
        if onward is None or not onward.via or onward.anew >= TRIES:
            return None
        if not isinstance(error, StatusError) or error.status not in RUN_OUT:
            return None
        now = time.time()
        if now - onward.since < SHORT_LIVED:
            return None
        return await self.moved(
            Onward(
                request.url,
                (),
                request.method,
                request.headers,
                request.body,
                since=now,
                anew=onward.anew + 1,
            )
        )

    async def _stays(self, lease: Lease, request: Request) -> bool:
        if self._check is not None:
            self._check(request)
        (host,) = await self._keys((request.url,))
        return host == lease.host and not self._held.has_to_wait(lease)


def outside_visits(fetch: CallNext) -> CallNext:
    """For what is no visit but may be fetched within one: its redirects are followed at once."""

    async def fetch_at_once(request: Request) -> Response:
        before = stays_here.set(None)
        try:
            return await fetch(request)
        finally:
            stays_here.reset(before)

    return fetch_at_once


def hops(response: Response, lease: Lease) -> int:
    """How many answers this visit has had, without those of the redirects that led it to where it began."""
    onward = lease.request.onward
    return 1 + len(response.history) - (0 if onward is None else len(onward.via))


def was_redirected(response: Response, lease: Lease) -> bool:
    """Whether this visit has met redirects, beyond those that led it to where it began."""
    return hops(response, lease) > 1
