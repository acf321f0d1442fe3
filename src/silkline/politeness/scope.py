"""Where a crawl may go: hosts, paths, patterns. What is outside is refused, with the rule that refuses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from silkline.errors import BadUrlError, SettingError
from silkline.outcome import NONE_REFUSED, Refused
from silkline.site import registrable_domain
from silkline.url import check, host_of
from silkline.values import ScopeKind

if TYPE_CHECKING:
    import regex

SLOW = 0.1
"""Seconds that a pattern may take for one URL."""

ORIGINS_KEPT = 8_192

MEDIA = "media"
"""A word for the endings of what holds neither text nor links."""

_MEDIA = """
jpg jpeg jpe png gif webp avif heic heif bmp ico cur svg svgz tif tiff psd ai eps raw cr2 nef dng
mp3 m4a aac ogg oga opus flac wav wma mid midi mp4 m4v mov avi mkv webm ogv wmv flv mpg mpeg 3gp m3u8 ts
zip gz tgz bz2 tbz xz txz zst 7z rar tar lz lzma cab iso img dmg pkg deb rpm apk msi exe bin jar war
css js mjs map wasm woff woff2 ttf otf eot swf
"""
MEDIA_EXTENSIONS = frozenset(_MEDIA.split())


class ScopeRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules, as they are kept with a job.

    kind: "host", the hosts where the crawl starts, with their ports; "site", their registrable domains;
        "anywhere"; "auto", host where allow_hosts says more hosts, else anywhere.
    sites: the host[:port] of the URLs where it starts, as far as they are known.
    allow_hosts: more of them; `*.example.com` stands for all its subdomains.
    allow, deny: regular expressions, searched for in the URL: one of the first must match, none of these.
    paths: how the path must begin. schemes: http, https or both.
    skip_extensions: endings of the path that are not followed, without the dot; `media` for the usual ones.
    max_depth: links from where it starts; None for any number. max_pages_per_host: the budget of each host.
    """

    kind: ScopeKind = "auto"
    sites: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("http", "https")
    skip_extensions: tuple[str, ...] = ()
    max_depth: int | None = None
    max_pages_per_host: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether hosts are bounded."""
        return self.kind in ("host", "site") or (self.kind == "auto" and bool(self.allow_hosts))

    @property
    def any(self) -> bool:
        """Whether there is any rule that an URL could break."""
        lists = self.allow or self.deny or self.paths or self.skip_extensions
        return self.bounded or bool(lists) or set(self.schemes) != {"http", "https"}


class Scope:
    """Says of links whether they are inside.

    A page's own host is inside, or the page would not be visited: that holds however many starts there are,
    and needs no memory. What a start redirects to counts as its host, too; what another page redirects to
    does not.

    Raises SettingError for rules that cannot be.
    """

    def __init__(self, rules: ScopeRules) -> None:
        self.rules = rules
        self._by_site = rules.kind == "site"
        self._bounded = rules.bounded
        self._homes = {_domain(site) if self._by_site else site for site in rules.sites}
        self._names, self._suffixes = _allowed_hosts(rules.allow_hosts)
        self._allow = [_pattern("allow", text) for text in rules.allow]
        self._deny = [_pattern("deny", text) for text in rules.deny]
        self._paths = rules.paths
        self._schemes = tuple(f"{scheme}://" for scheme in rules.schemes)
        self._any_scheme = set(rules.schemes) == {"http", "https"}
        self._skipped = _extensions(rules.skip_extensions)
        self._units: dict[str, str] = {}
        for path in rules.paths:
            if not path.startswith("/"):
                raise SettingError("paths", f"{path!r} is no beginning of a path; write /products/")

    def admitted(
        self, urls: Sequence[str], requested: str, reached: str, depth: int, refused: dict[str, Refused]
    ) -> list[str]:
        """The links that are inside, of a page that was requested by one URL and reached at another one,
        `depth` links from the start. The others are counted in `refused`, by the reason."""
        homes: set[str] = set()
        if self._bounded:
            homes.add(self._unit(requested))
            if depth == 0:
                homes.add(self._unit(reached))
        inside = []
        for url in urls:
            reason = self._outside(url, homes)
            if reason:
                refused[reason] = refused.get(reason, NONE_REFUSED) + Refused(1, url)
            else:
                inside.append(url)
        return inside

    def redirect(self, url: str, requested: str, depth: int) -> str:
        """Why a page that was requested by one URL may not be redirected to another; "" where it may.

        Where the crawl starts it may lead to any host and past what narrows the choice of links.
        """
        if depth == 0:
            return self._scheme_or_deny(url)
        return self._outside(url, {self._unit(requested)} if self._bounded else set())

    def refusal(self, url: str) -> str:
        """Why a link to the URL is refused on pages of other hosts, or sites; "" where it is not."""
        return self._outside(url, set())

    def refusal_at_home(self, url: str) -> str:
        """Why it is refused on pages of its own host, or site, and so on any page; "" where it is not."""
        return self._outside(url, {self._unit(url)} if self._bounded else set())

    def _outside(self, url: str, homes: set[str]) -> str:
        if self._bounded and not self._holds(url, homes):
            return "on another site" if self._by_site else "on another host"
        cut = url.find("/", 8)
        if self._paths and not url.startswith(self._paths, cut):
            return "not below " + " or ".join(self._paths)
        if self._skipped and (ending := _extension(url, cut)) in self._skipped:
            return f"a .{ending} file"
        if reason := self._scheme_or_deny(url):
            return reason
        if self._allow and not any(_found(pattern, url) for pattern in self._allow):
            return "matched by no allow pattern"
        return ""

    def _scheme_or_deny(self, url: str) -> str:
        if not self._any_scheme and not url.startswith(self._schemes):
            return f"not {' or '.join(self.rules.schemes)}"
        for pattern in self._deny:
            found = _found(pattern, url)
            if found is None:
                return f"the deny pattern {pattern.pattern} takes too long"
            if found:
                return f"denied by {pattern.pattern}"
        return ""

    def _holds(self, url: str, homes: set[str]) -> bool:
        unit = self._unit(url)
        if unit in homes or unit in self._homes:
            return True
        if not (self._names or self._suffixes):
            return False
        host = _host_port(url[: url.find("/", 8)])
        if host in self._names:
            return True
        name = re.sub(r":\d+$", "", host)
        return name in self._names or name.endswith(self._suffixes)

    def _unit(self, url: str) -> str:
        """What of the URL decides: its host and port, or its registrable domain."""
        cut = url.find("/", 8)
        origin = url[:cut] if cut > 0 else re.split(r"[?#]", url, maxsplit=1)[0]
        unit = self._units.get(origin)
        if unit is None:
            if len(self._units) >= ORIGINS_KEPT:
                self._units.clear()
            host = _host_port(origin)
            unit = self._units[origin] = _domain(host) if self._by_site else host
        return unit


def site_of(url: str) -> str:
    """Host name, with its port unless it is the scheme's own. Raises BadUrlError for what is not a URL."""
    scheme, _, host = host_of(url).partition("://")
    return host.removesuffix(":443" if scheme == "https" else ":80")


