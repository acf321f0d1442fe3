"""One libcurl easy handle and the exchange that it is busy with."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Sequence
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
from silkline.fetch.bounds import MAX_INTERIM, body_too_large, endless, headers_too_large
from silkline.fetch.curl_failures import E_PROXY, failure
from silkline.fetch.curl_multi import Multi
from silkline.fetch.decode import Body, Sink, decoding
from silkline.fetch.download import Download
from silkline.fetch.head import Head, HeadReader
from silkline.fetch.options import FetchOptions
from silkline.fetch.pace import Pace
from silkline.fetch.peer import address_of
from silkline.fetch.proxy import DENIED, DENIED_BY_SOCKS
from silkline.fetch.redirect import REDIRECTS, location_of
from silkline.fetch.target import origin
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
_DENIED = (12, 33)
"""By the same: none of the ways to log in that we offered will do, or it does not know the user."""
_CONNECTING = (
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_RESOLVE_PROXY,
    E_PROXY,
)
_BROKEN = (pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR, pycurl.E_GOT_NOTHING)
_SMALL = 65_536
"""Bytes of a body up to which it does not matter what length it was said to have."""
_LONG_LENGTH, _MAX_DIGITS = 18, 100
_MAX_LENGTH = 2**63 - 1
_TLS = b"SSL connection using "
"""How libcurl begins to tell the version."""
_MAX_PEERS = 4_096
_HEADER_SIZE, _FIRST_BYTE = pycurl.HEADER_SIZE, pycurl.STARTTRANSFER_TIME
_NEW_CONNECTIONS, _CONNECTION = pycurl.NUM_CONNECTS, pycurl.CONN_ID
_REDIRECT_BODY = 65_536
"""Bytes of a redirect's body that keeping its connection is worth."""


class Shared:
    """What all transfers of a client have in common."""

    def __init__(self, options: FetchOptions, guard: Guard | None) -> None:
        self.options = options
        self.guard = guard
        self.reader = HeadReader()
        self._peers: dict[int, str] = {}
        self._versions: dict[int, str] = {}

    def peer(self, get: Callable[[int], Any]) -> str:
        """The address of the other end, which is put together once for a connection."""
        number = get(_CONNECTION)
        known = self._peers.get(number)
        if known is None:
            if len(self._peers) >= _MAX_PEERS:
                self._peers.clear()
            known = self._peers[number] = address_of((get(pycurl.PRIMARY_IP), get(pycurl.PRIMARY_PORT)))
        return known

    def version(self, connection: int, heard: str) -> str:
        """Of a connection's TLS: what was heard when it was made, by this transfer or an earlier one."""
        if heard:
            if len(self._versions) >= _MAX_PEERS:
                self._versions.clear()
            self._versions[connection] = heard
        return self._versions.get(connection, "")


