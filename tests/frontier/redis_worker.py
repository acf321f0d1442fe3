"""Workers of a job in Redis, as the tests of that frontier need them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from silkline.config import FrontierOptions
from silkline.frontier.redis import RedisFrontier
from silkline.outcome import Heartbeat, Outcome
from silkline.protocols import Positions
from tests import servers
from tests.proxy import CuttingProxy

BEAT = Heartbeat("h", 1, 0.0)


@asynccontextmanager
async def opened(job: str, url: str = "", **options: object) -> AsyncIterator[RedisFrontier]:
    frontier = RedisFrontier(url or servers.valkey_url(), FrontierOptions(job=job, **options))  # type: ignore[arg-type]
    frontier.listen(lambda: None, lambda line: None)
    await frontier.open()
    try:
        yield frontier
    finally:
        await frontier.close()


@asynccontextmanager
async def through_proxy(job: str, **options: object) -> AsyncIterator[tuple[CuttingProxy, RedisFrontier]]:
    proxy = CuttingProxy(servers.valkey().port)
    async with proxy, opened(job, f"redis://127.0.0.1:{proxy.port}", **options) as frontier:
        yield proxy, frontier


class Counting:
    """A sink's position that counts what was delivered."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        self.calls.append([outcome.lease.token for outcome in outcomes])
        return {"out": str(int(positions.get("out", "0")) + len(outcomes))}
