"""The politeness key of each URL: its host, its registrable domain, or its address.

What a host's key is depends on the host alone, and is the same for all workers of a job: a URL always
belongs to one place. The first two are told by the URL. An address has to be asked for, and may be another
one a minute later: so it is the store that decides, once for each host, by what the first worker says that
meets it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping

from silkline.protocols import Resolve
from silkline.site import registrable_domain
from silkline.url import host_of
from silkline.values import PolitenessBy

REMEMBERED = 100_000
"""Hosts whose keys a worker remembers; the others it asks the store for."""

KeyOf = Callable[[str], str]
"""The politeness key of a URL. Raises BadUrlError."""

Decided = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""`await decided(proposals)`: keep the key of each of these hosts where none is kept, and return what is
kept now. "" proposes nothing: such a host is only in the answer if it has a key already."""


class Groups:
    """The keys by which one worker enqueues.

    by: None stands for "host". decided: the store. resolve: finds out addresses; without it, hosts that the
    store does not know keep their own name, and nothing is decided.
    """

    def __init__(self, by: PolitenessBy | None, decided: Decided, resolve: Resolve | None) -> None:
        self.by: PolitenessBy = by or "host"
        self._decided = decided
        self._resolve = resolve
        self._known: dict[str, str] = {}

    async def keys(self, urls: Iterable[str]) -> KeyOf:
        """What tells the keys of these URLs. Raises BadUrlError."""
        if self.by == "host":
            return host_of
        if self.by == "domain":
            return domain_of
        hosts = {host_of(url) for url in urls}
        known = {host: self._known[host] for host in hosts if host in self._known}
        known |= await self._learnt(hosts - known.keys())
        return lambda url: known[host_of(url)]

    async def key(self, url: str) -> str:
        return (await self.keys((url,)))(url)

    def forget(self) -> None:
        """The store has fallen back to an earlier state."""
        self._known.clear()

    async def _learnt(self, hosts: set[str]) -> Mapping[str, str]:
        if not hosts:
            return {}
        found = dict(await self._decided(dict.fromkeys(hosts, "")))
        if new := hosts - found.keys():
            if self._resolve is None:
                return found | {host: host for host in new}
            names = {host: name_of(host) for host in new}
            addresses = {name: address for name in names.values() if (address := address_in(name))}
            if unknown := set(names.values()) - addresses.keys():
                addresses |= await self._resolve(unknown)
            # A name without an address leads nowhere, and is a group of its own.
            found |= await self._decided({host: addresses.get(names[host]) or host for host in new})
        if len(self._known) + len(found) > REMEMBERED:
            self._known.clear()
        self._known |= found
        return found


def domain_of(url: str) -> str:
    """The registrable domain of a URL, by the Public Suffix List; an address is one of its own."""
    return registrable_domain(name_of(host_of(url)))


def name_of(host: str) -> str:
    """The host name, or the address without brackets, of a key such as https://[::1]:8080."""
    name = host.partition("://")[2].rpartition(":")[0]
    return name[1:-1] if name.startswith("[") else name


def address_in(name: str) -> str | None:
    """The name of a host that is an address; None where it is none."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None


def standing_for(addresses: Iterable[str]) -> str | None:
    """The one of a host's addresses that stands for all of them, whatever their order: the lowest, IPv4
    before IPv6. None where there are none."""
    parsed = {ipaddress.ip_address(text.partition("%")[0]) for text in addresses}
    first = min(parsed, key=lambda address: (address.version, int(address)), default=None)
    return None if first is None else str(first)
