from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until

from silkline.config import FrontierOptions
from silkline.engine import backpressure
from silkline.engine.backpressure import Backpressure
from silkline.frontier.memory import MemoryFrontier
from silkline.outcome import Done, Outcome
from silkline.request import Request


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backpressure, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(backpressure, "LONGEST_PAUSE", 0.01)


class Counting(MemoryFrontier):
    looks = 0

    async def stats(self):  # type: ignore[no-untyped-def]
        self.looks += 1
        return await super().stats()


async def holding(number: int) -> Counting:
    frontier = Counting(FrontierOptions(per_host=1_000))
    await frontier.open()
    await frontier.add([Request(f"http://a/{n}") for n in range(number)])
    return frontier


async def finish(frontier: MemoryFrontier, number: int) -> None:
    batch = await frontier.lease(number)
    await frontier.commit([Outcome(lease, Done()) for lease in batch.leases])


async def test_there_is_room_up_to_the_limit_and_the_frontier_is_seldom_asked() -> None:
    frontier = await holding(4)
    pressure = Backpressure(frontier, 10, pytest.fail, fresh=1_000)
    assert await pressure.room(asyncio.Event()) == 6
    pressure.took(5)
    assert await pressure.room(asyncio.Event()) == 1
    assert frontier.looks == 1


async def test_others_that_add_are_noticed() -> None:
    frontier = await holding(4)
    pressure = Backpressure(frontier, 10, pytest.fail, fresh=0)
    assert await pressure.room(asyncio.Event()) == 6
    await frontier.add([Request(f"http://b/{n}") for n in range(5)])
    assert await pressure.room(asyncio.Event()) == 1


async def test_a_full_queue_is_waited_for_until_it_is_down_to_four_fifths_and_that_is_said_once() -> None:
    frontier = await holding(10)
    said: list[str] = []
    pressure = Backpressure(frontier, 10, said.append, fresh=0)
    waiting = asyncio.create_task(pressure.room(asyncio.Event()))
    await until(lambda: said)
    await finish(frontier, 1)
    looks = frontier.looks
    await until(lambda: frontier.looks >= looks + 3)
    assert not waiting.done(), "nine of ten are queued: there is room, but it is not worth it yet"
    await finish(frontier, 1)
    assert await waiting == 2
    await frontier.add([Request("http://b/1"), Request("http://b/2")])
    looks = frontier.looks
    again = asyncio.create_task(pressure.room(asyncio.Event()))
    await until(lambda: frontier.looks >= looks + 2)
    await finish(frontier, 10)
    assert await again == 10
    assert said == ["10 requests are queued and --max-waiting is 10: waiting until there are 8"]


async def test_a_stop_ends_the_waiting() -> None:
    pressure = Backpressure(await holding(10), 10, lambda line: None)
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, stopping.set)
    async with asyncio.timeout(30):
        assert await pressure.room(stopping) == 0
