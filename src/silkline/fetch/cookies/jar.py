"""The cookies of one session: RFC 6265bis sections 5.7 and 5.8, bounded in number and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from silkline.fetch.cookies.cookie import (
    Cookie,
    Place,
    cookie_from,
    domain_matches,
    parents,
    path_matches,
)

MAX_PER_DOMAIN = 180
MAX_COOKIES = 3_000
MAX_BYTES = 1_048_576
MAX_HEADER = 32_768
"""Bounds of one jar, and of one Cookie header in bytes: a server that sets more loses the oldest ones.
The first two are what browsers have (section 6.1 asks for 50 and 3,000 at least)."""

TOMBSTONE = 3_600.0
"""Seconds for which a deletion is remembered, so that other workers with the cookie learn of it."""

_TICK = 1e-6
"""Two cookies never have the same time, which is their order."""

Domain = dict[tuple[str, str, bool], Cookie]


class Jar:
    """Cookies by domain. `version` grows with every change."""

    def __init__(self, cookies: Iterable[Cookie] = ()) -> None:
        self.version = 0
        self._domains: dict[str, Domain] = {}
        self._secure: Counter[str] = Counter()
        self._count = 0
        self._bytes = 0
        self._last = 0.0
        for cookie in cookies:
            self._put(cookie)

    def __iter__(self) -> Iterator[Cookie]:
        """All, deleted ones included, in no order."""
        return (cookie for domain in self._domains.values() for cookie in domain.values())

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return bool(self._count)

    def header(self, place: Place, now: float) -> str:
        """The value of the Cookie header for a request there; "" for none."""
        found: list[Cookie] = []
        for name in parents(place.host):
            if (domain := self._domains.get(name)) is not None:
                found += [cookie for cookie in domain.values() if _goes_to(cookie, place, now)]
        if not found:
            return ""
        found.sort(key=_order)
        size = 0
        pairs = []
        for cookie in found:
            pair = f"{cookie.name}={cookie.value}" if cookie.name else cookie.value
            size += len(pair) + 2
            if size > MAX_HEADER:
                break
            pairs.append(pair)
        return "; ".join(pairs)

    def take(self, lines: Iterable[bytes], place: Place, now: float) -> None:
        """Store what the Set-Cookie lines of one response say, as far as they are allowed to."""
        for line in lines:
            try:
                cookie = cookie_from(line.decode(), place, now)
            except UnicodeDecodeError:
                continue  # neither engine could send it back as the same bytes
            if cookie is not None and not self._shadows_secure(cookie, place):
                self._store(cookie)
        self._evict(now)

    def merge(self, cookies: Iterable[Cookie]) -> bool:
        """Take over those that were set later than ours. Returns whether ours have anything newer."""
        ahead = False
        seen = set()
        for cookie in cookies:
            seen.add((cookie.domain, cookie.key))
            own = self._domains.get(cookie.domain, {}).get(cookie.key)
            if own is None or own.updated < cookie.updated:
                self._put(cookie)
                self.version += 1
            elif own.updated > cookie.updated:
                ahead = True
        return ahead or any((cookie.domain, cookie.key) not in seen for cookie in self)

    def kept(self, now: float) -> Sequence[Cookie]:
        """All that are worth keeping, oldest first; the others are forgotten."""
        for cookie in [c for c in self if _is_forgotten(c, now)]:
            self._remove(cookie)
        self._evict(now)
        return sorted(self, key=lambda cookie: cookie.created)

    def _shadows_secure(self, cookie: Cookie, place: Place) -> bool:
        """Whether it comes over plain http and would stand in for a Secure cookie (section 5.7)."""
        if place.secure:
            return False
        return cookie.name in self._secure and any(
            other.secure
            and other.name == cookie.name
            and (domain_matches(cookie.domain, other.domain) or domain_matches(other.domain, cookie.domain))
            and path_matches(cookie.path, other.path)
            for other in self
        )

    def _store(self, cookie: Cookie) -> None:
        self._last = cookie.updated = max(cookie.updated, self._last + _TICK)
        own = self._domains.get(cookie.domain, {}).get(cookie.key)
        if own is None and _is_dead(cookie, cookie.updated):
            return
        if own is not None and _is_same(own, cookie):
            return  # the same again, as some sites send with every page: nothing to tell anybody
        alive = own is not None and not _is_dead(own, cookie.updated)
        cookie.created = own.created if own is not None and alive else cookie.updated
        if _is_dead(cookie, cookie.updated):
            cookie.value = ""
        self._put(cookie)
        self.version += 1

    def _put(self, cookie: Cookie) -> None:
        self._last = max(self._last, cookie.updated)
        domain = self._domains.setdefault(cookie.domain, {})
        if (own := domain.get(cookie.key)) is not None:
            self._remove(own)
            domain = self._domains.setdefault(cookie.domain, domain)
        if cookie.secure:
            self._secure[cookie.name] += 1
        domain[cookie.key] = cookie
        self._bytes += cookie.size
        self._count += 1
        if len(domain) > MAX_PER_DOMAIN:
            self._remove(min(domain.values(), key=_eviction))

    def _evict(self, now: float) -> None:
        if self._count <= MAX_COOKIES and self._bytes <= MAX_BYTES:
            return
        for cookie in [c for c in self if _is_forgotten(c, now)]:
            self._remove(cookie)
        # A tenth more than needed, so that a full jar is not sorted for every further cookie.
        most, most_bytes = MAX_COOKIES * 9 // 10, MAX_BYTES * 9 // 10
        if self._count > MAX_COOKIES or self._bytes > MAX_BYTES:
            for cookie in sorted(self, key=_eviction):
                if self._count <= most and self._bytes <= most_bytes:
                    break
                self._remove(cookie)

    def _remove(self, cookie: Cookie) -> None:
        domain = self._domains[cookie.domain]
        del domain[cookie.key]
        if cookie.secure:
            self._secure[cookie.name] -= 1
            if not self._secure[cookie.name]:
                del self._secure[cookie.name]
        self._count -= 1
        self._bytes -= cookie.size
        if not domain:
            del self._domains[cookie.domain]


def _goes_to(cookie: Cookie, place: Place, now: float) -> bool:
    """Section 5.8.3; the domain is known to fit."""
    return (
        (cookie.expires is None or cookie.expires > now)
        and (not cookie.host_only or cookie.domain == place.host)
        and (place.secure or not cookie.secure)
        and path_matches(place.path, cookie.path)
    )


def _is_dead(cookie: Cookie, now: float) -> bool:
    return cookie.expires is not None and cookie.expires <= now


def _is_forgotten(cookie: Cookie, now: float) -> bool:
    return _is_dead(cookie, now) and cookie.updated <= now - TOMBSTONE


def _is_same(one: Cookie, other: Cookie) -> bool:
    return (
        one.value == other.value
        and one.secure == other.secure
        and one.expires is None
        and other.expires is None
    )


def _order(cookie: Cookie) -> tuple[int, float]:
    """Longer paths first, among equals the older ones (section 5.8.3)."""
    return -len(cookie.path), cookie.created


def _eviction(cookie: Cookie) -> tuple[bool, bool, float]:
    """Deleted ones go first, then what is not Secure, then the one that was set longest ago (section 5.7)."""
    return not _is_dead(cookie, cookie.updated), cookie.secure, cookie.updated
