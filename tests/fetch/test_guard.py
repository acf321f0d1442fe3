"""What a page links never reaches the machines around the crawler, over every engine."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pycurl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_server import Serve, answer_of
from site_of_pages import Engine

from silkline.errors import BlockedError
from silkline.fetch import guard as guard_module
from silkline.fetch.curl import CurlFetcher
from silkline.fetch.curl_request import Setup
from silkline.fetch.guard import AddressGuard, host_of_url, refusal
from silkline.fetch.http import HttpFetcher
from silkline.request import Request

PUBLIC = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8"]
REFUSED = {
    "127.0.0.1": "this machine itself",
    "127.255.1.2": "this machine itself",
    "::1": "this machine itself",
    "10.1.2.3": "a private network",
    "172.31.255.255": "a private network",
    "192.168.0.1": "a private network",
    "fd12::1": "a private network",
    "fec0::1": "a private network",
    "169.254.1.1": "link-local",
    "fe80::1%eth0": "link-local",
    "169.254.169.254": "a cloud's metadata service",
    "fd00:ec2::254": "a cloud's metadata service",
    "100.100.100.200": "a cloud's metadata service",
    "168.63.129.16": "a cloud's metadata service",
    "100.64.0.1": "a provider's shared address space",
    "0.0.0.0": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "reserved",
    "198.18.0.1": "reserved for benchmarks",
    "203.0.113.9": "reserved for documentation",
    "2001:db8::1": "reserved for documentation",
    "::ffff:8.8.8.8": "IPv6 with an IPv4 address in it",
    "::ffff:127.0.0.1": "IPv6 with an IPv4 address in it",
    "::127.0.0.1": "IPv6 with an IPv4 address in it",
    "2002:7f00:1::": "IPv6 with an IPv4 address in it",
    "2001:0:1234::1": "IPv6 with an IPv4 address in it",
    "64:ff9b::127.0.0.1": "this machine itself",
    "64:ff9b::a9fe:a9fe": "a cloud's metadata service",
    "64:ff9b:1::1": "reserved",
    "100::1": "reserved",
    "nonsense": "not an IP address",
}
HERE = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://１２７.0.0.1:{port}/",
    "http://0.0.0.0:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
]
"""Ways to write the address of this machine."""


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_public_internet_are_let_through(address: str) -> None:
    AddressGuard()("h.test", address, 80)


@pytest.mark.parametrize(("address", "reason"), REFUSED.items())
def test_all_others_are_refused_with_the_reason_and_how_to_allow_them(address: str, reason: str) -> None:
    with pytest.raises(BlockedError) as caught:
        AddressGuard({"other.test"})("H.test.", address, 80)
    assert str(caught.value) == (
        f"refused to connect to h.test:80, which is {address} ({reason}); "
        "to allow it, give a URL of that host to the crawl itself, or --allow-private"
    )
    assert (caught.value.cause, caught.value.host) == ("blocked", "h.test")
    AddressGuard({"h.test"})("H.test.", address, 80)


@given(st.ip_addresses(v=4))
def test_ipv4_agrees_with_the_iana_registry(address: ipaddress.IPv4Address) -> None:
    # Python's own table leaves out single addresses of these, differently from version to version.
    ours = any(
        address in ipaddress.ip_network(n) for n in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")
    )
    expected = address.is_global and not address.is_multicast and not ours
    assert (refusal(str(address)) is None) == expected


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_is_let_through_that_the_iana_registry_keeps_back(
    address: ipaddress.IPv6Address,
) -> None:
    if refusal(str(address)) is None:
        assert address.is_global
        assert not address.is_multicast


def test_hosts_are_known_by_one_spelling() -> None:
    spelt = ["http://H.Test./", "https://h%2Etest:8080/x", "http://u:p@h.test/"]
    assert {host_of_url(url) for url in spelt} == {"h.test"}
    assert host_of_url("http://[0::1]:80/") == "::1"


@pytest.mark.parametrize("url", HERE)
async def test_every_spelling_of_this_machine_is_refused(serve: Serve, engine: Engine, url: str) -> None:
    server = await serve({"/": answer_of(200, {}, b"secret")})
    with pytest.raises(BlockedError, match="refused to connect to"):
        await engine(guard=AddressGuard()).fetch(Request(url.format(port=server.port)))
    assert server.connections == 0


async def test_a_named_host_is_let_through_and_no_other_name_of_it(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"home")})
    fetcher = engine(guard=AddressGuard({"127.0.0.1"}))
    for spelt in ("127.0.0.1", "2130706433"):
        assert (await fetcher.fetch(Request(f"http://{spelt}:{server.port}/"))).body == b"home"
    with pytest.raises(BlockedError, match="localhost"):
        await fetcher.fetch(Request(f"http://localhost:{server.port}/"))


@pytest.mark.parametrize("location", [url.replace("127.0.0.1:", "127.0.0.2:") for url in HERE[1:2]])
async def test_a_redirect_to_a_private_address_is_refused(
    serve: Serve, engine: Engine, location: str
) -> None:
    server = await serve({"/inside": answer_of(200, {}, b"secret")})
    server.routes["/"] = answer_of(302, {"Location": location.format(port=server.port) + "inside"}, b"")
    with pytest.raises(BlockedError, match="this machine itself"):
        await engine(guard=AddressGuard({"127.0.0.1"})).fetch(Request(server.url()))
    assert server.targets == ["/"]


class FakeNames:
    """Answers look-ups from a list, one after the other, the last one for good; counts them."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        self.asked = 0

    def next(self) -> str:
        self.asked += 1
        return self.addresses[min(self.asked, len(self.addresses)) - 1]

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[Any]:
        return [
            {"hostname": host, "host": self.next(), "port": port, "family": family, "proto": 0, "flags": 0}
        ]

    async def close(self) -> None:
        pass


