"""What libcurl's easy handles are told: once, and for each request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pycurl  # type: ignore[import-untyped]

from silkline.fetch.curl_transfer import Transfer
from silkline.fetch.options import FetchOptions, with_defaults
from silkline.fetch.proxy import proxy_address
from silkline.fetch.sent import check_sendable
from silkline.fetch.target import split_credentials
from silkline.fetch.trust import ca_paths
from silkline.request import Request

_DNS_CACHE_SECONDS = 300
_IDLE_SECONDS = 15
"""Idle connections are not used after that long: servers close theirs at about the same age."""

_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, for which pycurl has no name: a proxy's headers are not the answer's."""

_VERSIONS = {
    "auto": pycurl.CURL_HTTP_VERSION_2TLS,
    "1.1": pycurl.CURL_HTTP_VERSION_1_1,
    "2": pycurl.CURL_HTTP_VERSION_2TLS,
    "3": pycurl.CURL_HTTP_VERSION_3,
}
"""HTTP/3 falls back on the others where a server has none."""

_has_lower_escape = re.compile(r"%(?:[a-f]|[0-9A-F][a-f])").search
"""libcurl writes the escapes of a path in upper case; some servers tell the two apart."""


class Setup:
    """Sets the options of easy handles.

    Raises ConfigError for options that cannot be met.
    """

    def __init__(self, options: FetchOptions) -> None:
        self._usual = options.headers
        self._usual_lines = _lines(self._usual)
        self._fixed: list[tuple[int, Any]] = [
            (pycurl.NOSIGNAL, 1),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.HTTP09_ALLOWED, 0),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.PROXY, ""),  # or libcurl would take one from the environment
            (pycurl.HTTPHEADER, self._usual_lines),
            (pycurl.HTTP_VERSION, _VERSIONS[options.http_version]),
            (pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_SECONDS),
            (pycurl.MAXAGE_CONN, _IDLE_SECONDS),
            (pycurl.CONNECTTIMEOUT_MS, max(1, round(options.connect_timeout * 1000))),
        ]
        if options.watched:
            self._fixed.append((pycurl.VERBOSE, 1))
        if not options.verify:
            self._fixed += [(pycurl.SSL_VERIFYPEER, 0), (pycurl.SSL_VERIFYHOST, 0)]
            self._fixed += [(pycurl.PROXY_SSL_VERIFYPEER, 0), (pycurl.PROXY_SSL_VERIFYHOST, 0)]
            return
        file, directory = ca_paths(options)
        if file:
            self._fixed += [(pycurl.CAINFO, file), (pycurl.PROXY_CAINFO, file)]
        if directory:
            self._fixed += [(pycurl.CAPATH, directory), (pycurl.PROXY_CAPATH, directory)]

    def easy(self) -> Any:
        """A new handle, ready for GET requests that carry the usual headers."""
        easy = pycurl.Curl()
        for option, value in self._fixed:
            easy.setopt(option, value)
        return easy

    def apply(self, transfer: Transfer, request: Request, url: str) -> str:
        """Tell the handle of `transfer` about one request; returns the URL without credentials.

        Raises BadUrlError for a method or header that cannot be sent, ProxyError for a proxy that is none.
        """
        easy, headers = transfer.easy, request.headers
        if "@" in url:
            url, authorization = split_credentials(url)
            if authorization and not any(name.lower() == "authorization" for name in headers):
                headers = {**headers, "Authorization": authorization}
        if transfer.unusual:
            self._restore(transfer)
        proxy = request.proxy or ""
        if proxy != transfer.proxy:
            self._use_proxy(transfer, proxy)
        if headers or request.body is not None or request.method != "GET":
            self._say_unusual(transfer, request, headers)
        easy.setopt(pycurl.URL, url)
        if transfer.targeted or ("%" in url and _has_lower_escape(url)):
            target = url if proxy.startswith("http") and url.startswith("http:") else _target(url)
            easy.setopt(pycurl.REQUEST_TARGET, target)
            transfer.targeted = True
        tls = url.startswith("https:")
        transfer.tunnelled = tls and proxy.startswith("http")
        if tls != transfer.waits:
            # With TLS a connection that is being made may take all requests to a host. Without it there is no
            # HTTP/2, but libcurl would wait all the same.
            easy.setopt(pycurl.PIPEWAIT, int(tls))
            transfer.waits = tls
        return url

    def _say_unusual(self, transfer: Transfer, request: Request, headers: Mapping[str, str]) -> None:
        check_sendable(request.method, headers)
        transfer.unusual = True
        easy, method = transfer.easy, request.method.upper()
        lines = _lines(with_defaults(headers, self._usual))
        if request.body is not None:
            names = {name.lower() for name in headers}
            # libcurl would add fields of its own to a body.
            lines += [f"{name}:".encode() for name in ("Content-Type", "Expect") if name.lower() not in names]
            easy.setopt(pycurl.POSTFIELDS, request.body)
        elif method == "POST":
            easy.setopt(pycurl.POSTFIELDS, b"")
            lines += [b"Content-Type:"]
        if method == "HEAD":
            easy.setopt(pycurl.NOBODY, 1)
        elif method != "GET" or request.body is not None:
            easy.setopt(pycurl.CUSTOMREQUEST, method)
        easy.setopt(pycurl.HTTPHEADER, lines)

    def _restore(self, transfer: Transfer) -> None:
        easy = transfer.easy
        easy.setopt(pycurl.HTTPGET, 1)
        easy.unsetopt(pycurl.CUSTOMREQUEST)
        easy.setopt(pycurl.HTTPHEADER, self._usual_lines)
        transfer.unusual = False

    def _use_proxy(self, transfer: Transfer, proxy: str) -> None:
        easy = transfer.easy
        address = proxy_address(proxy) if proxy else None
        transfer.proxy = proxy
        if address is None:
            easy.setopt(pycurl.PROXY, "")
            easy.setopt(pycurl.IPRESOLVE, pycurl.IPRESOLVE_WHATEVER)
            return
        # A name that is resolved here becomes one address; that of IPv4 is the one that most proxies can use.
        resolve = pycurl.IPRESOLVE_V4 if address.scheme == "socks5" else pycurl.IPRESOLVE_WHATEVER
        easy.setopt(pycurl.IPRESOLVE, resolve)
        easy.setopt(pycurl.PROXY, f"{address.scheme}://{address.location}")
        easy.setopt(pycurl.PROXYUSERNAME, (address.user or "").encode())
        easy.setopt(pycurl.PROXYPASSWORD, (address.password or "").encode())


def _lines(headers: Mapping[str, str]) -> list[bytes]:
    """As libcurl takes them: an empty value is written with a semicolon, a colon would drop the field."""
    return [
        f"{name}: {value}".encode() if value.strip(" \t") else f"{name};".encode()
        for name, value in headers.items()
    ]


def _target(url: str) -> str:
    """Path and query of a wire URL."""
    return "/" + url.partition("://")[2].partition("/")[2]
