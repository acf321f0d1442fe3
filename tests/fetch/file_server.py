"""A file behind a socket, with ranges, that can change, break off and lie."""

from __future__ import annotations

import asyncio
import re

from raw_server import RawServer, Script


class FileServer:
    """Serves `content` at `target` of a RawServer, with ranges as RFC 9110 says.

    etag, modified: validators, None for none. breaks: bytes of each answer's body after which the connection
    is closed, None for never. ranges, conditions: the Range and If-Range
    headers that came, None where none did.
    """

    def __init__(self, server: RawServer, content: bytes, target: str = "/file") -> None:
        self.server = server
        self.content = content
        self.etag: str | None = '"v1"'
        self.modified: str | None = None
        self.breaks: list[int | None] = []
        self.ranges: list[str | None] = []
        self.conditions: list[str | None] = []
        self.respects_ranges = True
        self.extra = ""
        self.url = server.url(target)
        server.routes[target] = self.script

    @property
    def script(self) -> Script:
        return self._answer

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        asked, condition = self.server.header("range"), self.server.header("if-range")
        self.ranges.append(asked)
        self.conditions.append(condition)
        head, body = self._response(asked, condition)
        cut = self.breaks.pop(0) if self.breaks else None
        writer.write("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode())
        writer.write(body if cut is None else body[:cut])
        await writer.drain()
        if cut is not None:
            writer.close()

    def _response(self, asked: str | None, condition: str | None) -> tuple[list[str], bytes]:
        head = ["HTTP/1.1 200 OK", "Date: Mon, 01 Jan 2024 12:00:00 GMT"]
        head += [f"ETag: {self.etag}"] if self.etag else []
        head += [f"Last-Modified: {self.modified}"] if self.modified else []
        head += [self.extra] if self.extra else []
        match = re.fullmatch(r"bytes=(\d+)-", asked or "")
        current = condition is None or condition in (self.etag, self.modified)
        if match is None or not current or not self.respects_ranges:
            return head, self.content
        first, size = int(match[1]), len(self.content)
        if first >= size:
            return ["HTTP/1.1 416 No", f"Content-Range: bytes */{size}", *head[1:]], b"no such bytes"
        head[0] = "HTTP/1.1 206 Partial"
        return [*head, f"Content-Range: bytes {first}-{size - 1}/{size}"], self.content[first:]
