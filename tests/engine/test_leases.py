"""The leaser: when it asks, and what it takes for the end."""

from __future__ import annotations

import asyncio

from silkline.config import FrontierOptions
from silkline.engine.leases import Held, Leaser
from silkline.frontier.memory import MemoryFrontier
from silkline.outcome import LeaseBatch


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
