"""The default fetcher: HTTP/1.1 over aiohttp, bounded in every direction.

aiohttp gives connections, framing and TLS. Redirects, content codings, limits and errors are ours, so that
they are the same for every fetcher.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from time import perf_counter

import aiohttp
import yarl
from aiohttp import hdrs

from silkline.config import MiB
from silkline.errors import FetchError, FetchTimeout, TooLargeError
from silkline.fetch.decode import ACCEPT_ENCODING, Body, decoding
from silkline.fetch.failures import failure
from silkline.fetch.redirect import follow, location_of
from silkline.fetch.resolver import Resolver
from silkline.fetch.target import split_credentials, wire_url
from silkline.request import Request
from silkline.response import Response, Timings
from silkline.version import __version__

USER_AGENT = f"silkline/{__version__} (web crawler)"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

MAX_HEADER_BYTES = 65_536
MAX_HEADERS = 256

_DNS_CACHE_SECONDS = 300
_IDLE_SECONDS = 15.0
"""Idle connections are closed after that long: servers close theirs at about the same age, and a request on
a connection that is just closing is lost."""

_CODING_OVERHEAD = 65_536
"""Incompressible data grows a little when coded; so much more may come over the wire than `max_body`."""
_REDIRECT_BODY = 65_536
_REDIRECT_WAIT = 1.0
"""Bytes of a redirect's body, and seconds, that keeping its connection is worth."""


class HttpFetcher:
    """Request -> Response over aiohttp. Made anywhere; belongs to the event loop of its first fetch.

    timeout: seconds for one whole fetch, redirects included.
    connect_timeout: seconds for resolving the name, and again for TCP and TLS.
    read_timeout: seconds without a byte from the server.
    max_body: bytes of one decoded body.
    limit: open connections at most.
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
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, request: Request) -> Response:
        """The response to `request`, whatever its status, after redirects.

        Raises a FetchError whose `__cause__` is the original error; never anything else.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await follow(self._hop, request, self._max_redirects)
        except TimeoutError as error:
            raise FetchTimeout(f"no complete answer within {self._timeout:g} s", "total") from error

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._limit,
                resolver=Resolver(self._connect_timeout),
                ttl_dns_cache=_DNS_CACHE_SECONDS,
                keepalive_timeout=_IDLE_SECONDS,
                ssl=self._verify,
            ),
            headers={
                hdrs.USER_AGENT: self._user_agent,
                hdrs.ACCEPT: ACCEPT,
                hdrs.ACCEPT_ENCODING: ACCEPT_ENCODING,
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(sock_connect=self._connect_timeout, sock_read=self._read_timeout),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        return self._session

    async def _hop(self, request: Request) -> Response:
        """Fetch one URL, without following where it points."""
        url = wire_url(request.url)
        started = perf_counter()
        try:
            response = await self._send(request, url)
            first_byte = perf_counter() - started
            try:
                body, wire_bytes = await self._receive(response)
            except BaseException:
                response.close()
                raise
        except FetchError:
            raise
        except Exception as error:
            raise failure(error, url) from error
        version = response.version
        return Response(
            url=request.url,
            status=response.status,
            headers=response.raw_headers,
            body=body,
            request=request,
            timings=Timings(first_byte, perf_counter() - started),
            http_version=f"{version.major}.{version.minor}" if version else "1.1",
            wire_bytes=wire_bytes,
        )

    async def _send(self, request: Request, url: str) -> aiohttp.ClientResponse:
        session = self._session or self._open()
        headers = request.headers
        if "@" in url:
            url, authorization = split_credentials(url)
            if authorization and not any(name.lower() == "authorization" for name in headers):
                headers = {**headers, "Authorization": authorization}
        return await session.request(
            request.method,
            _yarl(url),
            headers=headers or None,
            data=request.body,
            allow_redirects=False,
            skip_auto_headers=(hdrs.CONTENT_TYPE,) if request.body is not None else None,
        )

    async def _receive(self, response: aiohttp.ClientResponse) -> tuple[bytes, int]:
        """The decoded body, and its size on the wire."""
        if sum(map(len, chain.from_iterable(response.raw_headers))) > MAX_HEADER_BYTES:
            raise TooLargeError(f"the headers are over the limit of {MAX_HEADER_BYTES} bytes")
        if location_of(response.status, response.raw_headers) is not None:
            return b"", await _skip(response)
        content = response.content
        codings = response.headers.getall(hdrs.CONTENT_ENCODING, None)
        if codings is None and content.is_eof():
            # All of a small page usually comes with its headers.
            data = content.read_nowait()
            if len(data) <= self._max_body:
                return data, len(data)
        connection = response.connection
        protocol = connection.protocol if connection is not None else None
        limit = self._max_body + (_CODING_OVERHEAD if codings else 0)
        if (length := response.content_length) is not None and length > limit:
            raise TooLargeError(f"the body of {length} bytes is over the limit of {self._max_body}")
        body = Body(self._max_body)
        sink = decoding(", ".join(codings or ()), body)
        size = 0
        while data := await content.readany():
            size += len(data)
            if size > limit:
                raise TooLargeError(f"the body is over the limit of {self._max_body} bytes")
            sink.write(data)
        error = protocol.exception() if protocol is not None else None
        if isinstance(error, OSError):
            # A body without a length ends with the connection, and to aiohttp a reset is such an end.
            raise error
        sink.finish()
        return body.join(), size


def _yarl(url: str) -> yarl.URL:
    if url.endswith("?") and url.find("?") == len(url) - 1:
        # yarl drops an empty query, which is not the same resource; as the end of the path it is sent.
        scheme, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        return yarl.URL.build(scheme=scheme, authority=authority, path=f"/{path}", encoded=True)
    return yarl.URL(url, encoded=True)


async def _skip(response: aiohttp.ClientResponse) -> int:
    """Read past a redirect's body. Where it is long, slow or broken the connection goes, not the redirect."""
    content = response.content
    size = 0
    try:
        async with asyncio.timeout(_REDIRECT_WAIT):
            while size <= _REDIRECT_BODY:
                if content.at_eof():
                    return size
                size += len(await content.readany())
    except (aiohttp.ClientError, TimeoutError):
        pass
    response.close()
    return size
