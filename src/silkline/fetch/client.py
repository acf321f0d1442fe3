"""One URL over one aiohttp connection: send, receive, decode; nothing is followed or retried here."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping
from http import HTTPStatus
from itertools import chain
from time import perf_counter
from typing import Any

import aiohttp
import yarl
from aiohttp import hdrs

from silkline.errors import ProtocolError, ProxyError, SilklineError
from silkline.fetch.bounds import body_too_large, headers_too_large
from silkline.fetch.connector import Connector, Exchange, exchange
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.decode import Body, Sink, decoding
from silkline.fetch.download import Download, save
from silkline.fetch.failures import failure, let_go
from silkline.fetch.guard import check_literal
from silkline.fetch.options import FetchOptions, with_defaults
from silkline.fetch.pace import Pace
from silkline.fetch.proxied import OpenSession, Proxied, proxy_failure
from silkline.fetch.proxy import DENIED
from silkline.fetch.redirect import location_of
from silkline.fetch.sent import check_sendable
from silkline.fetch.target import split_credentials, wire_url
from silkline.request import Request
from silkline.response import Response, Timings

_CODING_OVERHEAD = 65_536
"""Incompressible data grows a little when coded; so much more may come over the wire than is decoded."""
_REDIRECT_BODY = 65_536
_REDIRECT_WAIT = 1.0
"""Bytes of a redirect's body, and seconds, that keeping its connection is worth."""


_FRAMING = {"chunked", "identity", ""}
"""Transfer codings that nobody has to ask for (RFC 9112, section 7), and one that once existed."""

_MOST_IDLE = 16
"""Connections that are tried, at most, because they are there."""

_DIRECT: Mapping[str, Any] = {}


