"""One libcurl easy handle and the exchange that it is busy with."""

from __future__ import annotations

import asyncio
import math
import socket
from http import HTTPStatus
from time import perf_counter
from typing import Any

import pycurl  # type: ignore[import-untyped]

from silkline.errors import (
    BlockedError,
    ConnectError,
    FetchError,
    FetchTimeout,
    ProtocolError,
    ProxyError,
    SilklineError,
    TooLargeError,
)
from silkline.fetch.connector import address_of
from silkline.fetch.curl_failures import E_PROXY, failure
from silkline.fetch.curl_multi import Multi
from silkline.fetch.decode import Body, Sink, decoding
from silkline.fetch.download import Download
from silkline.fetch.head import Head, HeadReader
from silkline.fetch.options import FetchOptions
from silkline.fetch.pace import Pace
from silkline.fetch.redirect import location_of
from silkline.protocols import Guard
from silkline.request import Request
from silkline.response import Response, Timings

_CODING_OVERHEAD = 65_536
"""Incompressible data grows a little when coded; so much more may come over the wire than is decoded."""
_UNREACHABLE = {
    19: "the connection is refused",
    21: "the host is unreachable",
    22: "the network is unreachable",
}
"""By CURLINFO_PROXY_ERROR: replies of a SOCKS proxy that does its work, while the server is not reached."""
_CONNECTING = (
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_RESOLVE_PROXY,
    E_PROXY,
)
_REDIRECT_BODY = 65_536
"""Bytes of a redirect's body that keeping its connection is worth."""


