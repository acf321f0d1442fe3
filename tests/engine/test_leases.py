"""The leaser: when it asks, and what it takes for the end."""

from __future__ import annotations

import asyncio
import itertools

from silkline.config import FrontierOptions
from silkline.engine.leases import Held, Leaser
from silkline.frontier.memory import MemoryFrontier
from silkline.outcome import Lease, LeaseBatch
from silkline.request import Request


class OutOfBudget(MemoryFrontier):
    async def lease(self, count: int) -> LeaseBatch:
        return LeaseBatch(budget_spent=True)


async def test_a_budget_is_not_spent_while_leases_are_on_their_way_back() -> None:
    """They count in the budget until they are released; then there is something to lease again."""
    owed = True
    leaser = Leaser(
        OutOfBudget(FrontierOptions()),
        Held(1),
        lambda: False,
        lambda tokens: None,
        lambda: None,
        lambda: None,
        lambda: owed,
    )
    running = asyncio.create_task(leaser.run())
    for _ in range(5):
        await asyncio.sleep(0)
        leaser.wake()
    assert not running.done()
    owed = False
    leaser.wake()
    assert await asyncio.wait_for(running, 5) == "budget"


async def test_more_is_held_where_pages_are_faster_than_the_store_and_less_where_they_are_slow() -> None:
    held, numbers = Held(10), itertools.count()

    def held_after(answers: int, *, left: int) -> int:
        """How much is held at most once the store has answered so often when so many leases were left."""
        for _ in range(answers):
            while not held.wanted:
                held.ready.popleft()
            wanted = held.wanted
            while len(held.ready) > left:
                held.ready.popleft()
            held.came(wanted, wanted)
            waiting = {lease.token for lease in held.ready}
            held.forget([token for token in held.tokens if token not in waiting])
            new = itertools.islice(numbers, wanted)
            held.take([Lease(Request("http://a/"), n, n, "http://a:80") for n in new])
        held.withdraw()
        return held.wanted

    assert held.wanted == 20
    assert held_after(20, left=0) == 60
    assert held_after(1, left=0) == 60, "who begins has nothing, and is not too slow"
    assert held_after(20, left=60) == 20