class Client:
    """aiohttp's sessions with the limits that hold for each hop.

    usual: a session that adds the usual headers by itself, which costs less than to give them to `session`,
        that adds none.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        usual: aiohttp.ClientSession,
        connector: Connector,
        deadlines: Deadlines,
        options: FetchOptions,
        open_socks: OpenSession,
    ) -> None:
        self.deadlines = deadlines
        self._session = session
        self._usual = usual
        self._connector = connector
        self._max_body = options.max_body
        self._max_headers = options.max_headers
        self._options = options
        self._headers = options.headers
        self._max_save = options.max_save
        self._files_dir = options.files_dir or None
        self._proxied = Proxied(session, open_socks)

    def adjust(self, options: FetchOptions) -> None:
        """Take over timeout and limit."""
        self.deadlines.total = options.timeout
        self._connector.resize(options.limit)

    async def close(self) -> None:
        self.deadlines.close()
        await self._usual.close()
        await self._session.close()
        await self._proxied.close()

    def hop(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Fetch one URL. The body of a redirect is left out: nobody sees it, so it cannot fail either.

        Raises a FetchError whose `__cause__` is the original error.
        """
        if request.save_to is None or request.method == "HEAD":
            return self._exchange(request)
        return save(request, self._exchange, self._files_dir, self._max_save)

    async def _exchange(self, request: Request, download: Download | None = None) -> Response:
        url = wire_url(request.url)
        if request.proxy:
            check_literal(self._connector.guard, url)
        current = Exchange()
        exchange.set(current)
        started = perf_counter()
        try:
            if not request.proxy:
                response = await self._sent(request, url, current)
                first_byte = perf_counter() - started
                try:
                    body, wire_bytes = await self._receive(response, download)
                except BaseException:
                    response.close()
                    raise
            else:
                async with self._proxied.session(request.proxy) as (session, arguments):
                    response = await self._send(request, url, session, arguments)
                    first_byte = perf_counter() - started
                    try:
                        body, wire_bytes = await self._receive(response, download)
                    except BaseException:
                        response.close()
                        raise
        except SilklineError:
            raise
        except Exception as error:
            let_go(error)
            if request.proxy and (theirs := proxy_failure(error, url, request.proxy, bool(current.phase))):
                raise theirs from error
            raise failure(error, url, self._max_headers) from error
        if request.proxy and response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise ProxyError(DENIED, denied=True)
        return Response(
            request.url,
            response.status,
            response.raw_headers,
            body,
            request,
            timings=Timings(first_byte, perf_counter() - started, current.dns, current.connect, current.tls),
            http_version=_version(response.version),
            wire_bytes=wire_bytes,
            peer=current.peer,
            tls=current.version,
        )

    async def _sent(self, request: Request, url: str, current: Exchange) -> aiohttp.ClientResponse:
        """Try connections that were idle, which the server may have closed, until one is not or a new one is
        made, where the request may be sent again (RFC 9112, section 9.3.1)."""
        for _ in range(_MOST_IDLE):
            try:
                return await self._send(request, url)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if current.made or request.method not in ("GET", "HEAD"):
                    raise
        return await self._send(request, url)

    async def _send(
        self,
        request: Request,
        url: str,
        session: aiohttp.ClientSession | None = None,
        arguments: Mapping[str, Any] = _DIRECT,
    ) -> aiohttp.ClientResponse:
        headers = request.headers
        if headers or request.method != "GET":
            check_sendable(request.method, headers)
        if "@" in url:
            url, authorization = split_credentials(url)
            if authorization and not any(name.lower() == "authorization" for name in headers):
                headers = {**headers, "Authorization": authorization}
        if (fields := arguments.get("proxy_headers")) and url.startswith("http:"):
            headers = {**headers, **fields}  # aiohttp sends them to open a tunnel only
        if self._connector.crowded:
            headers = {"Connection": "close", **headers}
        if not headers and session is None:
            return await self._usual.request(
                request.method,
                _yarl(url),
                data=request.body,
                allow_redirects=False,
                skip_auto_headers=None if request.body is None else (hdrs.CONTENT_TYPE,),
            )
        return await (session or self._session).request(
            request.method,
            _yarl(url),
            headers=with_defaults(headers, self._headers),
            data=request.body,
            allow_redirects=False,
            skip_auto_headers=None if request.body is None else (hdrs.CONTENT_TYPE,),
            **arguments,
        )

    async def _receive(
        self, response: aiohttp.ClientResponse, download: Download | None
    ) -> tuple[bytes, int]:
        """The decoded body, and its size on the wire."""
        if sum(map(len, chain.from_iterable(response.raw_headers))) > self._max_headers:
            raise headers_too_large(self._max_headers)
        if (
            response.status < 200
            or 300 <= response.status < 400
            or hdrs.TRANSFER_ENCODING in response.headers
        ):
            _check(response)
        if location_of(response.status, response.raw_headers) is not None:
            self.deadlines.connecting()
            return b"", await _skip(response)
        content = response.content
        codings = response.headers.getall(hdrs.CONTENT_ENCODING, None)
        if download is not None and download.accept(response.status, response.raw_headers):
            return b"", await self._read(response, ", ".join(codings or ()), download, self._max_save)
        if codings is None and content.is_eof():
            # All of a small page usually comes with its headers.
            data = content.read_nowait()
            if len(data) > self._max_body:
                raise body_too_large(self._max_body, "max_body")
            return data, len(data)
        body = Body(self._max_body)
        size = await self._read(response, ", ".join(codings or ()), body, self._max_body)
        return body.join(), size

    async def _read(
        self, response: aiohttp.ClientResponse, codings: str, body: Sink, most: int | None
    ) -> int:
        """Write the decoded body to `body`, at most so many bytes; returns its size on the wire."""
        if response.content.at_eof():
            body.finish()
            return 0
        setting = "max_body" if isinstance(body, Body) else "max_save"
        limit = math.inf if most is None else most + (_CODING_OVERHEAD if codings else 0)
        if (length := response.content_length) is not None and length > limit:
            raise body_too_large(most, setting)
        connection = response.connection
        protocol = connection.protocol if connection is not None else None
        sink = decoding(codings, body)
        size = 0
        pace = Pace(perf_counter())
        while data := await response.content.readany():
            self.deadlines.waiting()
            size += len(data)
            if size > limit:
                raise body_too_large(most, setting)
            pace.check(size, perf_counter(), self._options)
            sink.write(data)
        error = protocol.exception() if protocol is not None else None
        if isinstance(error, OSError):
            # A body without a length ends with the connection, and to aiohttp a reset is such an end.
            raise error
        sink.finish()
        return size


def _version(version: aiohttp.HttpVersion | None) -> str:
    """The one that is spoken: an answer may say a higher one. Raises ProtocolError for HTTP/0.9."""
    if version is None or version >= aiohttp.HttpVersion11:
        return "1.1"
    if version < aiohttp.HttpVersion10:
        raise ProtocolError("the answer is not valid HTTP: its version is 0.9")
    return "1.0"


def _check(response: aiohttp.ClientResponse) -> None:
    """What aiohttp lets pass. Raises ProtocolError."""
    status, fields = response.status, response.headers
    if status == HTTPStatus.SWITCHING_PROTOCOLS:
        raise ProtocolError("the server switched to another protocol without being asked")
    if status < 100:
        raise ProtocolError(f"the answer is not valid HTTP: its status is {status:03}")
    if 300 <= status < 400 and len(set(fields.getall(hdrs.LOCATION, ()))) > 1:
        raise ProtocolError("the answer is not valid HTTP: it has two different Location headers")
    codings = ",".join(fields.getall(hdrs.TRANSFER_ENCODING, ())).lower().split(",")
    if not {coding.strip() for coding in codings} <= _FRAMING:
        raise ProtocolError("the body has a transfer coding that was not asked for")


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
