"""Credentials by origin (RFC 7617 basic, RFC 6750 bearer): one origin's are never sent to another one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping

from silkline.errors import BadUrlError, BlockedError, ConfigError
from silkline.fetch.target import origin, wire_url

_LINE = re.compile(r"(\S+)\s+(basic|bearer)\s+(\S.*)", re.IGNORECASE)
_TOKEN = re.compile(r"[\x21-\x7e]+")

HOW = "write https://api.example.com bearer TOKEN, or https://example.com basic USER:PASSWORD"


def authorizations(lines: Iterable[str]) -> Mapping[str, str]:
    """By origin, the value of the Authorization header.

    lines: `ORIGIN basic USER:PASSWORD` or `ORIGIN bearer TOKEN`; a host name alone means https.

    Raises ConfigError, which never quotes a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ConfigError(f"auth, entry {number}: is not in its form; {HOW}")
        place, scheme, secret = match[1], match[2].lower(), match[3].strip()
        where = _origin(place, number)
        if where in found:
            raise ConfigError(
                f"auth, entry {number}: there are credentials for {where} already; an origin has one of them"
            )
        found[where] = _value(scheme, secret, number)
    return found


def _origin(place: str, number: int) -> str:
    url = place if "://" in place else f"https://{place}"
    try:
        wire = wire_url(url)
    except (BadUrlError, BlockedError) as error:
        raise ConfigError(f"auth, entry {number}: {place[:100]!r} is no origin; {HOW}") from error
    path = wire.split("/", 3)[3]
    if path or "@" in wire:
        raise ConfigError(f"auth, entry {number}: credentials are for a whole origin, without a path; {HOW}")
    return origin(wire)


def _value(scheme: str, secret: str, number: int) -> str:
    if scheme == "bearer":
        if not _TOKEN.fullmatch(secret):
            raise ConfigError(f"auth, entry {number}: the token has characters that no token has; {HOW}")
        return f"Bearer {secret}"
    if ":" not in secret:
        raise ConfigError(f"auth, entry {number}: there is no ':' between user and password; {HOW}")
    try:
        return f"Basic {base64.b64encode(secret.encode()).decode()}"
    except UnicodeEncodeError:
        raise ConfigError(f"auth, entry {number}: user and password are no UTF-8; {HOW}") from None
