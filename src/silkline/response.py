"""What came back: bytes and metadata, nothing parsed."""

from __future__ import annotations

import msgspec

from silkline.request import Request


class Timings(msgspec.Struct, frozen=True):
    """Seconds. `total` is from the first byte sent to the last one read, redirects included."""

    first_byte: float = 0.0
    total: float = 0.0


class Response(msgspec.Struct, frozen=True):
    """An HTTP response with its body decoded from gzip & co., not from its charset.

    url: where the body came from, after redirects.
    headers: as received, in order, duplicates kept, names and values as raw bytes.
    history: the URLs that redirected here, first one first.
    wire_bytes: size of the body as transferred.
    """

    url: str
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    request: Request
    history: tuple[str, ...] = ()
    timings: Timings = Timings()
    http_version: str = "1.1"
    wire_bytes: int = 0

    def header(self, name: str) -> str | None:
        """The first header of that name (any case), decoded as latin-1; None if there is none."""
        wanted = name.lower().encode("latin-1")
        for key, value in self.headers:
            if key.lower() == wanted:
                return value.decode("latin-1")
        return None
