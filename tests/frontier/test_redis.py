"""The frontier in Redis: commits of several workers, partitions, looking jobs up, and idling."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
import redis

from silkline.errors import ConfigError
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_lookup import exists, options_in, outputs_in, remove
from silkline.outcome import Alias, DeadItem, Done, Item, Lease, Outcome, Stats
from silkline.protocols import Positions
from tests import servers
from tests.frontier.conftest import dead, done, pages, urls
from tests.frontier.redis_worker import Counting, opened
from tests.servers import RedisServer


async def test_a_page_that_another_worker_claims_during_the_commit_is_delivered_again_without_items(
    job: str,
) -> None:
    began, may_end = threading.Event(), threading.Event()
    delivered: list[list[int]] = []

    def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        delivered.append([len(outcome.items) for outcome in outcomes])
        began.set()
        assert may_end.wait(30)
        return positions

    def leads_to_x(lease: Lease) -> Outcome:
        alias = Alias("http://a:80", frontier.fingerprint("http://a/x"))
        return Outcome(lease, Done(), items=(Item(lease.fingerprint, 0, {}),), aliases=(alias,))

    async with opened(job) as frontier, opened(job) as other:
        await frontier.add(pages("a", 2))
        (mine,), (theirs,) = (await frontier.lease(1)).leases, (await other.lease(1)).leases
        slow = asyncio.create_task(frontier.commit([leads_to_x(mine)], deliver))
        assert await asyncio.to_thread(began.wait, 30)
        assert (await other.commit([leads_to_x(theirs)])).duplicates == 0
        may_end.set()
        result = await slow
        assert (result.duplicates, delivered) == (1, [[1], [0]])
        assert await frontier.stats() == Stats(done=2)


async def test_partitions_share_what_pages_are_redirected_to(job: str) -> None:
    hosts = [f"host{n}" for n in range(8)]
    async with opened(job, partitions=3) as frontier:
        await frontier.add([page for host in hosts for page in pages(host, 1)])
        leases: list[Lease] = []
        while len(leases) < len(hosts):
            leases += (await frontier.lease(8)).leases
        alias = Alias("http://home:80", frontier.fingerprint("http://home/0"))
        result = await frontier.commit([Outcome(lease, Done(), aliases=(alias,)) for lease in leases])
        assert (len(result.accepted), result.duplicates) == (8, 7)
        assert (await frontier.add(pages("home", 1))).added == 0


@pytest.fixture(params=[servers.valkey_url, servers.cluster_url], ids=["one server", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param())


class TestPartitions:
    async def test_hosts_are_spread_and_the_whole_is_one_job(self, job: str, url: str) -> None:
        async with opened(job, url, partitions=4) as frontier:
            hosts = [f"h{n}" for n in range(20)]
            for host in hosts:
                await frontier.add(pages(host, 3))
            sizes = [await partition.call("stats") for partition in frontier._job.partitions]
            assert len(sizes) == 4
            assert sum(size[0] > 0 for size in sizes) > 1
            seen: set[str] = set()
            deliver = Counting()
            while not (batch := await frontier.lease(7)).finished:
                links = pages("h1", 5) + pages("new", 2)
                outcomes = [Outcome(lease, Done(), links=tuple(links)) for lease in batch.leases]
                await frontier.commit(outcomes, deliver)
                assert not seen & set(urls(batch))
                seen |= set(urls(batch))
            assert len(seen) == 64
            assert await frontier.stats() == Stats(done=64)
            assert await frontier.positions() == {"out": "64"}
        assert remove(url, job) > 8
        assert not exists(url, job)

    async def test_links_to_other_partitions_come_in_before_the_lease_ends(self, job: str) -> None:
        async with opened(job, partitions=3) as frontier:
            await frontier.add(pages("a", 1))
            (lease,) = (await frontier.lease(1)).leases
            home = frontier._job.of(lease.host)
            elsewhere = [f"x{n}" for n in range(20) if frontier._job.of(f"http://x{n}:80") is not home]
            links = [link for host in elsewhere for link in pages(host, 1)]
            order: list[str] = []
            run = frontier._link.run

            async def noting(verb: str, *rest: object) -> object:
                order.append(verb)
                return await run(verb, *rest)  # type: ignore[arg-type]

            frontier._link.run = noting  # type: ignore[method-assign]
            await frontier.commit(done(lease, links=links))
            assert order[-1] == "commit"
            assert set(order[:-1]) <= {"add", "check"}

    async def test_a_page_budget_is_refused(self, job: str) -> None:
        with pytest.raises(ConfigError, match="max_pages counts in one place"):
            async with opened(job, partitions=2, max_pages=5):
                """Not reached."""


class TestLookup:
    async def test_a_job_is_found_described_and_removed_with_nothing_else(
        self, job: str, client: redis.Redis
    ) -> None:
        url = servers.valkey_url()
        assert not exists(url, job)
        assert options_in(url, job) is None
        client.set(f"{job}:something-else", "not the job's")
        client.set(f"{job}2:meta", "another's")
        async with opened(job, partitions=2, per_host=3, delay=0.5) as frontier:
            await frontier.add(pages("a", 5) + pages("b", 5) + pages("c", 5))
            leases: tuple[Lease, ...] = (await frontier.lease(3)).leases
            done_in_part = Outcome(leases[0], Done(), dead_items=(DeadItem(0, 0, "", "item", "", "{}"),))
            await frontier.commit([done_in_part, *dead(*leases[1:])], Counting())
            assert len(await frontier.dead_items.newest()) == 1
        assert exists(url, job)
        assert outputs_in(url, job) == {"out"}
        options = options_in(url, job)
        assert options is not None
        assert (options.partitions, options.per_host, options.delay) == (2, 3, 0.5)
        assert remove(url, job) > 10
        assert sorted(client.keys(f"{job}*")) == [f"{job}2:meta", f"{job}:something-else"]
        client.delete(f"{job}2:meta", f"{job}:something-else")


async def test_an_idle_worker_needs_no_more_than_one_command_a_second(job: str) -> None:
    """Measured on the frontier alone: one beat every two seconds comes on top, by the engine."""
    server = RedisServer(servers.valkey().binary).start()
    try:
        async with opened(job, server.url, per_host=1) as busy, opened(job, server.url, per_host=1) as idle:
            await busy.add(pages("a", 9))
            await busy.lease(1)
            for _ in range(8):
                await idle.lease(1)
            asked = 0
            loop = asyncio.get_running_loop()
            until = loop.time() + 3.0
            while loop.time() < until:
                wait = (await idle.lease(1)).wake_in
                asked += 1
                assert wait is not None
                await asyncio.sleep(wait)
            assert asked <= 4
    finally:
        server.remove()


async def test_a_worker_that_stays_when_the_job_is_complete_needs_no_news(job: str) -> None:
    """News get lost, and nobody tells any to workers that have not asked for ten minutes."""
    async with opened(job) as frontier:
        batch = await frontier.lease(1)
        assert batch.finished
        assert batch.wake_in is not None
        assert batch.wake_in <= 60


async def test_no_cancellation_gets_lost_in_the_client(job: str) -> None:
    """It once did when it came together with an answer, and the worker never ended."""
    async with opened(job) as frontier:
        await frontier.add(pages("a", 50))
        for turn in range(300):
            task = asyncio.create_task(_for_ever(frontier))
            for _ in range(turn % 30):
                await asyncio.sleep(0)
            task.cancel()
            _, pending = await asyncio.wait([task], timeout=20)
            assert not pending


async def _for_ever(frontier: RedisFrontier) -> None:
    while True:
        await frontier.lease(0)
