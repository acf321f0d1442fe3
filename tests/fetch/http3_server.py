"""A small HTTP/3 server, made with aioquic."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent
from certificates import Pair

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class Http3Server:
    """Serves `routes`: path -> status, header fields, body. requests: the fields of those that came."""

    def __init__(self, routes: Mapping[str, Answer]) -> None:
        self.routes = routes
        self.requests: list[dict[bytes, bytes]] = []

    async def start(self, pair: Pair, port: int) -> Http3Server:
        configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
        configuration.load_cert_chain(pair.certificate, pair.key)
        self._server: QuicServer = await serve(
            "127.0.0.1", port, configuration=configuration, create_protocol=self._connection
        )
        return self

    async def stop(self) -> None:
        self._server.close()
        await asyncio.sleep(0)

    def _connection(self, *args: object, **options: object) -> QuicConnectionProtocol:
        return _Connection(self, *args, **options)


class _Connection(QuicConnectionProtocol):
    def __init__(self, server: Http3Server, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._of = server
        self._http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is not None:
            for received in self._http.handle_event(event):
                self._received(received)

    def _received(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            self._of.requests.append(dict(event.headers))
        if isinstance(event, (HeadersReceived, DataReceived)) and event.stream_ended:
            self._answer(event.stream_id)

    def _answer(self, stream: int) -> None:
        assert self._http is not None
        path = self._of.requests[-1][b":path"].decode()
        status, fields, body = self._of.routes.get(path, (404, [], b""))
        self._http.send_headers(stream, [(b":status", str(status).encode()), *fields])
        self._http.send_data(stream, body, end_stream=True)
        self.transmit()
