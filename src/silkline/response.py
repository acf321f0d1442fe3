"""What came back: bytes and metadata, nothing parsed."""

from __future__ import annotations

import msgspec

from silkline.request import Onward, Request


class Timings(msgspec.Struct, frozen=True):
    """Seconds, redirects included.

    first_byte: from the start until the last hop's headers were there.
    total: from the start to the last byte read.
    dns, connect, tls: of them for resolving names, for TCP and for TLS; 0 where a connection was reused.
    """

    first_byte: float = 0.0
    total: float = 0.0
    dns: float = 0.0
    connect: float = 0.0
    tls: float = 0.0


class Hop(msgspec.Struct, frozen=True):
    """One exchange of a fetch, which may have several by redirects.

    sent, headers: header fields of the request and of the response, in order, duplicates kept. started: Unix
    seconds. body: as in `Response`; empty for a redirect's, which is not read. peer: "" where a proxy was
    asked.
    """

    url: str
    method: str
    sent: tuple[tuple[str, str], ...]
    sent_body: bytes | None
    started: float
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    http_version: str = "1.1"
    peer: str = ""
    saved_to: str | None = None


class Response(msgspec.Struct, frozen=True):
    """An HTTP response with its body decoded from gzip & co., not from its charset.

    url: where the body came from, after redirects.
    headers: as received, in order, duplicates kept, names and values as raw bytes.
    history: the URLs that redirected here, first one first.
    http_version: "1.0", "1.1", "2" or "3".
    wire_bytes: size of the body as transferred.
    peer: the server's (or proxy's) address, "192.0.2.1:443" or "[2001:db8::1]:443"; "" where there was none.
    not_modified: the server said that a stored body is still current, and `body` is that one.
    from_cache: `body` is a stored one, whether the server was asked (then `not_modified` too) or not.
    tls: version of TLS, such as "TLSv1.3"; "" without TLS, and where nobody asked for it (the engine curl
        tells it to `silkline fetch`, --debug-http and --har alone).
    saved_to: the file that got the body (see Request.save_to); then `body` is empty.
    trail: the exchanges that led here, the last one its own; only kept where pages are archived.
    onward: of a redirect that was not followed because its target has to wait for its turn: what to go on
        with; else None.
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
    peer: str = ""
    not_modified: bool = False
    from_cache: bool = False
    saved_to: str | None = None
    trail: tuple[Hop, ...] = ()
    tls: str = ""
    onward: Onward | None = None

    def header(self, name: str) -> str | None:
        """The first header of that name (any case), decoded as latin-1; None if there is none."""
        wanted = name.lower().encode("latin-1")
        length = len(wanted)
        for key, value in self.headers:
            if len(key) == length and key.lower() == wanted:
                return value.decode("latin-1")
        return None
