"""aiohttp's connections: who may be connected to, how long each step took, and how many are open."""

from __future__ import annotations

import asyncio
import functools
import socket
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, cast

import aiohttp
from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParser, RawResponseMessage
from aiohttp.streams import StreamReader

from silkline.errors import BlockedError, FetchTimeout, ProxyError
from silkline.fetch.bounds import ENDLESS, MAX_INTERIM
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.parser import AnswerParser, ForgivingParser
from silkline.fetch.peer import address_of
from silkline.protocols import Guard


class Exchange:
    """What the connector tells about one hop. Belongs to the task that made it and those it starts.

    host: as in the URL; guarded: whether the guard is asked.
    peer: the address of the other end. version: of TLS.
    dns, connect, tls: seconds; 0 where a connection was reused.
    refusal: the guard's last one. made: a connection had to be made.
    phase: "dns", "connect" or "tls", while there is no connection.
    """

    # Most hops find a connection and set the peer only: the rest costs nothing as long as it is a default.
    peer = version = phase = host = ""
    dns = connect = tls = since = 0.0
    guarded = False
    refusal: BlockedError | None = None
    made = False

    def begin(self, host: str, guarded: bool) -> None:
        """A connection has to be made."""
        self.host = host
        self.guarded = guarded
        self.made = True
        self.refusal = None
        self.since = 0.0
        self.phase = "dns"

    def step(self, phase: str) -> None:
        """The name is resolved ("connect"), TCP is connected ("tls"), or all is done ("")."""
        now = perf_counter()
        if self.phase == "connect" != phase:
            self.connect += now - self.since
        elif self.phase == "tls" and not phase:
            self.tls += now - self.since
        if phase != self.phase:
            self.since = now
        self.phase = phase


exchange: ContextVar[Exchange] = ContextVar("exchange")
"""Of the hop that is under way. Tasks that aiohttp starts to connect for it see the same one."""


class _Refused(OSError):
    """A connection that the guard forbids, in a form that lets the next address have its turn."""


class _Protocol(ResponseHandler):
    """aiohttp's protocol; notes when TCP is connected, which is when it is made, and to whom, and counts the
    interim answers, which aiohttp reads past for as long as they come."""

    __slots__ = ("_interim", "peer", "version")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.peer = self.version = ""
        self._interim = 0
        if (current := exchange.get(None)) is not None:
            current.step("tls")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer = address_of(transport.get_extra_info("peername"))
        if (tls := transport.get_extra_info("ssl_object")) is not None:
            self.version = tls.version() or ""

    def set_response_params(self, **params: Any) -> None:
        super().set_response_params(**params)
        if "max_field_size" not in params:
            return  # the answer of a proxy, for which nothing is limited
        make = functools.partial(_parser_for, loop=self._loop, params=params)
        parser = cast(AnswerParser, self._parser)
        most: int = params["max_field_size"]
        self._parser = cast(Any, ForgivingParser(parser, self, make, most, self.force_close))

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        if data[0].code >= 200:
            self._interim = 0
        else:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                self.close()
                self.set_exception(HttpProcessingError(message=ENDLESS))
                return
        super().feed_data(data, size)


def _parser_for(
    protocol: BaseProtocol, loop: asyncio.AbstractEventLoop, params: Mapping[str, Any]
) -> AnswerParser:
    """A parser like the one that aiohttp makes for a request."""
    made = HttpResponseParser(
        protocol,
        loop,
        params["read_bufsize"],
        timer=params["timer"],
        payload_exception=aiohttp.ClientPayloadError,
        response_with_body=not params["skip_payload"],
        read_until_eof=params["read_until_eof"],
        auto_decompress=params["auto_decompress"],
        max_line_size=params["max_line_size"],
        max_field_size=params["max_field_size"],
        max_headers=params["max_headers"],
    )
    return cast(AnswerParser, made)


class Connector(aiohttp.TCPConnector):
    """Asks the guard, starts the read limit when a connection is there, and counts the sockets that are open.

    aiohttp's own limit leaves out idle connections: over many hosts they would use up the file descriptors.

    connect_timeout: seconds for one connection: name, TCP and TLS together.
    """

    proxied = False
    """Whether all connections go through a proxy, for which the guard is not asked."""

    def __init__(
        self, deadlines: Deadlines, limit: int, connect_timeout: float, guard: Guard | None, **options: Any
    ) -> None:
        super().__init__(limit=limit, socket_factory=self._socket, **options)
        self._factory = cast(Any, functools.partial(_Protocol, loop=self._loop))
        self._deadlines = deadlines
        self._connect_timeout = connect_timeout
        self.guard = guard
        self._most = 2 * limit
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    @property
    def crowded(self) -> bool:
        """Whether as many connections are idle as may be in use: no further one should be kept."""
        return len(self._sockets) >= self._most

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close the resolver, too: aiohttp leaves one that it was given open, with its files."""
        await super().close(abort_ssl=abort_ssl)
        await self._resolver.close()

    def resize(self, limit: int) -> None:
        """So many connections in use at most; those that are in use stay."""
        self._limit = limit
        self._most = 2 * limit

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        current = exchange.get()
        if self.guard is not None and current.guarded:
            self._ask(self.guard, current, address[4])
        current.step("connect")
        opened = socket.socket(*address[:3])
        self._sockets.add(opened)
        return opened

    def _ask(self, guard: Guard, current: Exchange, address: tuple[Any, ...]) -> None:
        try:
            guard(current.host, address[0], address[1])
        except BlockedError as error:
            current.refusal = error
            raise _Refused(str(error)) from error

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Any:
        connection = await super().connect(req, traces, timeout)
        current, protocol = exchange.get(), cast(_Protocol, connection.protocol)
        current.peer, current.version = protocol.peer, protocol.version
        self._deadlines.waiting("first_byte")
        return connection

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        current = exchange.get()
        current.begin(req.url.raw_host or "", guarded=req.proxy is None and not self.proxied)
        try:
            async with asyncio.timeout(self._connect_timeout):
                protocol = await self._establish(req, traces, timeout)
        except TimeoutError as error:
            within = f"to {req.url.authority} within {self._connect_timeout:g} s"
            if not current.guarded:
                raise ProxyError(f"no connection through the proxy {within}", refused=True) from error
            raise FetchTimeout(f"no connection {within}", current.phase) from error
        except aiohttp.ClientConnectorError:
            # No address is left; the name's other ones, if there are any, cannot be reached.
            if current.refusal is not None:
                raise current.refusal from None
            raise
        current.step("")
        if not req.is_ssl():
            current.tls = 0.0
        return protocol

    async def _establish(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        """Connect to the server or, by aiohttp's own means, through an HTTP proxy."""
        return await super()._create_connection(req, traces, timeout)
