"""Proxies on 127.0.0.1: HTTP (forwarding and CONNECT, also over TLS) and SOCKS5; credentials if wanted."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from urllib.parse import urlsplit

PROBLEMS = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, OSError)


class Proxy:
    """asked: "host:port" of each connection that was asked for, allowed or not.

    credentials: (user, password) that are wanted. reply: refuse with this (an HTTP status, a SOCKS reply).
    silent: take the connection and say nothing. hang_up: take it and close it.
    """

    scheme = ""

    def __init__(
        self,
        credentials: tuple[str, str] | None = None,
        *,
        reply: int = 0,
        silent: bool = False,
        hang_up: bool = False,
    ) -> None:
        self.credentials = credentials
        self.reply = reply
        self.silent = silent
        self.hang_up = hang_up
        self.asked: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        if tls is not None:
            self.scheme = "https"
        return self

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, credentials: str = "", scheme: str = "") -> str:
        """credentials: "user:password", percent-encoded."""
        user = f"{credentials}@" if credentials else ""
        return f"{scheme or self.scheme}://{user}127.0.0.1:{self.port}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._serve(reader, writer))

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(*PROBLEMS):
                if self.silent:
                    await asyncio.Event().wait()
                if not self.hang_up:
                    await self._answer(reader, writer)
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _join(
        self,
        host: str,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        first: bytes = b"",
    ) -> None:
        """Pass on both ways until one side has ended."""
        server_reader, server_writer = await asyncio.open_connection(host, port)
        server_writer.write(first)
        self._spawn(_pump(reader, server_writer))
        await _pump(server_reader, writer)

    async def _reachable(self, host: str, port: int) -> bool:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            return False
        writer.close()
        return True


class HttpProxy(Proxy):
    """heads: of the requests, as they came."""

    scheme = "http"

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.heads: list[str] = []

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        method, target, _ = head.split("\r\n", 1)[0].split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname or "", parts.port or 80
        self.asked.append(f"{host}:{port}")
        if status := self.reply or (407 if not self._may(head) else 0):
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        elif method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n")
            await self._join(host, port, reader, writer)
        else:
            path = target[target.index("/", 8) :]
            once = head.replace(target, path, 1).replace("\r\n", "\r\nConnection: close\r\n", 1)
            await self._join(host, port, reader, writer, once.encode("latin-1"))

    def _may(self, head: str) -> bool:
        if self.credentials is None:
            return True
        token = base64.b64encode(":".join(self.credentials).encode()).decode()
        return f"\r\nproxy-authorization: basic {token}\r\n".lower() in head.lower()


class SocksProxy(Proxy):
    """SOCKS5 (RFC 1928) with user name and password (RFC 1929)."""

    scheme = "socks5h"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 0 if self.credentials is None else 2
        writer.write(bytes([5, wanted if wanted in methods else 255]))
        if wanted == 2 and not await self._authenticated(reader, writer):
            return
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            packed = await reader.readexactly(4)
            host = ".".join(map(str, packed))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host}:{port}")
        reply = self.reply or (0 if await self._reachable(host, port) else 5)
        writer.write(bytes([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        await writer.drain()
        if not reply:
            await self._join(host, port, reader, writer)

    async def _authenticated(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        user = await reader.readexactly((await reader.readexactly(1))[0])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        good = (user.decode(), password.decode()) == self.credentials
        writer.write(bytes([1, 0 if good else 1]))
        await writer.drain()
        return good


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(*PROBLEMS):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(*PROBLEMS, RuntimeError):
        writer.close()
