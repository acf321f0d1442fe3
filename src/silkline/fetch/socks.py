"""aiohttp's connections through a SOCKS5 proxy (RFC 1928, RFC 1929)."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from silkline.errors import ConfigError, ConnectError, ProxyError
from silkline.fetch.connector import Connector, exchange
from silkline.fetch.proxy import DENIED_BY_SOCKS, ProxyAddress

try:
    import python_socks
    from python_socks.async_.asyncio import Proxy
except ImportError:
    python_socks = None  # type: ignore[assignment]

UNREACHABLE = {3: "the network is unreachable", 4: "the host is unreachable", 5: "the connection is refused"}
"""Replies of a proxy that does its work: it is the server that cannot be reached."""
_DENIED = ("authentication failure", "No acceptable authentication")
"""What python-socks says of wrong credentials, in part; it has no code for it."""
MISSING = "a SOCKS proxy needs another package here: pip install 'silkline[socks]'"


def check_socks() -> None:
    """Raises ConfigError where python-socks is not installed."""
    if not has_socks():
        raise ConfigError(MISSING)


def has_socks() -> bool:
    return python_socks is not None


class SocksConnector(Connector):
    """All connections go through one SOCKS5 proxy.

    Raises ProxyError where python-socks is not installed.
    """

    proxied = True

    def __init__(self, proxy: ProxyAddress, *args: Any, **options: Any) -> None:
        if python_socks is None:
            raise ProxyError(MISSING)
        super().__init__(*args, **options)
        self._proxy = Proxy(
            python_socks.ProxyType.SOCKS5,
            proxy.host,
            proxy.port,
            _octets(proxy.user),
            _octets(proxy.password),
            rdns=proxy.scheme == "socks5h",
        )

    async def _establish(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        host = (req.url.raw_host or "").rstrip(".")
        exchange.get().step("connect")
        opened = await self._through_proxy(host, req)
        context = self._get_ssl_context(req)
        name = (req.server_hostname or host) if context else None
        try:
            _, protocol = await self._loop.create_connection(
                self._factory, sock=opened, ssl=context, server_hostname=name
            )
        except ssl.CertificateError as error:
            raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        return protocol

    async def _through_proxy(self, host: str, req: aiohttp.ClientRequest) -> socket.socket:
        try:
            return await self._proxy.connect(host, req.port or 0, timeout=self._connect_timeout)
        except python_socks.ProxyTimeoutError as error:
            raise TimeoutError from error
        except python_socks.ProxyError as error:
            if what := UNREACHABLE.get(error.error_code or 0):
                raise ConnectError(f"cannot connect: {what} from the proxy: {req.url.authority}") from error
            if any(words in str(error) for words in _DENIED):
                raise ProxyError(DENIED_BY_SOCKS, denied=True) from error
            raise ProxyError(f"the proxy refused: {error}") from error
        except OSError as error:
            raise ProxyError(f"the proxy cannot be reached: {error}") from error


class _Octets(str):
    """User names and passwords are octets (RFC 1929), one for each character here; python-socks by itself
    would refuse what is not ASCII."""

    __slots__ = ()

    def encode(self, encoding: str = "latin-1", errors: str = "strict") -> bytes:
        return super().encode("latin-1", errors)


def _octets(text: str | None) -> str | None:
    return None if text is None else _Octets(text.encode().decode("latin-1"))
