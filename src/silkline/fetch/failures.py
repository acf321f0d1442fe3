"""aiohttp's exceptions -> the error tree: every way a fetch can fail, in one table."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import aiohttp
from aiohttp.http_exceptions import BadStatusLine, LineTooLong

from silkline.errors import (
    BadUrlError,
    ConnectError,
    DnsError,
    FetchError,
    FetchTimeout,
    ProtocolError,
    ProxyError,
    TlsError,
    TooLargeError,
)
from silkline.fetch.bounds import headers_too_large, too_many_headers
from silkline.fetch.target import origin
from silkline.fetch.trust import TRUST


def _connect_timeout(message: str) -> FetchTimeout:
    return FetchTimeout(message, "connect")


def _read_timeout(message: str) -> FetchTimeout:
    return FetchTimeout(message, "read")


_TABLE: tuple[tuple[type[BaseException], Callable[[str], FetchError], str], ...] = (
    # The first line that matches counts: subclasses stand before their bases.
    (aiohttp.ClientConnectorDNSError, DnsError, "the name cannot be resolved"),
    (aiohttp.ClientProxyConnectionError, ProxyError, "the proxy cannot be reached"),
    (aiohttp.ClientHttpProxyError, ProxyError, "the proxy refused"),
    (aiohttp.ClientSSLError, TlsError, "TLS failed"),
    (aiohttp.ServerFingerprintMismatch, TlsError, "TLS failed"),
    (ssl.SSLError, TlsError, "TLS failed"),
    (aiohttp.ClientConnectorError, ConnectError, "cannot connect"),
    (aiohttp.ConnectionTimeoutError, _connect_timeout, "timeout while connecting"),
    (aiohttp.ServerTimeoutError, _read_timeout, "timeout while waiting for data"),
    (TimeoutError, _connect_timeout, "timeout while connecting"),
    (aiohttp.InvalidURL, BadUrlError, "the URL cannot be requested"),
    (aiohttp.ServerDisconnectedError, ProtocolError, "the server closed the connection without an answer"),
    (aiohttp.ClientPayloadError, ProtocolError, "the body is broken or ends early"),
    (aiohttp.ClientResponseError, ProtocolError, "the answer is not valid HTTP"),
    (aiohttp.ClientOSError, ProtocolError, "the connection broke"),
    (OSError, ProtocolError, "the connection broke"),
    (ValueError, BadUrlError, "the request cannot be sent as it is"),
    (aiohttp.ClientError, ProtocolError, "the exchange failed"),
)


def failure(error: Exception, url: str, max_headers: int = 0) -> FetchError:
    """The error of the tree for an exception of aiohttp, as one line; the caller sets the `__cause__`.

    max_headers: the limit in bytes.

    What the table does not know becomes a plain FetchError (cause "fetch") that names the exception.
    """
    if is_header_limit(error):
        if "Too many headers" in str(error):
            return too_many_headers()
        return headers_too_large(max_headers)
    if isinstance(error, aiohttp.ClientResponseError) and "Content-Length overflow" in error.message:
        return TooLargeError(f"the body is said to be larger than any limit: {origin(url)}")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return TlsError(f"TLS failed: {origin(url)}{detail(error)}; {TRUST}")
    for kind, make, what in _TABLE:
        if isinstance(error, kind):
            return make(f"{what}: {origin(url)}{detail(error)}")
    return FetchError(f"unexpected {type(error).__name__}: {origin(url)}{detail(error)}")


def let_go(error: BaseException) -> None:
    """Drop the tracebacks of an exception and of those that led to it.

    aiohttp keeps the exception with the connection that broke, and the frames of its traceback have that
    connection, with all that it had received: a cycle that would stay until the garbage collector, which a
    crawl lets run rarely, comes by.
    """
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        if (link := chain.pop()) is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = None
            chain += (link.__cause__, link.__context__)


def is_header_limit(error: BaseException | None) -> bool:
    """Whether aiohttp's parser refused a header for its size, or the headers for their number."""
    while error is not None:
        if isinstance(error, LineTooLong) or "Too many headers" in str(error):
            return True
        error = error.__cause__
    return False


def is_no_http(error: BaseException | None) -> bool:
    """Whether the answer does not even begin like one."""
    while error is not None:
        if isinstance(error, BadStatusLine):
            return True
        error = error.__cause__
    return False


def detail(error: BaseException) -> str:
    """What an exception of aiohttp says beyond its class, in brackets; "" for nothing."""
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError)):
        return ""  # both say with the names of classes what the class says
    if isinstance(error, aiohttp.ClientResponseError):
        text = " ".join(error.message.removesuffix("^").split())
        text = text.replace("Bad status line: Expected HTTP/, RTSP/ or ICE/", "it does not begin like HTTP")
        text = text.replace("Bad status line: ", "its status line is none: ")
    elif isinstance(error, aiohttp.ClientConnectorCertificateError):
        text = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
    elif isinstance(error, aiohttp.ClientConnectorError):
        text = error.strerror or str(error.os_error)
    elif isinstance(error, OSError):
        text = getattr(error, "strerror", None) or str(error)
    else:
        text = str(error)
    line = " ".join(text.split())
    return f" ({line if len(line) <= 200 else line[:200] + '…'})" if line else ""
