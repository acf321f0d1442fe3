"""The address of a proxy, read the same way for every engine."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from silkline.errors import ProxyError

DENIED = "the proxy asks for other credentials (407)"
DENIED_BY_SOCKS = "the proxy asks for other credentials (SOCKS)"

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class ProxyAddress(NamedTuple):
    """scheme: http, https, socks5 (names are resolved here) or socks5h (by the proxy).

    host: an IPv6 address without brackets. user, password: percent-decoded; None where there is none.
    """

    scheme: str
    host: str
    port: int
    user: str | None
    password: str | None

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    @property
    def authorization(self) -> str:
        """The value of Proxy-Authorization (RFC 7617)."""
        token = base64.b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
        return f"Basic {token}"

    @property
    def location(self) -> str:
        """host:port, fit for a URL and free of credentials."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@lru_cache(maxsize=1024)
def proxy_address(url: str) -> ProxyAddress:
    """Read the URL of a proxy, such as http://user:p%40ss@host:3128 or socks5h://host.

    Raises ProxyError, which does not repeat the URL: there may be a password in it.
    """
    try:
        parts = urlsplit(url)
        scheme, port = parts.scheme.lower(), parts.port
    except ValueError as error:
        raise ProxyError(f"the proxy's URL is not valid: {error}") from error
    if scheme not in _PORTS or not parts.hostname:
        raise ProxyError("the proxy's URL must be like http://user:password@host:3128 or socks5h://host:1080")
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    return ProxyAddress(scheme, parts.hostname, port or _PORTS[scheme], user, password)