class Transfer:
    """Collects what libcurl's callbacks bring, within the limits, and makes a Response of it.

    easy: libcurl's handle. started: by time.perf_counter. running: libcurl has it.
    future: ends with the transfer; its result is libcurl's error, or None.
    proxy: URL of the proxy, or "". tunnelled: it answers a CONNECT first.
    unusual: the handle is set for something else than a GET with the usual headers. targeted: it once got a
        request target of its own, which cannot be taken back, so that each request has to set one. waits: it
        shares a connection that is still being made.
    error: what ended the transfer on our side.
    """

    def __init__(
        self, easy: Any, multi: Multi, reader: HeadReader, options: FetchOptions, guard: Guard | None
    ) -> None:
        self.easy = easy
        self.future: asyncio.Future[pycurl.error | None]
        self.started = 0.0
        self.running = False
        self.request: Request
        self.url = ""
        self.proxy = ""
        self.tunnelled = False
        self.unusual = self.targeted = self.waits = False
        self.error: SilklineError | None = None
        self.pace: Pace | None = None
        self._multi = multi
        self._reader = reader
        self._options = options
        self._guard = guard
        self._lines: list[bytes] = []
        self._pieces: list[bytes] = []
        self._head: Head | None = None
        self._size = 0
        self._limit = math.inf
        self._redirects = False
        self._download: Download | None = None
        self._sink: Sink | None = None
        self._refusal: FetchError | None = None
        easy.transfer = self
        easy.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        easy.setopt(pycurl.WRITEFUNCTION, self._write)
        easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)

    def begin(
        self,
        request: Request,
        url: str,
        download: Download | None,
        future: asyncio.Future[pycurl.error | None],
    ) -> None:
        """`url` is about to be fetched, into a file if there is a `download`."""
        self.request = request
        self._download = download
        self.url = url
        self.future = future
        self.started = perf_counter()

    def end(self) -> None:
        """Forget the exchange."""
        self._lines.clear()
        self._pieces = []
        self._head = None
        self._size = 0
        self._redirects = False
        self._download = self._sink = self._refusal = self.error = self.pace = None

    @property
    def received(self) -> int:
        """Bytes of the body so far."""
        return self._size

    def head_is_complete(self) -> bool:
        """Whether the answer's header has come. Sets `error` where what follows is over the limits."""
        if self._head is not None:
            return True
        if not self._lines or self._lines[-1].strip():
            return False
        head = self._head = self._reader.read(self._lines)
        if head is None:
            return False
        self._redirects = location_of(head.status, head.headers) is not None
        self._check(head)
        return True

    def is_redirect(self) -> bool:
        """Whether the answer is a redirect: the rest of its body is not worth waiting for."""
        return self.head_is_complete() and self._redirects

    def response(self, cause: pycurl.error | None) -> Response:
        """What came of the transfer, which ended with `cause`.

        Raises a FetchError whose `__cause__` is the original error.
        """
        complete = self.head_is_complete()
        if self.error is not None:
            raise self.error from self.error.__cause__ or cause
        if cause is not None and not (complete and self._redirects):
            raise self._failure(cause) from cause
        head = self._head
        if head is None:
            raise ProtocolError(f"the answer is not valid HTTP: {self.url[:200]}") from cause
        if self.proxy and head.status == 407:
            raise ProxyError("the proxy asks for other credentials (status 407)") from cause
        total = perf_counter() - self.started
        return Response(
            self.request.url,
            head.status,
            head.headers,
            b"" if self._redirects else self._body(head),
            self.request,
            timings=self._timings(total),
            http_version=head.version,
            wire_bytes=self._size,
            peer=self._peer(),
        )

    def _check(self, head: Head) -> None:
        if (size := sum(map(len, self._lines))) > self._options.max_headers:
            limit = self._options.max_headers
            self.error = TooLargeError(f"the headers of {size} bytes are over the limit of {limit}")
        elif head.status == 101:
            self.error = ProtocolError("the server switched to another protocol without being asked")
        elif self._redirects:
            self._limit = _REDIRECT_BODY
        else:
            codings = head.values(b"content-encoding")
            most: float = self._options.max_body
            if self._download is not None and self._accept(self._download, head, codings):
                most = math.inf if self._options.max_save is None else self._options.max_save
            self._limit = most + (_CODING_OVERHEAD if codings else 0)

    def _accept(self, download: Download, head: Head, codings: list[bytes]) -> bool:
        try:
            if download.accept(head.status, head.headers):
                self._sink = _decoding(codings, download)
        except SilklineError as error:
            self.error = error
        return self._sink is not None

    def promises_too_much(self) -> bool:
        """Whether the body will be over the limit by what the header says; then `error` is set."""
        assert self._head is not None
        lengths = self._head.values(b"content-length")
        if not lengths or self._redirects or self.request.method == "HEAD":
            return False
        if not lengths[0].isdigit() or int(lengths[0]) <= self._limit:
            return False
        self.error = self._too_large()
        return True

    def _too_large(self) -> TooLargeError:
        most = self._options.max_body if self._sink is None else self._options.max_save
        return TooLargeError(f"the body is over the limit of {most} bytes")

    def _failure(self, cause: pycurl.error) -> FetchError:
        if cause.args[0] == pycurl.E_OPERATION_TIMEDOUT:
            within = f"within {self._options.connect_timeout:g} s: {self.url[:200]}"
            if self.proxy:
                return ProxyError(f"no connection through the proxy {within}", refused=True)
            return FetchTimeout(f"no connection {within}", self._phase())
        if self._refusal is not None and cause.args[0] == pycurl.E_COULDNT_CONNECT:
            return self._refusal
        theirs = self._proxy_failure(cause) if self.proxy else None
        return theirs or failure(cause, self.url)

    def _proxy_failure(self, cause: pycurl.error) -> FetchError | None:
        """Where it is the proxy that failed; None where it is the server behind it."""
        get, code = self.easy.getinfo, cause.args[0]
        status = get(pycurl.HTTP_CONNECTCODE) if self.tunnelled else 0
        if status and not 200 <= status < 300:
            refused = status != HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
            return ProxyError(f"the proxy refused with status {status}", refused=refused)
        if code == E_PROXY and (what := _UNREACHABLE.get(get(pycurl.PROXY_ERROR))):
            return ConnectError(f"cannot connect: {what} from the proxy: {self.url[:200]}")
        socks = self.proxy.startswith("socks")
        reached = status or (socks and code not in _CONNECTING) or self._lines
        return None if reached else failure(cause, self.url, proxy=True)

    def _phase(self) -> str:
        """What a connection that took too long was waiting for."""
        get = self.easy.getinfo
        if not get(pycurl.NAMELOOKUP_TIME):
            return "dns"
        return "tls" if get(pycurl.CONNECT_TIME) else "connect"

    def _body(self, head: Head) -> bytes:
        """Raises DecodeError and TooLargeError, and what a download raises."""
        if self._sink is not None:
            self._sink.finish()
            return b""
        pieces = self._pieces
        if not pieces:
            return b""
        codings = head.values(b"content-encoding")
        if not codings:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        body = Body(self._options.max_body)
        sink = _decoding(codings, body)
        for piece in pieces:
            sink.write(piece)
        sink.finish()
        return body.join()

    def _timings(self, total: float) -> Timings:
        get = self.easy.getinfo
        first_byte = get(pycurl.STARTTRANSFER_TIME)
        if not get(pycurl.NUM_CONNECTS):
            return Timings(first_byte, total)
        dns, connect, tls = get(pycurl.NAMELOOKUP_TIME), get(pycurl.CONNECT_TIME), get(pycurl.APPCONNECT_TIME)
        return Timings(
            first_byte, total, dns, max(0.0, connect - dns), max(0.0, tls - connect) if tls else 0.0
        )

    def _peer(self) -> str:
        get = self.easy.getinfo
        return address_of((get(pycurl.PRIMARY_IP), get(pycurl.PRIMARY_PORT)))

    # Called by libcurl, which would print an exception and lose it: so what goes wrong is kept in `error`.

    def _write(self, data: bytes) -> int | None:
        if self._head is None:
            usable = self.head_is_complete() and self.error is None and not self.promises_too_much()
            if not usable:
                return 0
        self._size += len(data)
        if self._size > self._limit:
            if not self._redirects:
                self.error = self._too_large()
            return 0
        if self._sink is not None:
            try:
                self._sink.write(data)
            except SilklineError as error:
                self.error = error
                return 0
        elif not self._redirects:
            self._pieces.append(data)
        return None

    def _open_socket(self, purpose: int, address: Any) -> int:
        try:
            if self._guard is not None and not self.proxy:
                self._guard(_host_of(self.url), address.addr[0], address.addr[1])
            opened = socket.socket(address.family, address.socktype, address.protocol)
        except BlockedError as error:
            self._refusal = error
            return int(pycurl.SOCKET_BAD)
        except Exception as error:
            self._refusal = FetchError(f"no socket for {address.addr}: {error}")
            self._refusal.__cause__ = error
            return int(pycurl.SOCKET_BAD)
        self._multi.opened(opened.fileno())
        return opened.detach()


def _decoding(codings: list[bytes], body: Sink) -> Sink:
    return decoding(b", ".join(codings).decode("latin-1"), body)


def _host_of(url: str) -> str:
    """The host of a wire URL, an IPv6 address without its brackets."""
    authority = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]
