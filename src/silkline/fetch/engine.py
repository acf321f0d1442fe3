"""What every engine does around its own way to fetch one URL: total time limit, hops, redirects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

from silkline.fetch.deadlines import Deadlines
from silkline.fetch.middleware import compose
from silkline.fetch.options import FetchOptions, limit_for
from silkline.fetch.redirect import follow
from silkline.protocols import CallNext, Guard, Middleware
from silkline.request import Request
from silkline.response import Response


class Client(Protocol):
    """An engine's connections on one event loop."""

    @property
    def deadlines(self) -> Deadlines: ...

    async def hop(self, request: Request) -> Response:
        """Fetch one URL. Raises a FetchError whose `__cause__` is the original error."""

    def adjust(self, options: FetchOptions) -> None:
        """Take over timeout and limit."""

    async def close(self) -> None: ...


class Engine(ABC):
    """Request -> Response. Made anywhere; belongs to the event loop of its first fetch.

    hops: middleware around each hop, inside the redirects; the first one outermost.
    guard: is asked before a socket connects, see `protocols.Guard`.
    """

    def __init__(
        self,
        options: FetchOptions | None = None,
        *,
        hops: Sequence[Middleware] = (),
        guard: Guard | None = None,
    ) -> None:
        self._options = options or FetchOptions()
        self._hops = tuple(hops)
        self._guard = guard
        self._client: Client | None = None
        self._hop: CallNext

    async def fetch(self, request: Request) -> Response:
        """The response to `request`, whatever its status, after redirects.

        Raises a FetchError whose `__cause__` is the original error; never anything else.
        """
        client = self._client or self._open()
        deadline = client.deadlines.start(None if request.save_to is None else self._options.save_timeout)
        try:
            response = await follow(
                self._hop, request, self._options.max_redirects, refresh=self._options.follow_refresh
            )
        except BaseException as error:
            client.deadlines.stop(deadline, error)
            raise
        client.deadlines.stop(deadline, None)
        return response

    def adjust(self, *, timeout: float, visits: int) -> None:
        """See `protocols.Adjustable`."""
        limit = limit_for(visits, self._options.connections)
        self._options = msgspec.structs.replace(self._options, timeout=timeout, limit=limit)
        if self._client is not None:
            self._client.adjust(self._options)

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _open(self) -> Client:
        self._client = client = self._connect()
        self._hop = compose(self._hops, client.hop)
        return client

    @abstractmethod
    def _connect(self) -> Client: ...
