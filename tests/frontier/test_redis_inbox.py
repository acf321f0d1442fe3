"""The inbox in Redis: what any program pushes comes in once, and nothing of it gets lost on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import pytest
import redis

from silkline.config import FrontierOptions
from silkline.frontier import redis as redis_frontier
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_inbox import Inbox
from silkline.frontier.redis_wire import Placed
from silkline.outcome import Heartbeat, Outcome, RetryLater, Stats
from silkline.request import Request
from tests import servers
from tests.frontier.conftest import done, urls
from tests.frontier.redis_worker import BEAT, opened, through_proxy
from tests.servers import RedisServer


async def test_what_is_pushed_shares_limits_by_domain_and_address_too(job: str, client: redis.Redis) -> None:
    async def resolve(names: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(names, "10.0.0.1")

    options = FrontierOptions(job=job, politeness_by="ip", partitions=3, per_host=2)
    frontier = RedisFrontier(servers.valkey_url(), options, resolve=resolve)
    await frontier.open()
    client.rpush(f"{job}:task:wait", "http://a/1", "http://b/1", "{not json", "http://c/1", "http://b/1")
    batch = await frontier.lease(10)
    assert [lease.host for lease in batch.leases] == ["10.0.0.1"] * 2
    assert await frontier.stats() == Stats(waiting=1, leased=2, dead=1)
    await frontier.close()
    assert client.hget(f"{job}:meta", "version") == "3", "older versions stay away"


async def test_what_others_push_is_visited_and_what_is_no_task_becomes_a_dead_letter(
    job: str, client: redis.Redis
) -> None:
    client.rpush(
        f"{job}:task:wait",
        '{"url":"http://a/1","retry_count":0,"extra":{"k":1}}',
        "http://a/2",
        "http://a/2",
        "{not json",
        '{"url":"file:///etc/passwd"}',
        '{"url":"http://a/3","save_to":"/etc/cron.d/x"}',
        '{"url":"http://a/4","headers":{"Content-Length":"5"}}',
        b"\xff\xfe",
        "x" * 3_000_000,
    )
    async with opened(job) as frontier:
        batch = await frontier.lease(10)
        assert urls(batch) == ["a/1", "a/2"]
        assert batch.leases[0].request.extra == {"k": 1}
        assert (await frontier.dead_letters.causes()) == {"bad_task": 6}
        assert (await frontier.stats()) == Stats(leased=2, dead=6)
        assert await frontier.dead_letters.resend(cause="bad_task") == 0
        assert await frontier.dead_letters.drop(cause="bad_task") == 6
    assert client.memory_usage(f"{job}:meta")


async def test_a_field_of_the_users_own_is_no_count_of_retries(job: str, client: redis.Redis) -> None:
    client.rpush(f"{job}:task:wait", '{"url":"http://a/1","extra":{"retry_count":77}}')
    async with opened(job) as frontier:
        for told in ("retry 0", "retry 1"):
            (lease,) = (await frontier.lease(1)).leases
            free = told == "retry 0"
            verdict = RetryLater(0.0, "paused", "not now", costs_retry=not free)
            await frontier.commit([Outcome(lease, verdict)])
            assert told in (await frontier.explain("http://a/1")).detail


async def test_twenty_thousand_entries_come_in_once_each_with_two_workers(
    job: str, client: redis.Redis
) -> None:
    tasks = [f"http://h{n % 50}/{n}" for n in range(20_000)]
    for start in range(0, len(tasks), 5_000):
        client.rpush(f"{job}:task:wait", *tasks[start : start + 5_000])
    async with opened(job) as one, opened(job) as two:
        while (await one.stats()).inbox:
            await asyncio.gather(one.lease(0), two.lease(0))
        assert await one.stats() == Stats(waiting=20_000)


async def test_a_worker_that_dies_while_it_drains_loses_nothing(job: str, client: redis.Redis) -> None:
    client.rpush(f"{job}:task:wait", *[f"http://a/{n}" for n in range(10)])
    async with opened(job) as dying:
        await dying._job.home.call("drain", worker=dying.worker, number=1, count=5, bytes=1000, total=10_000)
    async with opened(job) as frontier:
        assert (await frontier.lease(5)).leases == ()
        assert (await frontier.stats()).inbox == 10
        client.delete(f"{job}:draining")  # as its time to live does
        assert len((await frontier.lease(5)).leases) == 5
        assert await frontier.stats() == Stats(waiting=5, leased=5)


def between(inbox: Inbox, happens: Callable[[], object]) -> None:
    """Once, after the entries were read and before they are taken out."""
    before = inbox._elsewhere

    async def meddle(requests: list[Placed]) -> list[Placed]:
        inbox._elsewhere = before
        result = happens()
        if isinstance(result, Awaitable):
            await result
        return await before(requests)

    inbox._elsewhere = meddle


@pytest.mark.parametrize(
    ("entries", "command", "left"),
    [
        (["a/1", "a/2"], ("LPUSH", "", "http://a/0"), 3),
        (["a/1", "a/2"], ("LPOP", ""), 1),
        (["a/1", "a/2", "a/2"], ("LINSERT", "", "BEFORE", "http://a/2", "http://a/0"), 3),
        (["a/1", "a/2", "a/3"], ("LSET", "", "1", "http://a/0"), 3),
    ],
    ids=["put in front", "taken out", "put between", "replaced"],
)
async def test_what_another_program_does_to_the_list_meanwhile_is_not_lost(
    job: str, client: redis.Redis, entries: list[str], command: tuple[str, ...], left: int
) -> None:
    name, _, *words = command
    client.rpush(f"{job}:task:wait", *(f"http://{entry}" for entry in entries))
    async with opened(job) as frontier:
        inbox = frontier._inbox
        between(inbox, lambda: client.execute_command(name, f"{job}:task:wait", *words))
        assert await inbox.drain() is None
        assert await inbox.drain()
        assert await frontier.stats() == Stats(waiting=left)


async def test_of_two_workers_that_drain_the_slower_one_takes_nothing_out(
    job: str, client: redis.Redis
) -> None:
    """Its turn is over, the other one was through, and the same was pushed again."""
    key = f"{job}:task:wait"
    client.rpush(key, "http://a/1", "http://a/2")
    async with opened(job, dedup="none") as slow, opened(job, dedup="none") as quick:

        async def overtaken() -> None:
            assert await quick._inbox.drain() is None, "it is the other one's turn"
            client.delete(f"{job}:draining")  # as its time to live does
            assert await quick._inbox.drain() == 2
            client.rpush(key, "http://a/1", "http://a/2")

        between(slow._inbox, overtaken)
        assert await slow._inbox.drain() is None
        assert await slow.stats() == Stats(waiting=2, inbox=2)
        assert await slow._inbox.drain() == 2
        assert await slow.stats() == Stats(waiting=4)


async def test_entries_come_in_once_though_the_answer_to_that_is_lost(job: str, client: redis.Redis) -> None:
    lost: list[bytes] = []

    def cut(data: bytes) -> bool:
        if not lost and data == b"*1\r\n:3\r\n":
            lost.append(data)
            return True
        return False

    client.rpush(f"{job}:task:wait", "http://a/1", "http://a/2", "http://a/3", "{not json")
    async with through_proxy(job, dedup="none") as (proxy, frontier):
        proxy.cut_reply = cut
        assert await frontier._inbox.drain() == 4
        assert lost
        assert await frontier.stats() == Stats(waiting=3, dead=1)


async def test_a_server_that_is_restarted_between_the_two_steps_loses_and_doubles_nothing(job: str) -> None:
    server = RedisServer(servers.valkey().binary, "--appendonly", "yes", "--appendfsync", "always").start()
    try:
        async with opened(job, server.url, dedup="none") as frontier:
            server.client().rpush(f"{job}:task:wait", *(f"http://a/{n}" for n in range(20)))

            def restart() -> None:
                server.stop(kill=True)
                server.start()

            between(frontier._inbox, restart)
            while (await frontier.stats()).inbox:
                await frontier._inbox.drain()
            assert await frontier.stats() == Stats(waiting=20)
    finally:
        server.remove()


async def test_what_is_no_task_is_not_charged_to_the_page_budget(job: str, client: redis.Redis) -> None:
    client.rpush(f"{job}:task:wait", "{not json", "{}", "http://a/1", "http://a/2", "http://a/3")
    async with opened(job, max_pages=2) as frontier:
        await frontier._inbox.drain()
        batch = await frontier.lease(10)
        assert urls(batch) == ["a/1", "a/2"]
        await frontier.commit(done(*batch.leases))
        assert (await frontier.lease(10)).budget_spent
        assert await frontier.stats() == Stats(waiting=1, done=2, dead=2)


async def test_the_beat_tells_an_idle_worker_of_the_inbox(job: str, client: redis.Redis) -> None:
    heard = asyncio.Event()
    async with opened(job) as frontier:
        frontier.listen(heard.set, lambda line: None)
        await frontier.heartbeat(Heartbeat("h", 1, 0.0))
        client.rpush(f"{job}:task:wait", "http://a/1")
        heard.clear()
        await frontier.heartbeat(Heartbeat("h", 1, 0.0))
        assert heard.is_set()


@pytest.mark.parametrize("partitions", [1, 2])
async def test_what_workers_that_are_gone_were_answered_is_forgotten_everywhere(
    job: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr(redis_frontier, "FORGET", 0.0)
    monkeypatch.setattr(redis_frontier, "FORGET_CALLS", -1.0)
    hosts = [f"http://h{n}/" for n in range(20)]
    lanes = [f"{job}:ops", f"{job}:p1:ops"][:partitions]
    async with opened(job, partitions=partitions) as living:
        killed = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job, partitions=partitions))
        await killed.open()
        await living.heartbeat(BEAT)
        await killed.add([Request(url) for url in hosts])
        await living.add([Request(f"{url}x") for url in hosts])
        for key in lanes:
            assert client.hkeys(key) == [f"{killed.worker}:add", f"{living.worker}:add"]
        living._beats = 0  # the next one looks for those that are gone
        await living.heartbeat(BEAT)
        for key in lanes:
            assert client.hkeys(key) == [f"{living.worker}:add"]
        await killed._link.close()
