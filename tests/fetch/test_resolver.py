"""Names: aiodns where it starts, the system elsewhere, and never longer than allowed."""

from __future__ import annotations

import asyncio
import socket

import pytest

from silkline.errors import FetchTimeout
from silkline.fetch import resolver
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.fetch.resolver import Resolver
from silkline.request import Request


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


async def test_a_name_server_that_does_not_answer_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Resolver, "resolve", silent)
    fetcher = HttpFetcher(FetchOptions(connect_timeout=0.05))
    with pytest.raises(FetchTimeout) as caught:
        await fetcher.fetch(Request("http://h.test/"))
    assert caught.value.phase == "dns"
    await fetcher.close()
