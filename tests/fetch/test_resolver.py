"""Names: aiodns where it starts, the system elsewhere, and never longer than allowed."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pycurl
import pytest
from raw_server import Serve, answer_of
from site_of_pages import Engine
from tests.site import Site

from silkline.errors import FetchTimeout
from silkline.fetch import resolver
from silkline.fetch.curl_request import Setup
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.fetch.resolver import Resolver
from silkline.request import Request

OPEN_FILES = Path("/proc/self/fd")


async def test_localhost_resolves() -> None:
    names = Resolver()
    found = await names.resolve("localhost", 80, socket.AF_INET)
    assert [entry["host"] for entry in found] == ["127.0.0.1"]
    await names.close()


async def test_where_aiodns_cannot_start_the_system_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no resolv.conf")

    monkeypatch.setattr(resolver, "AsyncResolver", fails)
    names = Resolver()
    found = await names.resolve("localhost", 80, socket.AF_INET)
    assert [entry["host"] for entry in found] == ["127.0.0.1"]
    await names.close()


def open_files() -> int:
    gc.collect()  # aiodns gives back what it has open with its resolver
    return len(list(OPEN_FILES.iterdir()))


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc to count the open files")
def test_a_fetcher_that_is_closed_leaves_no_file_open() -> None:
    async def fetch(url: str) -> None:
        fetcher = HttpFetcher(FetchOptions())
        assert (await fetcher.fetch(Request(url))).status == 200
        await fetcher.close()

    with Site({"/": "x"}) as site:
        url = site.url.replace("127.0.0.1", "localhost")
        asyncio.run(fetch(url))  # what the first one opens for all
        before = open_files()
        for _ in range(5):
            asyncio.run(fetch(url))
        deadline = time.monotonic() + 10
        while open_files() > before:  # a thread of pycares closes them
            assert time.monotonic() < deadline
            time.sleep(0.01)


async def test_a_name_server_that_does_not_answer_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Resolver, "resolve", silent)
    fetcher = HttpFetcher(FetchOptions(connect_timeout=0.05))
    with pytest.raises(FetchTimeout) as caught:
        await fetcher.fetch(Request("http://h.test/"))
    assert caught.value.phase == "dns"
    await fetcher.close()


class TwoAddresses:
    """Answers each look-up with both: the one that IPv6 prefers first, as the system does."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[Any]:
        both = (("::1", socket.AF_INET6), ("127.0.0.1", socket.AF_INET))
        return [
            {"hostname": host, "host": ip, "port": port, "family": kind, "proto": 0, "flags": 0}
            for ip, kind in both
        ]

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def silent(port: int) -> Iterator[None]:
    """That port of ::1 accepts nobody: connections to it neither come about nor fail."""
    with ExitStack() as opened:
        full = opened.enter_context(socket.socket(socket.AF_INET6))
        full.bind(("::1", port))
        full.listen(0)
        for _ in range(4):
            filler = opened.enter_context(socket.socket(socket.AF_INET6))
            filler.setblocking(False)
            filler.connect_ex(("::1", port))
        yield


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
async def test_where_one_address_is_silent_the_next_one_is_tried_soon(
    serve: Serve, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 8305: long before the connect limit is over."""
    server = await serve({"/": answer_of(200, {}, b"here")})
    apply = Setup.apply

    def with_both(setup: Setup, transfer: Any, request: Request, url: str) -> str:
        transfer.easy.setopt(pycurl.RESOLVE, [f"two.test:{server.port}:[::1],127.0.0.1"])
        return apply(setup, transfer, request, url)

    monkeypatch.setattr(Setup, "apply", with_both)
    monkeypatch.setattr("silkline.fetch.http.Resolver", TwoAddresses)
    with silent(server.port):
        response = await engine(connect_timeout=30).fetch(Request(f"http://two.test:{server.port}/"))
    assert response.body == b"here"
    assert response.peer == f"127.0.0.1:{server.port}"
    assert response.timings.connect < 10


async def test_a_name_is_looked_up_once_in_five_minutes(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Counting(TwoAddresses):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[Any]:
            asked.append(host)
            return (await super().resolve(host, port, family))[1:]

    monkeypatch.setattr("silkline.fetch.http.Resolver", Counting)
    server = await serve({"/": answer_of(200, {"Connection": "close"}, b"x")})
    fetcher = HttpFetcher()
    for _ in range(3):
        assert (await fetcher.fetch(Request(f"http://one.test:{server.port}/"))).body == b"x"
    await fetcher.close()
    assert server.connections == 3
    assert asked == ["one.test"]
