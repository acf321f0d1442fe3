"""The default fetcher: HTTP/1.1 over aiohttp, bounded in every direction.

aiohttp gives connections, framing and TLS. Redirects, content codings, limits and errors are ours, so that
they are the same for every fetcher.
"""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
import msgspec

from silkline.fetch.client import Client
from silkline.fetch.connector import Connector
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.middleware import compose
from silkline.fetch.options import FetchOptions, limit_for
from silkline.fetch.redirect import follow
from silkline.fetch.resolver import Resolver
from silkline.protocols import CallNext, Guard, Middleware
from silkline.request import Request
from silkline.response import Response

_MAX_HEADERS = 256
_DNS_CACHE_SECONDS = 300
_IDLE_SECONDS = 15.0
"""Idle connections are closed after that long: servers close theirs at about the same age, and a request on
a connection that is just closing is lost."""


class HttpFetcher:
    """Request -> Response over aiohttp. Made anywhere; belongs to the event loop of its first fetch.

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
        self._options = msgspec.structs.replace(self._options, timeout=timeout, limit=limit_for(visits))
        if self._client is not None:
            self._client.adjust(self._options)

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _open(self) -> Client:
        options = self._options
        deadlines = Deadlines(options.timeout, options.read_timeout)
        connector = Connector(
            deadlines,
            options.limit,
            options.connect_timeout,
            self._guard,
            resolver=Resolver(),
            ttl_dns_cache=_DNS_CACHE_SECONDS,
            keepalive_timeout=_IDLE_SECONDS,
            ssl=options.verify,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # the deadlines and the connector have the limits
            auto_decompress=False,
            max_line_size=options.max_headers,
            max_field_size=options.max_headers,
            max_headers=_MAX_HEADERS,
        )
        self._client = Client(session, connector, deadlines, options)
        self._hop = compose(self._hops, self._client.hop)
        return self._client
