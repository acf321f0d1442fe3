"""The default fetcher: HTTP/1.1 over aiohttp, bounded in every direction.

aiohttp gives connections, framing and TLS. Redirects, content codings, limits and errors are ours, so that
they are the same for every fetcher.
"""

from __future__ import annotations

import aiohttp
from aiohttp import hdrs

from silkline.config import MiB
from silkline.fetch.client import MAX_HEADER_BYTES, Client, Connector
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.decode import ACCEPT_ENCODING
from silkline.fetch.redirect import follow
from silkline.fetch.resolver import Resolver
from silkline.request import Request
from silkline.response import Response
from silkline.version import __version__

USER_AGENT = f"silkline/{__version__} (web crawler)"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_MAX_HEADERS = 256
_DNS_CACHE_SECONDS = 300
_IDLE_SECONDS = 15.0
"""Idle connections are closed after that long: servers close theirs at about the same age, and a request on
a connection that is just closing is lost."""


class HttpFetcher:
    """Request -> Response over aiohttp. Made anywhere; belongs to the event loop of its first fetch.

    timeout: seconds for one whole fetch, redirects included.
    connect_timeout: seconds for resolving the name, and again for TCP and TLS.
    read_timeout: seconds until all headers are there, and again for each further piece of the body.
    max_body: bytes of one decoded body.
    limit: connections in use at most; as many again may be idle.
    max_redirects: redirects followed in one fetch at most.
    user_agent: the User-Agent header; "" for one that names silkline.
    verify: whether TLS certificates are checked.
    """

    def __init__(
        self,
        *,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        read_timeout: float = 30.0,
        max_body: int = 32 * MiB,
        limit: int = 300,
        max_redirects: int = 10,
        user_agent: str = "",
        verify: bool = True,
    ) -> None:
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._max_body = max_body
        self._limit = limit
        self._max_redirects = max_redirects
        self._user_agent = user_agent or USER_AGENT
        self._verify = verify
        self._client: Client | None = None

    async def fetch(self, request: Request) -> Response:
        """The response to `request`, whatever its status, after redirects.

        Raises a FetchError whose `__cause__` is the original error; never anything else.
        """
        client = self._client or self._open()
        deadline = client.deadlines.start()
        try:
            response = await follow(client.hop, request, self._max_redirects)
        except BaseException as error:
            client.deadlines.stop(deadline, error)
            raise
        client.deadlines.stop(deadline, None)
        return response

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _open(self) -> Client:
        deadlines = Deadlines(self._timeout, self._read_timeout)
        connector = Connector(
            deadlines,
            self._limit,
            resolver=Resolver(self._connect_timeout),
            ttl_dns_cache=_DNS_CACHE_SECONDS,
            keepalive_timeout=_IDLE_SECONDS,
            ssl=self._verify,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            headers={
                hdrs.USER_AGENT: self._user_agent,
                hdrs.ACCEPT: ACCEPT,
                hdrs.ACCEPT_ENCODING: ACCEPT_ENCODING,
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(sock_connect=self._connect_timeout),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=_MAX_HEADERS,
        )
        self._client = Client(session, connector, deadlines, self._max_body)
        return self._client
