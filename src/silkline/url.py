"""URLs: check, resolve, and the canonical form that is a key only.

Parsing follows the WHATWG URL Standard (ada). Most URLs of a crawl are plain: safe ASCII characters, no
dot segments, an origin written as the standard would write it. Those take a short way here, which property
tests hold equal to the full parser; everything else goes to the full parser.

The canonical form never leaves the program: what was first seen is what is requested.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import ada_url

from silkline.errors import BadUrlError

MAX_URL_LENGTH = 8_192
"""Longer URLs are refused: no server takes them and traps grow them."""

MAX_HOST_LENGTH = 253
MAX_LABEL_LENGTH = 63
"""RFC 1035, section 2.3.4: what the DNS can look up."""

_PATH = r"A-Za-z0-9_~!$&'()*+,;=@%./"
_QUERY = r"(?:\?[A-Za-z0-9_~!$&()*+,;=:@%./?-]++)?"
_ROOTED = rf"/(?:[A-Za-z0-9_~!$&'()*+,;=:@-][{_PATH}:-]*+)?{_QUERY}"
_is_rooted = re.compile(_ROOTED).fullmatch
_are_rooted = re.compile(rf"{_ROOTED}(?:\n{_ROOTED})*+").fullmatch
_is_relative = re.compile(rf"[A-Za-z0-9_~-][{_PATH}-]*+{_QUERY}").fullmatch
_is_query = re.compile(_QUERY).fullmatch
_is_rfc3986 = re.compile(r"https?://[^/?#][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*", re.I).fullmatch
_lone_surrogates = re.compile("[\ud800-\udfff]")
_has_other_scheme = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.I).match
_has_scheme = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.I).match

_escapes = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%([0-9A-Fa-f]{2})")
_signed_64_bits = struct.Struct(">q").unpack
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class _Base(NamedTuple):
    """A page's address, taken apart: what stands before a rooted, a relative and a query-only reference.

    page: the whole of it, without the fragment.
    """

    origin: str
    folder: str
    path: str
    page: str


def check(url: str) -> str:
    """Return `url` if it can be fetched, without the white space around it.

    It stays as it was written, unless it holds characters that no URL may hold (spaces, letters beyond
    ASCII, backslashes): then its serialised form is returned. One with a user or password is refused: it
    would show them wherever a page's URL is kept.

    Raises BadUrlError, which says what is wrong.
    """
    text = url.strip(" \t\r\n\f")
    if len(text) > MAX_URL_LENGTH:
        raise BadUrlError(f"URL of {len(text)} characters is over the limit of {MAX_URL_LENGTH}")
    cut = text.find("/", 8)
    if cut > 0 and _origin_key(text[:cut]) and _is_rooted(text[cut:]):
        return text
    try:
        parsed = ada_url.URL(_scalars(text))
        serialised = parsed.href
    except ValueError:
        raise BadUrlError(_fault(text)) from None
    if not serialised.startswith(("http://", "https://")):
        raise BadUrlError(_fault(text))
    if parsed.username or parsed.password:
        raise BadUrlError(
            f"the URL of {parsed.origin} has a user or password in it, which items and files would show: "
            f"leave it out and give --auth '{parsed.origin} basic USER:PASSWORD' (the setting auth)"
        )
    if not _fits_dns(parsed.hostname):
        raise BadUrlError(
            f"{_quoted(text)} has a host name that cannot exist: "
            f"its parts need 1 to {MAX_LABEL_LENGTH} characters, all of it at most {MAX_HOST_LENGTH}"
        )
    return text if _is_rfc3986(text) else serialised


def normal(url: str) -> str:
    """As links are written that come out of a page: serialised, without a fragment. Raises BadUrlError."""
    return _parse(check(url)).href.partition("#")[0]


def resolve(base: str, href: str) -> str | None:
    """The absolute http(s) URL that `href` means on a page at `base`, or None if there is none.

    Serialised as the URL Standard says, the fragment kept.
    """
    known = _base(base)
    url = known and _join_plain(known, href)
    if url is None:
        url = _join(base, href)
    return url if url and len(url) <= MAX_URL_LENGTH else None


def resolve_all(base: str, hrefs: Iterable[str]) -> list[str]:
    """The absolute URLs to fetch for the links of a page at `base`: in order, each once, without fragments.

    Leaves out what is not http or https, is over MAX_URL_LENGTH, or has a host that the DNS cannot hold.
    """
    hrefs = dict.fromkeys(hrefs)
    known = _base(base)
    if known is not None:
        joined = "\n".join(hrefs)
        is_plain = _are_rooted(joined) and "/." not in joined and "/%" not in joined
        if is_plain and joined.count("\n") == len(hrefs) - 1:
            origin = known.origin
            longest = MAX_URL_LENGTH - len(origin)
            fitting = hrefs if len(joined) <= longest else [href for href in hrefs if len(href) <= longest]
            return list(map(origin.__add__, fitting))
    found: dict[str, None] = {}
    for href in hrefs:
        url = known and _join_plain(known, href.partition("#")[0])
        if url is None:
            url = _join(base, href).partition("#")[0]
            if not url or not _has_dns_host(url):
                continue
        if url and len(url) <= MAX_URL_LENGTH:
            found[url] = None
    return list(found)


def serialised(url: str) -> str:
    """As the URL Standard writes it. Raises BadUrlError for what is not a URL."""
    return _parse(url).href


def without_credentials(url: str) -> str:
    """A serialised URL without its user:password@."""
    if "@" not in url:
        return url
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}" if "@" in authority else url


def canonical(url: str) -> str:
    """The key form of a URL: equal for URLs that surely mean the same resource.

    Beyond the URL Standard's own serialisation (case of scheme and host, default port, dot segments, IDNA,
    IP address forms) these are equal: with or without a fragment, which is never sent; percent-escapes of
    unreserved characters and the characters, and both cases of hex digits (RFC 3986, 6.2.2); an empty query
    and none; any order of query parameters, where those of one name keep theirs. These differ: a trailing
    slash, a trailing dot of the host, "+" and "%20", a parameter with an empty value and with none.

    Raises BadUrlError for what is not a URL.
    """
    cut = url.find("/", 8)
    rest = url[cut:] if cut > 0 else ""
    if _is_rooted(rest) and "/." not in rest and "%" not in rest and _origin_key(url[:cut]) is not None:
        return url if "&" not in rest else _with_sorted_query(url)
    url = _parse(url).href.partition("#")[0]
    if "%" in url:
        url = _escapes.sub(_simplest_escape, url)
    return _with_sorted_query(url) if "?" in url else url


def host_of(url: str) -> str:
    """The politeness key of a URL: scheme://host:port, the port always written.

    Raises BadUrlError for what is not a URL.
    """
    cut = url.find("/", 8)
    return (cut > 0 and _origin_key(url[:cut])) or _key_of(_parse(url))


def fingerprint_of(url: str, method: str = "GET", body: bytes | None = None, key: str | None = None) -> int:
    """Signed 64-bit BLAKE2b of method + canonical URL + body, or of `key` alone when it is given.

    Raises BadUrlError for what is not a URL.
    """
    if key is not None:
        text = b"key\0" + key.encode("utf-8", "surrogatepass")
    else:
        text = f"{method}\0{canonical(url)}\0".encode("utf-8", "surrogatepass")
        if body:
            text += body
    return _hashed(text)


def digest_of(text: str) -> int:
    """The fingerprint of an identity that is made already: method, a NUL, canonical URL, a NUL."""
    return _hashed(text.encode("utf-8", "surrogatepass"))


def _hashed(text: bytes) -> int:
    fingerprint: int = _signed_64_bits(hashlib.blake2b(text, digest_size=8).digest())[0]
    return fingerprint


def _join_plain(base: _Base, href: str) -> str | None:
    """The short way to resolve, "" for what is not http(s); None where only the full parser can tell."""
    if "/." in href or "/%" in href:
        return None
    first = href[:1]
    if first == "/":
        return base.origin + href if _is_rooted(href) else None
    if first == "?":
        return base.path + href if _is_query(href) else None
    if not first:
        return base.page
    if href.startswith(base.origin) and _is_rooted(href[len(base.origin) :]):
        return href
    if href.startswith("http"):
        cut = href.find("/", 8)
        if cut > 0 and _is_rooted(href[cut:]) and _origin_key(href[:cut]) is not None:
            return href
    if _is_relative(href):
        return base.folder + href
    return "" if _has_other_scheme(href) else None


def _join(base: str, href: str) -> str:
    """The full parser's answer, "" for what is not http(s), over-long or invalid."""
    if len(href) > MAX_URL_LENGTH:
        return ""
    try:
        url = ada_url.join_url(_scalars(base), _scalars(href))
    except ValueError:
        return ""
    return url if url.startswith(("http://", "https://")) else ""


