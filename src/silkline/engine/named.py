"""The hosts that the user named, which may be at private addresses; all workers of a job know them.

Named is the host of a URL or Request that is given where the crawl is started: on the command line, or to
`run(...)`, alone or in a list. What comes out of a file, an iterator, a sitemap, a database or the inbox is
data, which others may have written: it names nothing. The names are kept with the job, so that a resume and
the workers on other machines, which have no seeds of their own, know them too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from silkline.errors import BlockedError
from silkline.fetch.guard import host_of_url
from silkline.protocols import CallNext, Frontier
from silkline.request import Request
from silkline.response import Response

MAX_NAMED = 1_000
"""Hosts of one run. More are not written by hand."""

_FACT = "named host "
"""A fact of its own for each host: two that name hosts at the same time do not overwrite each other's."""


class NamedHosts(Collection[str]):
    """The hosts of one job, kept in its frontier."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._hosts: frozenset[str] = frozenset()

    def __contains__(self, host: object) -> bool:
        return host in self._hosts

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    async def name(self, hosts: Iterable[str]) -> None:
        """Name more of them; done before their requests are enqueued, so that every worker that gets one
        of these knows its host. Raises FrontierError."""
        self._hosts |= await named_in(self._frontier)
        if new := frozenset(hosts) - self._hosts:
            await self._frontier.remember({_FACT + host: "" for host in new})
            self._hosts |= new

    async def hop(self, request: Request, call_next: CallNext) -> Response:
        """Middleware around each hop: a host that was named after this worker had started is let through."""
        try:
            return await call_next(request)
        except BlockedError as error:
            if not error.host or error.host in self._hosts:
                raise
            self._hosts = await named_in(self._frontier)
            if error.host not in self._hosts:
                raise
        return await call_next(request)


async def named_in(frontier: Frontier) -> frozenset[str]:
    """The hosts that are kept with a job. Raises FrontierError."""
    return frozenset(name.removeprefix(_FACT) for name in await frontier.recall() if name.startswith(_FACT))


def hosts_of(urls: Iterable[str]) -> frozenset[str]:
    """The hosts of these URLs, the first MAX_NAMED of them; what is not a URL is left out."""
    hosts: set[str] = set()
    for origin in dict.fromkeys(url[: url.find("/", 8) + 1] or url for url in urls):
        with suppress(ValueError):
            hosts.add(host_of_url(origin.strip()))
        if len(hosts) == MAX_NAMED:
            break
    return frozenset(hosts)