def sites_of(urls: Iterable[str], most: int = 1_000) -> tuple[str, ...]:
    """Those of the first `most` of these URLs; what is no URL is left out."""
    found: dict[str, None] = {}
    for url in urls:
        try:
            found[site_of(check(url))] = None
        except BadUrlError:
            continue
        if len(found) == most:
            break
    return tuple(found)


def check_rules(rules: ScopeRules) -> None:
    """Raises SettingError."""
    Scope(rules)


def _host_port(origin: str) -> str:
    """Of a serialised origin; the port only where it is not the scheme's own, which is not written there."""
    scheme, _, authority = origin.partition("://")
    host = authority.rpartition("@")[2].lower()
    return host.removesuffix(":443" if scheme == "https" else ":80")


def _domain(host: str) -> str:
    return registrable_domain(re.sub(r":\d+$", "", host))


def _allowed_hosts(hosts: Iterable[str]) -> tuple[set[str], tuple[str, ...]]:
    names: set[str] = set()
    suffixes: tuple[str, ...] = ()
    for host in hosts:
        if host.startswith("*."):
            suffixes += ("." + _allowed_host(host[2:], host),)
        else:
            names.add(_allowed_host(host, host))
    return names, suffixes


def _allowed_host(name: str, written: str) -> str:
    try:
        if re.search(r"[/@?#\s*]", name):
            raise BadUrlError(f"{name} is no host name")
        return re.sub(r":(80|443)$", "", site_of(check(f"http://{name}/")))
    except BadUrlError as error:
        raise SettingError(
            "allow_hosts",
            f"{written!r} is no host; write cdn.example.com, *.example.com or host:8080, "
            "or --scope anywhere for all hosts",
        ) from error


def _pattern(setting: str, text: str) -> regex.Pattern[str]:
    import regex  # here: most crawls have no patterns

    if not text.strip():
        raise SettingError(
            setting, "has an empty pattern, which matches every URL; leave it out, or write '/product/'"
        )
    try:
        return regex.compile(text)
    except regex.error as error:
        raise SettingError(setting, f"{text!r} is no regular expression: {error}") from error


def _found(pattern: regex.Pattern[str], url: str) -> bool | None:
    """None where that takes too long to find out: some patterns double their time with each character."""
    try:
        return pattern.search(url, timeout=SLOW) is not None
    except TimeoutError:
        return None


def _extensions(endings: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for ending in endings:
        found.update(MEDIA_EXTENSIONS if ending == MEDIA else (ending.lower().removeprefix("."),))
    return frozenset(found)


def _extension(url: str, cut: int) -> str:
    """What follows the last dot of the last segment of the path, in lower case; "" for nothing."""
    end = url.find("?", cut)
    path = url if end < 0 else url[:end]
    dot = path.rfind(".", max(path.rfind("/"), cut))
    return path[dot + 1 :].lower() if dot > 0 else ""