@lru_cache(maxsize=512)
def _base(url: str) -> _Base | None:
    """What the short ways need to know of a base; None where it is not one of http(s)."""
    cut = url.find("/", 8)
    if cut < 0 or not _is_rooted(rest := url[cut:]) or "/." in rest or "/%" in rest:
        try:
            url = ada_url.normalize_url(_scalars(url))
        except ValueError:
            return None
        cut = url.find("/", 8)
        rest = url[cut:].partition("#")[0]
    if _origin_key(url[:cut]) is None:
        return None
    origin, path = url[:cut], rest.partition("?")[0]
    return _Base(origin, origin + path[: path.rindex("/") + 1], origin + path, origin + rest)


@lru_cache(maxsize=8_192)
def _origin_key(origin: str) -> str | None:
    """The politeness key of an origin, if it is http(s), written as it is serialised, and fit for the DNS."""
    try:
        parsed = ada_url.URL(origin + "/")
    except ValueError:
        return None
    plain = parsed.href == origin + "/" and parsed.protocol in ("http:", "https:") and "@" not in origin
    return _key_of(parsed) if plain and _fits_dns(parsed.hostname) else None


def _key_of(parsed: ada_url.URL) -> str:
    port = parsed.port or ("443" if parsed.protocol == "https:" else "80")
    return f"{parsed.protocol}//{parsed.hostname}:{port}"


