"""One cookie, and what a Set-Cookie line says: RFC 6265bis sections 5.1 and 5.6."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from silkline.fetch.cookies.date import cookie_date
from silkline.site import suffixes

MAX_COOKIE_BYTES = 4_096
"""Of name and value together; a cookie over it is dropped (section 5.6)."""
MAX_ATTRIBUTE_BYTES = 1_024
MAX_LIFETIME = 400 * 86_400.0
"""Seconds; no cookie lives longer (section 5.5)."""

LONG_AGO = 0.0

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_AGE = re.compile(r"-?[0-9]+")
_ADDRESS = re.compile(r"\[.*|[0-9]+(?:\.[0-9]+){3}")
_WHITE = " \t"


class Cookie(msgspec.Struct, omit_defaults=True):
    """A stored cookie.

    domain: without a leading dot; for host_only cookies the one host that gets it.
    created: Unix seconds, kept when the cookie is replaced: it decides the order on the wire.
    updated: when it was last set; of two versions the later one counts.
    expires: Unix seconds; None for the end of the session, which is the end of the job. A time that is
        past means that the cookie was deleted.
    """

    name: str
    value: str
    domain: str
    path: str = "/"
    host_only: bool = True
    secure: bool = False
    created: float = 0.0
    updated: float = 0.0
    expires: float | None = None

    @property
    def size(self) -> int:
        return len(self.name) + len(self.value) + len(self.path)

    @property
    def key(self) -> tuple[str, str, bool]:
        """Its identity among the cookies of one domain."""
        return self.name, self.path, self.host_only


class Place(msgspec.Struct, frozen=True):
    """What cookies look at in a URL: host without its port, path without the query, whether it is https."""

    host: str
    path: str
    secure: bool


def place_of(url: str) -> Place:
    """url: as on the wire."""
    scheme, _, authority, *rest = url.split("/", 3)
    path = "/" + rest[0] if rest else "/"
    if "?" in path:
        path = path[: path.index("?")]
    return Place(_host(authority), path, scheme == "https:")


@lru_cache(4_096)
def _host(authority: str) -> str:
    host = authority.rpartition("@")[2]
    return (host if host.endswith("]") else re.sub(r":[0-9]*$", "", host)).lower()


class SetCookie(msgspec.Struct, frozen=True):
    """A Set-Cookie line taken apart. domain, path: "" where nothing usable is said."""

    name: str
    value: str
    domain: str = ""
    path: str = ""
    secure: bool = False
    expires: float | None = None
    same_site_none: bool = False


def parse(line: str, now: float) -> SetCookie | None:
    """What the line asks for, None where it is to be ignored as a whole. now: Unix seconds."""
    if _CONTROL.search(line):
        return None
    pair, *attributes = line.split(";")
    name, equals, value = pair.partition("=")
    if not equals:
        name, value = "", pair
    name, value = name.strip(_WHITE), value.strip(_WHITE)
    if not (name or value) or len(name.encode()) + len(value.encode()) > MAX_COOKIE_BYTES:
        return None
    said: dict[str, str] = {}
    expires: float | None = None
    max_age: float | None = None
    for attribute in attributes:
        key, _, text = attribute.partition("=")
        key, text = key.strip(_WHITE).lower(), text.strip(_WHITE)
        if len(text.encode()) > MAX_ATTRIBUTE_BYTES:
            continue
        if key == "expires":
            moment = cookie_date(text)
            expires = expires if moment is None else min(moment, now + MAX_LIFETIME)
        elif key == "max-age" and _MAX_AGE.fullmatch(text):
            # The length bounds the number: more digits mean the same.
            seconds = 0 if text.startswith("-") else int(text[:15])
            max_age = now + min(seconds, MAX_LIFETIME) if seconds else LONG_AGO
        else:
            said[key] = text
    path = said.get("path", "")
    return SetCookie(
        name=name,
        value=value,
        domain=said.get("domain", "").removeprefix(".").lower(),
        path=path if path.startswith("/") else "",
        secure="secure" in said,
        expires=expires if max_age is None else max_age,
        same_site_none=said.get("samesite", "").lower() == "none",
    )


def cookie_from(line: str, place: Place, now: float) -> Cookie | None:
    """The cookie that the server at `place` may set with this line (section 5.7); None where it may not."""
    said = parse(line, now)
    if said is None or not said.domain.isascii():
        return None
    domain = said.domain
    if domain and is_public_suffix(domain):
        if domain != place.host:
            return None
        domain = ""
    if domain and not domain_matches(place.host, domain):
        return None
    if said.secure and not place.secure:
        return None
    if said.same_site_none and not said.secure:
        return None
    if not _prefix_holds(said, domain):
        return None
    return Cookie(
        name=said.name,
        value=said.value,
        domain=domain or place.host,
        path=said.path or default_path(place.path),
        host_only=not domain,
        secure=said.secure,
        created=now,
        updated=now,
        expires=said.expires,
    )


def _prefix_holds(said: SetCookie, domain: str) -> bool:
    name = (said.name or said.value).lower()
    if not said.name:
        return not name.startswith(("__secure-", "__host-"))
    if name.startswith("__secure-"):
        return said.secure
    if name.startswith("__host-"):
        return said.secure and said.path == "/" and not domain
    return True


def default_path(path: str) -> str:
    """The directory of a request's path (section 5.1.4)."""
    return path.rpartition("/")[0] or "/"


def path_matches(path: str, cookie_path: str) -> bool:
    """Section 5.1.4."""
    return path.startswith(cookie_path) and (
        len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"
    )


def domain_matches(host: str, domain: str) -> bool:
    """Section 5.1.3: the same, or `domain` is a parent of a host that is no address."""
    return host == domain or (host.endswith("." + domain) and not _ADDRESS.fullmatch(host))


@lru_cache(4_096)
def parents(host: str) -> tuple[str, ...]:
    """The host and every domain above it, where it is no address."""
    if _ADDRESS.fullmatch(host):
        return (host,)
    labels = host.split(".")
    return tuple(".".join(labels[first:]) for first in range(len(labels)))


def is_public_suffix(domain: str) -> bool:
    """Whether everybody may register below it, as with com and co.uk: no cookie is for all of that."""
    return not _ADDRESS.fullmatch(domain) and bool(suffixes().is_public(domain))


def site_of(url: str) -> str:
    """Scheme and registrable domain of a URL: "same site" in the sense of the HTML Standard."""
    place = place_of(url)
    domain = place.host if _ADDRESS.fullmatch(place.host) else suffixes().privatesuffix(place.host)
    return f"{'https' if place.secure else 'http'}://{domain or place.host}"
