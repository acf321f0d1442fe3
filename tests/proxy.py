"""A TCP proxy between a client and a server that cuts connections when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


class CuttingProxy:
    """Forwards 127.0.0.1:`port` to `target`.

    pause, resume: nothing is passed on in between; connections stay open.
    cut_request, cut_reply: asked for each piece of data; where one says yes, the connection is cut before
    the piece is passed on. With cut_reply the server has done what it was asked, and nobody hears of it.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.cut_request: Callable[[bytes], bool] = lambda data: False
        self.cut_reply: Callable[[bytes], bool] = lambda data: False
        self.cuts = 0
        self.was_cut = asyncio.Event()
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    def pause(self) -> None:
        self._passing.clear()

    def resume(self) -> None:
        self._passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, far_writer)
        self._writers |= {*both}
        await asyncio.gather(
            self._pump(reader, far_writer, both, "cut_request"),
            self._pump(far_reader, writer, both, "cut_reply"),
        )
        self._writers -= {*both}

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        rule: str,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if getattr(self, rule)(data):
                    self.cuts += 1
                    self.was_cut.set()
                    break
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
        for end in both:
            end.transport.abort()
