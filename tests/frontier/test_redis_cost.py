"""What a lease costs a Redis: counted in commands, which no other load of the computer changes."""

from __future__ import annotations

import uuid

from silkline.config import FrontierOptions
from silkline.frontier import rules
from silkline.frontier.redis import RedisFrontier
from silkline.outcome import Stats
from silkline.request import Request
from tests import servers
from tests.frontier.conftest import ManualClock
from tests.frontier.redis_worker import opened
from tests.servers import RedisServer


def commands(server: RedisServer) -> int:
    """That its scripts have run, and its clients."""
    return sum(command["calls"] for command in server.client().info("commandstats").values())


async def filled(frontier: RedisFrontier, hosts: int, each: int) -> None:
    urls = [f"http://h{host}.test/{number}" for number in range(each) for host in range(hosts)]
    for first in range(0, len(urls), 2_000):
        await frontier.add([Request(url) for url in urls[first : first + 2_000]])


async def test_a_lease_costs_the_same_whatever_waits() -> None:
    cost = {}
    for hosts, each in ((200, 3), (5_000, 6)):
        server = RedisServer(servers.valkey().binary).start()
        try:
            async with opened("cost", server.url) as frontier:
                await filled(frontier, hosts, each)
                await frontier.lease(50)  # loads the script
                before = commands(server)
                for _ in range(3):
                    assert len((await frontier.lease(50)).leases) == 50
                cost[hosts] = commands(server) - before
        finally:
            server.remove()
    assert cost[5_000] <= cost[200] * 1.1, cost


async def test_of_many_leases_that_ran_out_each_call_takes_back_a_part(clock: ManualClock) -> None:
    options = FrontierOptions(job=f"late-{uuid.uuid4().hex[:8]}", per_host=10_000, lease_seconds=10)
    frontier = RedisFrontier(servers.valkey_url(), options, clock=clock)
    await frontier.open()
    await filled(frontier, 3, 1_000)
    assert len((await frontier.lease(3_000)).leases) == 3_000
    clock.now += 11
    await frontier.lease(0)
    assert await frontier.stats() == Stats(waiting=rules.SWEEP, leased=3_000 - rules.SWEEP)
    await frontier.close()