@pytest.fixture
def public_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as an address of the internet, so that a local server can stand for one."""
    real = guard_module.refusal
    monkeypatch.setattr(guard_module, "refusal", lambda a: None if a == "127.0.0.1" else real(a))


async def test_a_name_that_is_bound_to_another_address_is_refused_then(
    serve: Serve, public_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FakeNames(["127.0.0.1", "127.0.0.2"])
    monkeypatch.setattr("silkline.fetch.http.Resolver", lambda: names)
    monkeypatch.setattr("silkline.fetch.http._DNS_CACHE_SECONDS", 0)
    server = await serve({"/": answer_of(200, {"Connection": "close"}, b"first")})
    fetcher = HttpFetcher(guard=AddressGuard())
    try:
        request = Request(f"http://rebind.test:{server.port}/")
        assert (await fetcher.fetch(request)).body == b"first"
        with pytest.raises(BlockedError, match=r"rebind\.test:\d+, which is 127\.0\.0\.2"):
            await fetcher.fetch(request)
    finally:
        await fetcher.close()
    assert names.asked == 2


async def test_a_rebound_name_is_refused_by_libcurl_too(
    serve: Serve, public_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libcurl looks names up itself: here its own table of names changes between two fetches."""
    server = await serve({"/": answer_of(200, {"Connection": "close"}, b"first")})
    addresses = ["127.0.0.1", "127.0.0.2"]
    apply = Setup.apply

    def rebinding(setup: Setup, transfer: Any, request: Request, url: str) -> str:
        name = f"rebind.test:{server.port}"
        transfer.easy.setopt(pycurl.RESOLVE, [f"-{name}", f"{name}:{addresses.pop(0)}"])
        return apply(setup, transfer, request, url)

    monkeypatch.setattr(Setup, "apply", rebinding)
    fetcher = CurlFetcher(guard=AddressGuard())
    try:
        request = Request(f"http://rebind.test:{server.port}/")
        assert (await fetcher.fetch(request)).body == b"first"
        with pytest.raises(BlockedError, match=r"rebind\.test:\d+, which is 127\.0\.0\.2"):
            await fetcher.fetch(request)
    finally:
        await fetcher.close()


async def test_an_address_behind_a_proxy_is_checked_and_the_proxys_own_is_not(
    serve: Serve, engine: Engine
) -> None:
    proxy = await serve({"http://name.test/": answer_of(200, {}, b"through"), "http://10.0.0.1/": b""})
    fetcher = engine(guard=AddressGuard())
    for url in ("http://10.0.0.1/", "http://[::1]:8443/", "http://0xa9fea9fe/"):
        with pytest.raises(BlockedError, match="refused to connect"):
            await fetcher.fetch(Request(url, proxy=proxy.url("").rstrip("/")))
    assert proxy.connections == 0


async def test_what_is_allowed_goes_through_a_proxy_at_a_private_address(serve: Serve) -> None:
    proxy = await serve({"http://192.0.2.1/": answer_of(200, {}, b"through")})
    fetcher = CurlFetcher(guard=AddressGuard({"192.0.2.1"}))
    try:
        answer = await fetcher.fetch(Request("http://192.0.2.1/", proxy=proxy.url("")))
    finally:
        await fetcher.close()
    assert answer.body == b"through"
