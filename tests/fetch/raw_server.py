"""A server that sends exactly the bytes it is told to, well-formed or not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """Serves `routes`: request target -> the bytes of a whole response, or a script that writes to it.

    heads, bodies: of the requests it saw, as they came.
    connections: how many were accepted.
    asked: set when the first request has come.
    """

    def __init__(self, routes: Mapping[str, bytes | Script] | None = None) -> None:
        self.routes: dict[str, bytes | Script] = dict(routes or {})
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.host = "127.0.0.1"
        self.scheme = "http"
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> RawServer:
        if tls is not None:
            self.scheme = "https"
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, target: str = "/") -> str:
        return f"{self.scheme}://{self.host}:{self.port}{target}"

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._tasks)

    @property
    def targets(self) -> list[str]:
        return [head.split(" ", 2)[1] for head in self.heads]

    def header(self, name: str, request: int = -1) -> str | None:
        """A header of the nth request, the last one by default."""
        for line in self.heads[request].split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                while not writer.is_closing():
                    await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        self.asked.set()
        length = int(self.header("content-length") or 0)
        self.bodies.append(await reader.readexactly(length))
        answer = self.routes.get(head.split(" ", 2)[1], answer_of(404, {}, b""))
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(writer)
        if (self.header("connection") or "").lower() == "close":
            writer.close()


Serve = Callable[..., Awaitable[RawServer]]
"""What the fixture `serve` gives."""


def answer_of(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """A well-formed response; headers as given, Content-Length added."""
    lines = [f"HTTP/1.1 {status} Any", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("utf-8") + body


def then_close(data: bytes) -> Script:
    """Send these bytes, then end the connection in an orderly way."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return script


def then_reset(data: bytes) -> Script:
    """Send these bytes, then reset the connection."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.05)
        linger_zero = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
        writer.transport.abort()

    return script


def then_stall(data: bytes = b"") -> Script:
    """Send these bytes, then nothing more."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await asyncio.Event().wait()

    return script


def drip(data: bytes, piece: bytes, pause: float) -> Script:
    """Send these bytes, then `piece` again and again with `pause` seconds between."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return script
