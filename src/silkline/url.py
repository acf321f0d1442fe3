"""URLs: check, resolve, and the canonical form that is a key only.

Parsing follows the WHATWG URL Standard (ada). The canonical form never leaves the program: what was
first seen is what is requested.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

import ada_url

from silkline.errors import BadUrlError

MAX_URL_LENGTH = 8_192
"""Longer URLs are refused: no server takes them and traps grow them."""


def check(url: str) -> str:
    """Return `url` if it can be fetched, without the white space around it.

    Raises BadUrlError, which says what is wrong.
    """
    text = url.strip(" \t\r\n\f")
    if len(text) > MAX_URL_LENGTH:
        raise BadUrlError(f"URL of {len(text)} characters is over the limit of {MAX_URL_LENGTH}")
    scheme = text.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        if "://" not in text and not re.match(r"[a-z][a-z0-9+.-]*:(?!\d)", text, re.I):
            raise BadUrlError(f"{text[:200]!r} has no scheme; write https://{text[:200].lstrip('/')}")
        raise BadUrlError(f"{text[:200]!r} is not an http or https URL")
    if not ada_url.check_url(text):
        raise BadUrlError(f"{text[:200]!r} is not a valid URL")
    return text


def resolve(base: str, href: str) -> str | None:
    """The absolute http(s) URL that `href` means on a page at `base`, or None if there is none."""
    try:
        url = ada_url.join_url(base, href)
    except ValueError:
        return None
    return url if url.startswith(("http://", "https://")) and len(url) <= MAX_URL_LENGTH else None


def canonical(url: str) -> str:
    """The key form: lower-case scheme and host, no default port, dot segments or fragment, sorted query.

    Raises BadUrlError for what is not a URL.
    """
    try:
        parts = urlsplit(ada_url.normalize_url(url))
    except ValueError as error:
        raise BadUrlError(f"{url[:200]!r} is not a valid URL") from error
    query = "&".join(sorted(parts.query.split("&"))) if "&" in parts.query else parts.query
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")


def host_of(url: str) -> str:
    """The politeness key of a URL: scheme://host:port, the port always written."""
    parsed = ada_url.URL(url)
    port = parsed.port or ("443" if parsed.protocol == "https:" else "80")
    return f"{parsed.protocol}//{parsed.hostname}:{port}"


def fingerprint_of(url: str, method: str = "GET", body: bytes | None = None, key: str | None = None) -> int:
    """Signed 64-bit BLAKE2b of method + canonical URL + body, or of `key` alone when it is given."""
    if key is not None:
        text = b"key\0" + key.encode()
    else:
        text = f"{method}\0{canonical(url)}\0".encode("utf-8", "surrogatepass") + (body or b"")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)
