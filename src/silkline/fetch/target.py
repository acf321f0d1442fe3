"""The URL as it goes on the wire: one answer for every fetcher."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import ada_url

from silkline.errors import BadUrlError, BlockedError
from silkline.fetch.ports import BAD_PORTS
from silkline.url import serialised

_NAME = r"(?:(?!xn--)[a-z0-9-]+\.)*(?!xn--)[a-z][a-z0-9-]*"
_IPV4 = r"(?:0|[1-9]\d?|1\d\d)(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3}"
_PORT = r":(?!80/|443/)([1-9]\d{1,3}|[1-5]\d{4})"
_PATH = r"/[!$%&()*+,\-./0-9:;=@A-Z_a-z~]*+"
_QUERY = r"\?[!$%&()*+,\-./0-9:;=?@A-Z_a-z~]++"
_origin = re.compile(f"https?://(?:{_NAME}|{_IPV4})(?:{_PORT})?/", re.ASCII).fullmatch
_is_plain = re.compile(f"{_PATH}(?:{_QUERY})?", re.ASCII).fullmatch
"""What follows the origin in URLs that the URL Standard's parser would give back unchanged, if no segment
begins with a dot; a tenth of the cost of asking it."""


def wire_url(url: str) -> str:
    """`url` as a browser requests it: serialised by the URL Standard, without its fragment.

    Percent-escapes and everything else that is valid stay as they were written; spaces, raw UTF-8 and
    the like are escaped, an IDN host becomes ASCII, dot segments are resolved.

    Raises BadUrlError for what is not a URL, and BlockedError for a scheme other than http and https and for
    a port that belongs to another protocol.
    """
    cut = url.find("/", 8)
    if cut > 0 and "/." not in url and _is_plain(url, cut) and (port := _port_of(url[:cut])) is not None:
        if port in BAD_PORTS:
            raise BlockedError(_bad_port(url, port))
        return url
    try:
        parsed = ada_url.URL(url)
        serialised = parsed.href
    except ValueError as error:
        raise BadUrlError(f"{url[:200]!r} is not a valid URL") from error
    if not serialised.startswith(("http://", "https://")):
        raise BlockedError(f"{url[:200]!r} is not an http or https URL")
    if (port := parsed.port) and port in BAD_PORTS:
        raise BlockedError(_bad_port(url, port))
    return serialised.partition("#")[0]


@lru_cache(maxsize=8_192)
def _port_of(origin: str) -> str | None:
    """The port that is written, "" for none; None for an origin that the parser might change."""
    found = _origin(origin + "/")
    return None if found is None else found[1] or ""


def _bad_port(url: str, port: str) -> str:
    return f"{url[:200]!r} has port {port}, where another protocol lives: no browser fetches from there"


def split_credentials(url: str) -> tuple[str, str | None]:
    """A wire URL without its user:password@, and the Authorization value that this part stands for."""
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if "@" not in authority:
        return url, None
    userinfo = authority.rpartition("@")[0]
    user, _, password = userinfo.partition(":")
    token = base64.b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode()
    return f"{scheme}://{rest[len(userinfo) + 1 :]}", f"Basic {token}"


def credentials_apart(url: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    """User and password of a URL as a header, as with a Location: in the URL they would come into items and
    logs. Raises BadUrlError."""
    clean, authorization = split_credentials(serialised(url))
    if authorization is None:
        return url, headers
    if any(name.lower() == "authorization" for name in headers):
        return clean, headers
    return clean, {**headers, "Authorization": authorization}


def origin(url: str) -> str:
    """scheme://host[:port] of a wire URL; equal for two URLs of the same origin."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
