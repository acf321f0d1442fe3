"""aiohttp's sessions for requests that go through a proxy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import aiohttp
import yarl
from aiohttp import hdrs

from silkline.errors import FetchError, ProxyError, TlsError
from silkline.fetch.failures import detail, is_header_limit, is_no_http
from silkline.fetch.proxy import DENIED, ProxyAddress, proxy_address
from silkline.fetch.target import origin

MAX_SOCKS = 256
"""SOCKS proxies whose connections are kept; a provider may have a user name for each session."""

OpenSession = Callable[[ProxyAddress], aiohttp.ClientSession]

_FAILURES = (
    aiohttp.ClientProxyConnectionError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ClientConnectorDNSError,  # the only name that is resolved here is the proxy's
)


class _Kept:
    __slots__ = ("session", "users")

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.users = 0


class Proxied:
    """One session does for all HTTP proxies; each SOCKS proxy has its own, made by `open_socks`."""

    def __init__(self, session: aiohttp.ClientSession, open_socks: OpenSession) -> None:
        self._session = session
        self._open_socks = open_socks
        self._kept: OrderedDict[ProxyAddress, _Kept] = OrderedDict()

    @asynccontextmanager
    async def session(self, url: str) -> AsyncIterator[tuple[aiohttp.ClientSession, dict[str, Any]]]:
        """The session for this proxy, and what its `request` has to be told.

        Raises ProxyError for a URL that is none.
        """
        address = proxy_address(url)
        if not address.is_socks:
            yield self._session, _arguments(address)
            return
        kept = self._kept.get(address)
        if kept is None:
            kept = self._kept[address] = _Kept(self._open_socks(address))
        self._kept.move_to_end(address)
        kept.users += 1
        try:
            yield kept.session, {}
        finally:
            kept.users -= 1
            await self._shrink()

    async def close(self) -> None:
        for kept in self._kept.values():
            await kept.session.close()
        self._kept.clear()

    async def _shrink(self) -> None:
        if len(self._kept) <= MAX_SOCKS:
            return
        for address, kept in list(self._kept.items()):
            if not kept.users:
                del self._kept[address]
                await kept.session.close()
                return


def _arguments(address: ProxyAddress) -> dict[str, Any]:
    proxy = yarl.URL(f"{address.scheme}://{address.location}")
    if address.user is None:
        return {"proxy": proxy}
    return {"proxy": proxy, "proxy_headers": {hdrs.PROXY_AUTHORIZATION: address.authorization}}


def proxy_failure(error: Exception, url: str, proxy: str, connecting: bool) -> FetchError | None:
    """The error of the tree where it is the proxy that failed; None where it is the server.

    connecting: there was no connection to the server yet.
    """
    address = proxy_address(proxy)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        if error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            return ProxyError(DENIED, denied=True)
        return ProxyError(f"the proxy refused with status {error.status}", refused=True)
    own_tls = isinstance(error, aiohttp.ClientConnectorError) and error.host == address.host
    if isinstance(error, _FAILURES) or (own_tls and error.port == address.port):  # type: ignore[attr-defined]
        return ProxyError(f"the proxy cannot be reached{detail(error)}")
    if isinstance(error, aiohttp.ClientConnectorError):
        # Not to the proxy: it made a tunnel, and there is no TLS at its end.
        return TlsError(f"TLS failed: {origin(url)}{detail(error)}") if connecting else None
    if address.is_socks or not (connecting or url.startswith("http:")):
        return None
    if isinstance(error, aiohttp.ClientResponseError) and not is_header_limit(error):
        if connecting or is_no_http(error):
            return ProxyError(f"the proxy's answer is not valid HTTP{detail(error)}")
        return None
    broke = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
    tls = isinstance(error, aiohttp.ClientSSLError)
    if broke and not tls:
        return ProxyError(f"the proxy broke the connection without an answer{detail(error)}")
    return None
