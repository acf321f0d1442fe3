from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from silkline.engine.gather import gathered
from silkline.request import Request

Batches = AsyncGenerator[list[Request], None]


def some(first: int, last: int) -> list[Request]:
    return [Request(f"http://a/{n}") for n in range(first, last)]


async def source(*batches: list[Request] | Exception | asyncio.Event) -> Batches:
    for batch in batches:
        if isinstance(batch, Exception):
            raise batch
        if isinstance(batch, asyncio.Event):
            await batch.wait()
        else:
            yield batch


async def sizes(parts: Batches, seen: list[Request] | None = None) -> Sequence[int]:
    found = []
    async for part in parts:
        found.append(len(part))
        if seen is not None:
            seen += part
        await asyncio.sleep(0)  # the source goes on while a part is with its consumer
    return found


async def test_small_batches_are_put_together_and_large_ones_divided() -> None:
    seen: list[Request] = []
    parts = gathered(source(some(0, 3), some(3, 4), some(4, 25), some(25, 27)), 10, asyncio.Event())
    assert await sizes(parts, seen) == [10, 10, 7]
    assert seen == some(0, 27)


async def test_nothing_is_lost_between_a_fast_source_and_a_slow_consumer() -> None:
    batches = [some(n, n + 7) for n in range(0, 700, 7)]
    seen: list[Request] = []
    await sizes(gathered(source(*batches), 5, asyncio.Event()), seen)
    assert seen == some(0, 700)


async def test_a_source_that_pauses_does_not_keep_back_what_came_before() -> None:
    pause = asyncio.Event()
    async with aclosing(gathered(source(some(0, 3), pause, some(3, 4)), 10, asyncio.Event())) as parts:
        assert await anext(parts) == some(0, 3)
        pause.set()
        assert await anext(parts) == some(3, 4)


async def test_what_came_before_an_error_is_given_first() -> None:
    parts = gathered(source(some(0, 3), OSError("gone")), 10, asyncio.Event())
    assert await anext(parts) == some(0, 3)
    with pytest.raises(OSError, match="gone"):
        await anext(parts)


async def test_it_ends_at_once_when_it_is_to_stop_though_the_source_is_silent() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stopping.set)
    async with asyncio.timeout(30):
        assert await sizes(gathered(source(asyncio.Event()), 10, stopping)) == []
