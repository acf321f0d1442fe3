"""Proxies on 127.0.0.1: HTTP (forward and CONNECT, over TLS as well) and SOCKS5, with credentials."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import struct
from collections.abc import Callable

HOSTS = {"site.test": "127.0.0.1", "other.test": "127.0.0.1", "secure.test": "127.0.0.1"}
"""Names that only the proxies know."""

WHO_ARE_YOU = b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"

Answer = Callable[[str], bytes | None]
"""Method and target of a request -> what the proxy answers itself; None to pass it on."""


class TestProxy:
    """asked: what came, as "METHOD target" or "host:port"; only what had the right credentials.

    busy: set when five have come. answer: what the proxy says itself.
    delay: seconds before it does anything. silent: it never does.
    """

    __test__ = False
    scheme = "http"

    def __init__(self, user: str = "", password: str = "") -> None:
        self.user, self.password = user, password
        self.asked: list[str] = []
        self.refused = 0
        self.answer: Answer = lambda request: None
        self.delay = 0.0
        self.silent = False
        self.busy = asyncio.Event()
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> TestProxy:
        if tls is not None:
            self.scheme = "https"
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """From now on nobody answers at its port."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if len(self.asked) == 5:
            self.busy.set()

    def url(self, userinfo: str = "") -> str:
        return f"{self.scheme}://{userinfo}{'@' if userinfo else ''}127.0.0.1:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                if self.silent:
                    await asyncio.Event().wait()
                await asyncio.sleep(self.delay)
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            task.uncancel()  # by `stop`; asyncio would call it an error of the server
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, _ = head.split(" ", 2)
            wanted = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            if self.user and f"proxy-authorization: basic {wanted}".lower() not in head.lower():
                self.refused += 1
                writer.write(
                    b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
                )
                continue
            self._ask(f"{method} {target}")
            if (own := self.answer(f"{method} {target}")) is not None:
                writer.write(own)
                continue
            if method == "CONNECT":
                await self._tunnel(target, reader, writer)
                return
            length = next((v for k, v in _fields(head) if k == "content-length"), "0")
            body = await reader.readexactly(int(length))
            await self._forward(head, body, writer)

    async def _forward(self, head: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        method, target, rest = head.split(" ", 2)
        authority, slash, path = target.removeprefix("http://").partition("/")
        lines = [f"{method} {slash}{path or ''} HTTP/1.1", "Via: 1.1 testproxy", "Connection: close"]
        lines += [
            line
            for line in rest.split("\r\n")[1:]
            if line and not line.lower().startswith(("proxy-", "connection:"))
        ]
        try:
            upstream, out = await _connect(authority)
        except OSError:
            writer.write(b"HTTP/1.1 502 Nobody there\r\nContent-Length: 0\r\n\r\n")
            return
        out.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        writer.write(await upstream.read())
        out.close()
        await writer.drain()
        writer.close()

    async def _tunnel(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, out = await _connect(target)
        except OSError:
            writer.write(b"HTTP/1.1 502 Nobody there\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
        await _splice(reader, writer, upstream, out)


class SocksProxy(TestProxy):
    """SOCKS5 (RFC 1928) with user and password (RFC 1929)."""

    scheme = "socks5h"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if self.user else 0
        if wanted not in methods:
            self.refused += 1
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, wanted)))
        if self.user and not await self._is_known(reader, writer):
            return
        await reader.readexactly(3)
        host = await _socks_host(reader)
        (port,) = struct.unpack(">H", await reader.readexactly(2))
        self._ask(f"{host}:{port}")
        try:
            upstream, out = await _connect(f"{host}:{port}")
        except OSError:
            writer.write(b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
            return
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        await _splice(reader, writer, upstream, out)

    async def _is_known(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, length = await reader.readexactly(2)
        user = (await reader.readexactly(length)).decode()
        (length,) = await reader.readexactly(1)
        known = (user, (await reader.readexactly(length)).decode()) == (self.user, self.password)
        self.refused += not known
        writer.write(bytes((1, not known)))
        return known


async def _socks_host(reader: asyncio.StreamReader) -> str:
    (kind,) = await reader.readexactly(1)
    if kind == 1:
        return ".".join(map(str, await reader.readexactly(4)))
    assert kind == 3, kind
    (length,) = await reader.readexactly(1)
    return (await reader.readexactly(length)).decode()


def _fields(head: str) -> list[tuple[str, str]]:
    lines = (line.partition(":") for line in head.split("\r\n")[1:] if line)
    return [(name.lower(), value.strip()) for name, _, value in lines]


async def _connect(authority: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = authority.rpartition(":") if ":" in authority else (authority, "", "80")
    return await asyncio.open_connection(HOSTS.get(host, host), int(port))


async def _splice(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream: asyncio.StreamReader,
    out: asyncio.StreamWriter,
) -> None:
    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
            sink.close()

    await asyncio.gather(copy(reader, out), copy(upstream, writer))
