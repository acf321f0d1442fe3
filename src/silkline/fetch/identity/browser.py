"""Header sets as browsers send them, that agree in themselves and stay the same for a session and host.

The sets come from browserforge, whose data (how often which browser sends what) is installed with it: nothing
is loaded from the network. What it gets wrong is mended here: Sec-Fetch-* and Accept-Language are written as
the browsers do, sets whose parts contradict each other or that are long out of date are left out.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from silkline.errors import ConfigError
from silkline.fetch.decode import ACCEPT_ENCODING
from silkline.fetch.target import origin

SETS = 64
"""Different header sets that one crawl shows."""

MAX_AGE = 12
"""Releases behind the newest one of its kind that a set may be."""

_TRIES = 40 * SETS
_FAMILY = re.compile(r"(Firefox|Edg|Version|Chrome)/(\d+)")
_SECURE_ONLY = ("sec-", "priority")
"""What browsers send to https alone: client hints, fetch metadata."""
_PLAIN_CODINGS = "gzip, deflate"
"""What browsers accept over plain http, where proxies used to break the newer codings."""
_PLATFORMS = {"Windows": "Windows NT", "macOS": "Macintosh", "Linux": "X11", "Chrome OS": "CrOS"}


class Browser(msgspec.Struct, frozen=True):
    """headers: in the order of the browser. order: the places of all names it may send, in lower case."""

    family: str
    headers: Mapping[str, str]
    order: Mapping[str, int]

    def request_headers(self, url: str, referer: str | None, own: Mapping[str, str]) -> dict[str, str]:
        """All headers of a request for a page, in the browser's order.

        referer: what its Referer header says. own: further headers; they replace the browser's.
        """
        secure = url.startswith("https:")
        headers = {name: value for name, value in self.headers.items() if secure or not _is_secure_only(name)}
        if secure:
            headers["Sec-Fetch-Site"] = fetch_site(url, referer)
        else:
            headers["Accept-Encoding"] = _PLAIN_CODINGS
        names = {name.lower(): name for name in headers}
        for name, value in own.items():
            headers[names.get(name.lower(), name)] = value
        last = len(self.order)
        return dict(sorted(headers.items(), key=lambda header: self.order.get(header[0].lower(), last)))


class Browsers:
    """The header sets of one crawl; all its workers have the same ones.

    seed: what makes them this crawl's. Raises ConfigError where browserforge is not installed.
    """

    def __init__(self, seed: str) -> None:
        self.sets = _sets(seed)
        self._of = lru_cache(4_096)(self._choose)

    def of(self, session: str, generation: int, host: str) -> Browser:
        """The browser that a session shows to a host, always the same until its next generation."""
        return self._of(session, generation, host)

    def _choose(self, session: str, generation: int, host: str) -> Browser:
        key = f"{session}\0{generation}\0{host}".encode()
        number = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest())
        return self.sets[number % len(self.sets)]


def fetch_site(url: str, referer: str | None) -> str:
    """Sec-Fetch-Site: how the page that led here and this one are related (W3C Fetch Metadata)."""
    if referer is None:
        return "none"
    if origin(url) == origin(referer):
        return "same-origin"
    from silkline.fetch.cookies.cookie import site_of  # loads the list of public suffixes

    return "same-site" if site_of(url) == site_of(referer) else "cross-site"


def _sets(seed: str) -> tuple[Browser, ...]:
    try:
        from browserforge.headers import HeaderGenerator
    except ImportError as error:
        raise ConfigError(
            'identity = "browser" needs browserforge: pip install "silkline[identity]"'
        ) from error
    state = random.getstate()
    random.seed(f"silkline {seed}")
    try:
        generator = HeaderGenerator(device="desktop", os=("windows", "macos", "linux"))
        found = [browser for _ in range(_TRIES // 8) if (browser := _browser(generator))]
    finally:
        random.setstate(state)
    newest: dict[str, int] = {}
    for browser in found:
        newest[browser.family] = max(newest.get(browser.family, 0), version_of(browser.headers))
    fresh = [b for b in found if version_of(b.headers) >= newest[b.family] - MAX_AGE]
    return tuple(fresh[:SETS])


def _browser(generator: Any) -> Browser | None:
    """One sample as the browser would really send it; None where its parts do not fit together."""
    given: dict[str, str] = {name: value for name, value in generator.generate().items() if value}
    by_name = {name.lower(): value for name, value in given.items()}
    family = _family(by_name.get("user-agent", ""))
    if family is None or not _agrees(by_name, family):
        return None
    for name in [n for n in given if n.lower().startswith("sec-fetch-") or n.lower() in ("te", "connection")]:
        del given[name]
    codings = [c.strip() for c in by_name.get("accept-encoding", "").split(",")]
    known = {c.strip() for c in ACCEPT_ENCODING.split(",")}
    given["Accept-Encoding"] = ", ".join(c for c in codings if c in known) or _PLAIN_CODINGS
    given["Accept-Language"] = "en-US,en;q=0.5" if family == "firefox" else "en-US,en;q=0.9"
    given |= {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}
    if family != "safari":
        given["Sec-Fetch-User"] = "?1"
    listed = [name.lower() for name in generator.headers_order[family] if not name.startswith(":")]
    order = {name: place for place, name in enumerate(dict.fromkeys(listed))}
    ordered = sorted(given.items(), key=lambda header: order.get(header[0].lower(), len(order)))
    return Browser(family, dict(ordered), order)


def _family(user_agent: str) -> str | None:
    for mark, family in (("Edg/", "edge"), ("Firefox/", "firefox"), ("Chrome/", "chrome")):
        if mark in user_agent:
            return family
    return "safari" if "Version/" in user_agent and "Safari/" in user_agent else None


def version_of(headers: Mapping[str, str]) -> int:
    """The release that a User-Agent names."""
    user_agent = next(value for name, value in headers.items() if name.lower() == "user-agent")
    found = dict(_FAMILY.findall(user_agent))
    return int(next(found[name] for name in ("Edg", "Firefox", "Chrome", "Version") if name in found))


def _agrees(headers: Mapping[str, str], family: str) -> bool:
    """Whether client hints and User-Agent tell of the same browser, release and system."""
    if "accept" not in headers:
        return False
    user_agent, hints = headers["user-agent"], headers.get("sec-ch-ua", "")
    if family in ("firefox", "safari"):
        return not hints
    brand = "Microsoft Edge" if family == "edge" else "Google Chrome"
    chrome = dict(_FAMILY.findall(user_agent))["Chrome"]
    platform = _PLATFORMS.get(headers.get("sec-ch-ua-platform", "").strip('"'))
    return (
        f'"{brand}";v="{version_of(headers)}"' in hints
        and f'"Chromium";v="{chrome}"' in hints
        and platform is not None
        and platform in user_agent
        and headers.get("sec-ch-ua-mobile") == "?0"
        and "Mobile" not in user_agent
    )


def _is_secure_only(name: str) -> bool:
    return name.lower().startswith(_SECURE_ONLY)
