from __future__ import annotations

import asyncio

import msgspec

from silkline.config import FrontierOptions
from silkline.engine.known import KnownUrls
from silkline.engine.leases import Held, Leaser
from silkline.frontier import MemoryFrontier
from silkline.outcome import LeaseBatch
from silkline.request import Request


def test_what_was_added_is_known() -> None:
    known = KnownUrls()
    known.add(["https://a/", "https://b/"])
    assert "https://a/" in known
    assert "https://c/" not in known
    assert known.missing(["https://c/", "https://a/", "https://d/"]) == ["https://c/", "https://d/"]


def test_memory_is_bounded_and_the_newest_survive() -> None:
    known = KnownUrls(capacity=100)
    for number in range(10_000):
        known.add([f"https://a/{number}"])
        assert len(known) <= 100
    assert all(f"https://a/{number}" in known for number in range(9_960, 10_000))
    assert "https://a/1" not in known


class FallingBack(MemoryFrontier):
    """Has always just lost what it had confirmed."""

    async def lease(self, count: int) -> LeaseBatch:
        return msgspec.structs.replace(await super().lease(count), fell_back=True)


async def test_what_a_store_may_have_lost_is_not_known_when_the_next_page_is_visited() -> None:
    frontier, held, known = FallingBack(FrontierOptions()), Held(1), KnownUrls()
    await frontier.open()
    await frontier.add([Request("http://a/")])
    known.add(["http://a/1"])
    leaser = Leaser(frontier, held, lambda: False, lambda tokens: None, lambda: None, known.clear)
    leasing = asyncio.create_task(leaser.run())
    await held.ready.get()
    assert known.missing(["http://a/1"]) == ["http://a/1"]
    leasing.cancel()
    await asyncio.wait([leasing])
    await frontier.close()
