"""Which links --follow-all follows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from silkline.errors import BadUrlError, ConfigError
from silkline.parse.page import Page
from silkline.url import check, host_of


def site_of(url: str) -> str:
    """Host name, with its port unless it is the scheme's own. Raises BadUrlError for what is not a URL."""
    scheme, _, host = host_of(url).partition("://")
    return host.removesuffix(":443" if scheme == "https" else ":80")


class Scope:
    """The hosts that a crawl stays on: those of its seeds, with their ports, and the allowed ones.

    A page's own host is one of them, or the page would not be visited: that holds however many seeds there
    are, and needs no memory. What a seed redirects to counts as its host, too; what any other page redirects
    to does not.

    seeds: URLs. allowed: host names, with a port or for all ports; *.example.com stands for all its
    subdomains.

    Raises ConfigError for a seed that is no URL and for an allowed host that is no host.
    """

    def __init__(self, seeds: Iterable[str], allowed: Iterable[str]) -> None:
        try:
            self._sites = {site_of(check(url)) for url in seeds}
        except BadUrlError as error:
            raise ConfigError(str(error)) from error
        self._names: set[str] = set()
        self._suffixes: tuple[str, ...] = ()
        for host in allowed:
            if host.startswith("*."):
                self._suffixes += ("." + _allowed(host[2:], host),)
            else:
                self._names.add(_allowed(host, host))

    def links(self, page: Page) -> tuple[str, ...]:
        """The links of the page that are in scope."""
        home = {site_of(page.request.url)}
        if page.request.depth == 0:
            home.add(site_of(page.url))
        return tuple(url for url in page.links() if self._holds(url, home))

    def _holds(self, url: str, home: set[str]) -> bool:
        site = url.split("/", 3)[2].rpartition("@")[2]
        if site in home or site in self._sites or site in self._names:
            return True
        name = re.sub(r":\d+$", "", site)
        return name in self._names or name.endswith(self._suffixes)


def _allowed(name: str, written: str) -> str:
    try:
        if re.search(r"[/@?#\s]", name):
            raise BadUrlError(f"{name} is no host name")
        return re.sub(r":(80|443)$", "", site_of(check(f"http://{name}/")))
    except BadUrlError as error:
        raise ConfigError(
            f"--allow-host: {written!r} is no host; write cdn.example.com, *.example.com or host:8080"
        ) from error