def _parse(url: str) -> ada_url.URL:
    try:
        return ada_url.URL(_scalars(url))
    except ValueError:
        raise BadUrlError(f"{_quoted(url)} is not a valid URL") from None


def _scalars(text: str) -> str:
    """Lone surrogates replaced, as the URL Standard does on input."""
    return text if text.isascii() else _lone_surrogates.sub("\ufffd", text)


def _fits_dns(host: str) -> bool:
    if len(host) <= MAX_LABEL_LENGTH and ".." not in host and host[:1] not in (".", ""):
        return True
    labels = host.removesuffix(".").split(".")
    return len(host.removesuffix(".")) <= MAX_HOST_LENGTH and all(
        0 < len(x) <= MAX_LABEL_LENGTH for x in labels
    )


def _has_dns_host(url: str) -> bool:
    """For a serialised http(s) URL."""
    return _origin_key(url[: url.index("/", 8)]) is not None or _fits_dns(ada_url.URL(url).hostname)


def _simplest_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else f"%{match[1].upper()}"


def _with_sorted_query(url: str) -> str:
    """Parameters ordered by name; those of one name stay in their order, which is data."""
    front, _, query = url.partition("?")
    if "&" in query:
        query = "&".join(sorted(query.split("&"), key=lambda pair: pair.partition("=")[0]))
    return f"{front}?{query}" if query else front


def _quoted(text: str) -> str:
    text = re.sub(r"(//[^:/?#@\s]*):[^/?#\s]*@", r"\1:***@", text)
    return repr(text if len(text) <= 200 else text[:200] + "…")


def _fault(text: str) -> str:
    """Why `text` is no http(s) URL, in one line."""
    if not text:
        return "the URL is empty"
    scheme = text.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        if "://" not in text and not _has_scheme(text):
            return f"{_quoted(text)} has no scheme; write https://{text[:200].lstrip('/')}"
        return f"{_quoted(text)} is not an http or https URL"
    authority = re.split(r"[/\\?#]", text[len(scheme) + 1 :].lstrip("/\\"), maxsplit=1)[0]
    match = re.fullmatch(r"(\[.*\]|[^:\[]*)(?::(.*))?", authority.rpartition("@")[2], re.S)
    host, port = match.groups() if match else (authority, None)
    if not host:
        return f"{_quoted(text)} has no host"
    if " " in authority:
        return f"{_quoted(text)} has a space in its host; one URL a line, spaces in it written %20"
    if port and not (port.isdigit() and int(port[:6]) <= 65_535):
        return f"{_quoted(text)} has a port that is not a number from 0 to 65535"
    return f"{_quoted(text)} is not a valid URL: its host {host.rpartition('@')[2][:100]!r} is not one"
