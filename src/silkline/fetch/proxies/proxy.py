"""Proxies as users and providers write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from silkline.errors import ConfigError

SCHEMES = ("http", "https", "socks5", "socks5h")
HOW = "write http://user:password@host:3128, socks5://host:1080 or host:port:user:password"

_SHORT = re.compile(
    r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})(?::(?P<user>[^:\s]*):(?P<password>\S*))?"
)
_is_tag = re.compile(r"[A-Za-z0-9._-]+").fullmatch
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Proxy(msgspec.Struct, frozen=True):
    """url: with user and password percent-encoded. tags: regions and the like, in lower case. where: the
    entries of the list that name it, such as "proxies.txt, line 3", which tells proxies of one host apart."""

    url: str
    tags: frozenset[str] = frozenset()
    where: str = ""

    @property
    def name(self) -> str:
        """The URL without user and password, fit for messages."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"

    @property
    def label(self) -> str:
        """The name and the place in the list."""
        return f"{self.name} ({self.where})" if self.where else self.name

    @property
    def is_socks(self) -> bool:
        return self.url.startswith("socks")


def proxy_from(text: str) -> Proxy:
    """Read `URL [tag ...]`, or `host:port[:user:password] [tag ...]` as providers list them.

    Special characters in user and password may be percent-encoded or stand as they are.

    Raises ConfigError, which does not repeat the password.
    """
    words = text.replace(",", " ").split() if "://" not in text else _words(text)
    if not words:
        raise ConfigError(f"an empty proxy; {HOW}")
    if not all(map(_is_tag, words[1:])):
        # Not repeated: it may be a password that was written behind the address.
        raise ConfigError(f"has a tag of other characters than letters, digits, '.', '-' and '_'; {HOW}")
    return Proxy(_url(words[0]), frozenset(tag.lower() for tag in words[1:]))


def proxies_from(text: str, where: str) -> tuple[list[Proxy], list[str]]:
    """All proxies of a list: a line each, blank ones and `#` comments left out; or a JSON array of such
    lines, or of objects with "url" and "tags".

    Returns them in order, each once, with the tags of all its entries, and a line for each entry that is
    none.
    """
    if not text.lstrip().startswith("["):
        return proxies_of((line.split(" #")[0].strip() for line in text.splitlines()), where)
    try:
        return proxies_of(msgspec.json.decode(text), where)
    except msgspec.DecodeError as error:
        return [], [f"{where}: is no JSON list of proxies: {error}"]


def proxies_of(entries: Iterable[Any], where: str, unit: str = "line") -> tuple[list[Proxy], list[str]]:
    """The same from a list: of lines, of mappings, or of proxies. unit: what `where` has of them."""
    found: dict[str, Proxy] = {}
    wrong: list[str] = []
    for number, entry in enumerate(entries, 1):
        if not entry or (isinstance(entry, str) and entry.startswith("#")):
            continue
        try:
            proxy = _entry(entry)
        except ConfigError as error:
            wrong.append(f"{where}, {unit} {number}: {error}")
        else:
            known = found.get(proxy.url)
            if known is None:
                found[proxy.url] = Proxy(proxy.url, proxy.tags, f"{where}, {unit} {number}")
            else:
                found[proxy.url] = Proxy(proxy.url, known.tags | proxy.tags, f"{known.where}, {number}")
    return list(found.values()), wrong


def _entry(entry: Any) -> Proxy:
    if isinstance(entry, Proxy):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("url"), str):
        tags = entry.get("tags", ())
        words = [tags] if isinstance(tags, str) else list(map(str, tags))
        return proxy_from(" ".join([entry["url"], *words]))
    if isinstance(entry, str):
        return proxy_from(entry)
    raise ConfigError(f"is no proxy; {HOW}")


def _words(text: str) -> list[str]:
    """A URL may have commas and spaces in its password; the tags come behind its host."""
    scheme, mark, rest = text.strip().partition("://")
    userinfo, at, host = rest.rpartition("@")
    first, *tags = host.replace(",", " ").split() or [""]
    return [f"{scheme}{mark}{userinfo}{at}{first}", *tags]


def _url(text: str) -> str:
    if "://" not in text:
        match = _SHORT.fullmatch(text)
        if match is None:
            raise ConfigError(f"is no proxy; {HOW}")
        user = f"{_quoted(match['user'])}:{_quoted(match['password'])}@" if match["user"] else ""
        text = f"http://{user}{match['host']}:{match['port']}"
    scheme, _, rest = text.partition("://")
    userinfo, at, host = rest.rpartition("@")
    scheme, host, spaced = scheme.lower(), host.rstrip("/"), len(userinfo.split()) > 1
    if scheme not in SCHEMES:
        raise ConfigError(f"{scheme[:20]!r} is no kind of proxy, there are {', '.join(SCHEMES)}; {HOW}")
    if at:
        user, colon, password = userinfo.partition(":")
        userinfo = _quoted(user) + (f":{_quoted(password)}" if colon else "")
    try:
        parts = urlsplit(f"{scheme}://{host}")
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or not re.fullmatch(r"[^\s/?#@]+", host):
        raise ConfigError(f"has no host and port of a proxy; {HOW}")
    if spaced and parts.port is None:
        raise ConfigError(f"has a space in its user or password, and no port; {HOW}")
    return f"{scheme}://{userinfo}{at}{host}"


def _quoted(text: str) -> str:
    """Percent-encoded where it is not yet."""
    return quote(_ESCAPE.sub("%25", text), safe="%!$&'()*+,;=-._~")
