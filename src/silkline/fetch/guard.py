"""Which addresses a crawl may connect to: what a page links must not reach the machines around the crawler.

The rule is asked when a socket is about to connect, with the address that the name has led to at that moment.
So it holds after DNS, at each redirect, and for a name that is bound to another address from one look-up to
the next. Ways to write an address (decimal, octal, hexadecimal, short, full-width digits) need no rule of
their own: the URL Standard's parser has turned them into the usual form before.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import ada_url

from silkline.errors import ALLOW_PRIVATE, BlockedError
from silkline.protocols import Guard

HOW_TO_ALLOW = f"to allow it, give a URL of that host to the crawl itself, or {ALLOW_PRIVATE}"

_METADATA = "a cloud's metadata service"
_LOOPBACK = "this machine itself"
_PRIVATE = "a private network"
_LINK_LOCAL = "link-local"
_DOCUMENTATION = "reserved for documentation"
_RESERVED = "reserved"
_EMBEDDED = "IPv6 with an IPv4 address in it"

_TABLE = [
    # The first line that matches names the reason. The IANA special-purpose registries (RFC 6890, RFC 9637);
    # metadata services are where the large clouds document them.
    ("169.254.169.254/32", _METADATA),
    ("169.254.170.2/32", _METADATA),
    ("100.100.100.200/32", _METADATA),
    ("168.63.129.16/32", _METADATA),
    ("192.0.0.192/32", _METADATA),
    ("fd00:ec2::254/128", _METADATA),
    ("fd20:ce::254/128", _METADATA),
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", _PRIVATE),
    ("100.64.0.0/10", "a provider's shared address space"),
    ("127.0.0.0/8", _LOOPBACK),
    ("169.254.0.0/16", _LINK_LOCAL),
    ("172.16.0.0/12", _PRIVATE),
    ("192.0.0.0/24", _RESERVED),
    ("192.0.2.0/24", _DOCUMENTATION),
    ("192.88.99.0/24", _RESERVED),
    ("192.168.0.0/16", _PRIVATE),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("198.51.100.0/24", _DOCUMENTATION),
    ("203.0.113.0/24", _DOCUMENTATION),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", _RESERVED),
    ("::/128", "unspecified"),
    ("::1/128", _LOOPBACK),
    ("::/96", _EMBEDDED),
    ("::ffff:0:0/96", _EMBEDDED),
    ("2001::/32", _EMBEDDED),
    ("2002::/16", _EMBEDDED),
    ("2001::/23", _RESERVED),
    ("2001:db8::/32", _DOCUMENTATION),
    ("3fff::/20", _DOCUMENTATION),
    ("fc00::/7", _PRIVATE),
    ("fe80::/10", _LINK_LOCAL),
    ("fec0::/10", _PRIVATE),
    ("ff00::/8", "multicast"),
]
_NETWORKS = [(ip_network(network), reason) for network, reason in _TABLE]
_GLOBAL_UNICAST = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")
"""The well-known prefix (RFC 6052). In a network with IPv6 only every IPv4 site has such an address, so it is
what stands in its last 32 bits that counts; mapped, compatible, 6to4 and Teredo addresses no site has."""


class AddressGuard:
    """Asked before a socket connects (see `protocols.Guard`); refuses what is not on the public internet.

    named: hosts that are allowed to be anywhere, as `host_name` writes them; it may grow.
    """

    def __init__(self, named: Collection[str] = ()) -> None:
        self._named = named

    def __call__(self, host: str, address: str, port: int) -> None:
        """Raises BlockedError for an address that is refused, unless `host` is one of `named`."""
        reason = refusal(address)
        if reason is None:
            return
        name = host_name(host)
        if name not in self._named:
            target = f"{name}:{port}" if _same(name, address) else f"{name}:{port}, which is {address}"
            raise BlockedError(f"refused to connect to {target} ({reason}); {HOW_TO_ALLOW}", name)


def check_literal(guard: Guard | None, url: str) -> None:
    """For a URL that goes through a proxy, which looks the name up where we cannot see it: asks the guard
    where the host is an address itself. Raises what the guard raises.

    url: as on the wire.
    """
    host = host_of_url(url)
    with suppress(ValueError):
        ip_address(host)
        if guard is not None:
            port = ada_url.URL(url).port or ("443" if url.startswith("https:") else "80")
            guard(host, host, int(port))


def host_of_url(url: str) -> str:
    """The host of a URL as `AddressGuard` knows it. Raises ValueError for what is not a URL."""
    return host_name(ada_url.URL(url).hostname)


def host_name(host: str) -> str:
    """Lower case, without the brackets of an IPv6 address and the dot at the end of a full name."""
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


@lru_cache(maxsize=4_096)
def refusal(address: str) -> str | None:
    """Why nothing should connect to this IP address; None where it is an address of the public internet."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return "not an IP address"
    return _reason(ip)


def _reason(ip: IPv4Address | IPv6Address) -> str | None:
    for network, reason in _NETWORKS:
        if ip.version == network.version and ip in network:
            return reason
    if isinstance(ip, IPv4Address) or ip in _GLOBAL_UNICAST:
        return None
    if ip in _NAT64:
        return _reason(IPv4Address(int(ip) & 0xFFFF_FFFF))
    return _RESERVED


def _same(host: str, address: str) -> bool:
    return host == address.partition("%")[0]
