"""Names: aiodns where it starts, the system elsewhere, and never longer than allowed."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from pathlib import Path

import pytest
from tests.site import Site

from silkline.errors import FetchTimeout
from silkline.fetch import resolver
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