class Transfer:
    """Collects what libcurl's callbacks bring, within the limits, and makes a Response of it.

    easy: libcurl's handle. started: by time.perf_counter. ended: libcurl does not have the handle.
    future: ends with the transfer; its result is libcurl's error, or None.
    proxy: URL of the proxy, or "". tunnelled: it answers a CONNECT first.
    unusual: the handle is set for something else than a GET with the usual headers. targeted: it once got a
        request target of its own, which cannot be taken back, so that each request has to set one. waits: it
        shares a connection that is still being made.
    error: what ended the transfer on our side. size: bytes of the body so far.
    """

    future: asyncio.Future[pycurl.error | None]
    request: Request

    def __init__(self, easy: Any, multi: Multi, shared: Shared) -> None:
        self.easy = easy
        self.started = 0.0
        self.tunnelled = self.unusual = self.targeted = self.waits = False
        self.ended = True
        self.url = self.proxy = ""
        self.size = 0
        self.error: SilklineError | None = None
        self._tls = ""
        self.pace: Pace | None = None
        self._multi = multi
        self._shared = shared
        self._lines: list[bytes] = []
        self._pieces: list[bytes] = []
        self._head: Head | None = None
        self._limit: float = 0
        self._redirects = False
        self._download: Download | None = None
        self._sink: Sink | None = None
        self._refusal: FetchError | None = None
        easy.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        easy.setopt(pycurl.WRITEFUNCTION, self._write)
        easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        easy.setopt(pycurl.DEBUGFUNCTION, self._hear)

    def begin(self, request: Request, url: str, download: Download | None) -> None:
        """`url` is about to be fetched, into a file if there is a `download`."""
        self.request = request
        self.url = url
        self._download = download
        self.ended = False
        self.started = perf_counter()

    def done(self, cause: pycurl.error | None) -> None:
        """libcurl has ended the transfer, or was told to."""
        self.ended = True
        if not self.future.done():
            self.future.set_result(cause)

    def was_unlucky(self, cause: pycurl.error) -> bool:
        """Whether nothing came but the end of a connection that was idle before, and the request may be sent
        again (RFC 9112, section 9.3.1). libcurl tries five such connections and no new one."""
        return (
            cause.args[0] in _BROKEN
            and not self._lines
            and self.error is None
            and not self.proxy
            and self.request.method in ("GET", "HEAD")
            and not self.easy.getinfo(_NEW_CONNECTIONS)
        )

    def forget(self) -> None:
        """Make ready for the next exchange."""
        self.ended = True
        self._lines.clear()
        self._pieces = []
        self._head = None
        self.size = 0
        self._redirects = False
        self._download = self._sink = self._refusal = self.error = self.pace = None

    def head_is_complete(self) -> bool:
        """Whether the answer's header has come. Sets `error` where nothing more should."""
        if self._head is not None:
            return True
        if not self._lines or self._lines[-1].strip():
            return False
        head = self._head = self._shared.reader.read(self._lines)
        if head is None:
            return False
        self._set_limit(head)
        return True

    def has_no_end(self) -> bool:
        """Whether there are only interim answers, and more of them than are read past."""
        ends = sum(not line.strip() for line in self._lines)
        return ends > MAX_INTERIM and not self.head_is_complete()

    def is_redirect(self) -> bool:
        """Whether the answer is a redirect: the rest of its body is not worth waiting for."""
        return self.head_is_complete() and self._redirects

    def response(self, cause: pycurl.error | None) -> Response:
        """What came of the transfer, which ended with `cause`.

        Raises a FetchError whose `__cause__` is the original error.
        """
        if self._head is None:
            self.head_is_complete()
        head = self._head
        if self.error is not None:
            raise self.error from self.error.__cause__ or cause
        if cause is not None and not self._redirects:
            if cause.args[0] == pycurl.E_PARTIAL_FILE and self.promises_too_much():
                raise self.error or cause from cause
            raise self._failure(cause) from cause
        if head is None:
            raise ProtocolError(f"the answer is not valid HTTP: {self.url[:200]}") from cause
        get = self.easy.getinfo
        if get(_HEADER_SIZE) > (limit := self._shared.options.max_headers):
            raise headers_too_large(limit)
        if self.proxy and head.status == 407:
            raise ProxyError(DENIED, denied=True) from cause
        first_byte, total = get(_FIRST_BYTE), perf_counter() - self.started
        return Response(
            self.request.url,
            head.status,
            head.headers,
            b"" if self._redirects else self._body(head),
            self.request,
            (),
            self._timings(first_byte, total) if get(_NEW_CONNECTIONS) else Timings(first_byte, total),
            head.version,
            self.size,
            self._shared.peer(get),
            tls=self._version(get) if self._shared.options.watched else "",
        )

    def _set_limit(self, head: Head) -> None:
        """Of the body, as on the wire."""
        options = self._shared.options
        if head.status in REDIRECTS and location_of(head.status, head.headers) is not None:
            self._redirects = True
            self._limit = _REDIRECT_BODY
            return
        if head.mixed:
            self.error = ProtocolError("the answer is not valid HTTP: it has two lengths")
        elif head.status == 101:
            self.error = ProtocolError("the server switched to another protocol without being asked")
        most: float = options.max_body
        if self._download is not None and self._accept(self._download, head):
            most = math.inf if options.max_save is None else options.max_save
        self._limit = most + _CODING_OVERHEAD if head.codings else most
        if len(head.length or b"") > _LONG_LENGTH and self._is_said_to_be_too_large(head):
            self.error = self._too_large()

    def _accept(self, download: Download, head: Head) -> bool:
        try:
            if download.accept(head.status, head.headers):
                self._sink = _decoding(head.codings, download)
        except SilklineError as error:
            self.error = error
        return self._sink is not None

    def promises_too_much(self) -> bool:
        """Whether the body will be over the limit by what the header says; then `error` is set."""
        if self._head is None or self._redirects or self.request.method == "HEAD":
            return False
        if self._is_said_to_be_too_large(self._head):
            self.error = self._too_large()
        return self.error is not None

    def _is_said_to_be_too_large(self, head: Head) -> bool:
        length = head.length or b""
        # Without a limit there still is the largest number that libcurl can count to.
        return length.isdigit() and int(length[:_MAX_DIGITS]) > min(self._limit, _MAX_LENGTH)

    def _too_large(self) -> TooLargeError:
        options = self._shared.options
        most = options.max_body if self._sink is None else options.max_save
        setting = "max_body" if self._sink is None else "max_save"
        return body_too_large(most, setting)

    def _failure(self, cause: pycurl.error) -> FetchError:
        if cause.args[0] == pycurl.E_OPERATION_TIMEDOUT:
            within = f"within {self._shared.options.connect_timeout:g} s: {self.url[:200]}"
            if self.proxy:
                return ProxyError(f"no connection through the proxy {within}", refused=True)
            return FetchTimeout(f"no connection {within}", self._phase())
        if self._refusal is not None and cause.args[0] == pycurl.E_COULDNT_CONNECT:
            return self._refusal
        theirs = self._proxy_failure(cause) if self.proxy else None
        if theirs is None and self.has_no_end():
            return endless(origin(self.url))
        limit = self._shared.options.max_headers
        return theirs or failure(cause, self.url, max_headers=limit)

    def _proxy_failure(self, cause: pycurl.error) -> FetchError | None:
        """Where it is the proxy that failed; None where it is the server behind it."""
        get, code = self.easy.getinfo, cause.args[0]
        status = get(pycurl.HTTP_CONNECTCODE) if self.tunnelled else 0
        if status and not 200 <= status < 300:
            if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                return ProxyError(DENIED, denied=True)
            return ProxyError(f"the proxy refused with status {status}", refused=True)
        reply = get(pycurl.PROXY_ERROR) if code == E_PROXY else 0
        if what := _UNREACHABLE.get(reply):
            return ConnectError(f"cannot connect: {what} from the proxy: {self.url[:200]}")
        if reply in _DENIED:
            return ProxyError(DENIED_BY_SOCKS, denied=True)
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
        if not head.codings:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        body = Body(self._shared.options.max_body)
        sink = _decoding(head.codings, body)
        for piece in pieces:
            sink.write(piece)
        sink.finish()
        return body.join()

    def _timings(self, first_byte: float, total: float) -> Timings:
        """Of an exchange that made a connection."""
        get = self.easy.getinfo
        dns, connect, tls = get(pycurl.NAMELOOKUP_TIME), get(pycurl.CONNECT_TIME), get(pycurl.APPCONNECT_TIME)
        return Timings(
            first_byte, total, dns, max(0.0, connect - dns), max(0.0, tls - connect) if tls else 0.0
        )

    def _version(self, get: Callable[[int], Any]) -> str:
        """Of TLS. libcurl tells it when it connects only."""
        version, self._tls = self._tls, ""
        if not self.url.startswith("https:"):
            return ""
        return self._shared.version(get(_CONNECTION), version)

    # Called by libcurl, which would print an exception and lose it: so what goes wrong is kept in `error`.

    def _write(self, data: bytes) -> int | None:
        if self._head is None:
            if not self.head_is_complete():
                self.error = ProtocolError(f"the answer is not valid HTTP: {origin(self.url)}")
            if self.error is not None:
                return 0
        before = self.size
        self.size = size = before + len(data)
        if size > self._limit:
            if not self._redirects:
                self.error = self._too_large()
            return 0
        if size > _SMALL >= before and self.promises_too_much():
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

    def _hear(self, kind: int, text: bytes) -> None:
        if kind == pycurl.INFOTYPE_TEXT and text.startswith(_TLS):
            self._tls = text[len(_TLS) :].split()[0].decode("latin-1")

    def _open_socket(self, purpose: int, address: Any) -> int:
        try:
            if self._shared.guard is not None and not self.proxy:
                self._shared.guard(_host_of(self.url), address.addr[0], address.addr[1])
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


def _decoding(codings: Sequence[bytes], body: Sink) -> Sink:
    return decoding(b", ".join(codings).decode("latin-1"), body)


def _host_of(url: str) -> str:
    """The host of a wire URL, an IPv6 address without its brackets."""
    authority = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]
