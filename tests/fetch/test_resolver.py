"""Names: aiodns where it starts, the system elsewhere, and never longer than allowed."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp.resolver import ThreadedResolver

from silkline.fetch import resolver
from silkline.fetch.resolver import Resolver


async def test_localhost_resolves() -> None:
    names = Resolver(timeout=10)
    found = await names.resolve("localhost", 80, socket.AF_INET)
    assert [entry["host"] for entry in found] == ["127.0.0.1"]
    await names.close()


async def test_where_aiodns_cannot_start_the_system_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no resolv.conf")

    monkeypatch.setattr(resolver, "AsyncResolver", fails)
    names = Resolver(timeout=10)
    found = await names.resolve("localhost", 80, socket.AF_INET)
    assert [entry["host"] for entry in found] == ["127.0.0.1"]
    await names.close()


async def test_a_name_server_that_does_not_answer_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(resolver, "AsyncResolver", ThreadedResolver)
    monkeypatch.setattr(ThreadedResolver, "resolve", silent)
    with pytest.raises(TimeoutError):
        await Resolver(timeout=0.05).resolve("h.test", 80, socket.AF_INET)
