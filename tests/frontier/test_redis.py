"""What is particular to the frontier in Redis: lost replies, servers that are away, memory, the inbox."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import redis
import uvloop

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import redis as redis_frontier
from silkline.frontier import redis_link
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_lookup import exists, options_in, outputs_in, remove
from silkline.outcome import Alias, DeadItem, Done, Heartbeat, Item, Lease, Outcome, Stats
from silkline.protocols import Positions
from silkline.request import Request
from tests import servers
from tests.frontier.conftest import dead, done, pages, retry, urls
from tests.proxy import CuttingProxy
from tests.servers import RedisServer

BEAT = Heartbeat("h", 1, 0.0)


@pytest.fixture
def job() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


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


@pytest.fixture
def client() -> redis.Redis:
    return servers.valkey().client()


class Counting:
    """A sink's position that counts what was delivered."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        self.calls.append([outcome.lease.token for outcome in outcomes])
        return {"out": str(int(positions.get("out", "0")) + len(outcomes))}


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


class TestLostReplies:
    async def test_a_commit_whose_reply_is_lost_is_not_done_twice(self, job: str) -> None:
        async with through_proxy(job) as (proxy, frontier):
            await frontier.add(pages("a", 6))
            leases = (await frontier.lease(3)).leases
            proxy.cut_reply = _first_that_says(b"$2\r\nok")
            outcomes = done(leases[0], links=pages("b", 2)) + retry(leases[1]) + dead(leases[2])
            committed = await frontier.commit(outcomes, Counting())
            assert proxy.cuts == 1
            assert (len(committed.accepted), committed.stale, committed.added) == (3, (), 2)
            assert await frontier.stats() == Stats(waiting=5, delayed=1, done=1, dead=1)
            assert await frontier.positions() == {"out": "3"}

    async def test_leases_whose_reply_is_lost_are_given_back_at_the_end(self, job: str) -> None:
        async with through_proxy(job) as (proxy, frontier):
            await frontier.add(pages("a", 4))
            proxy.cut_reply = _first_that_says(b"http://a/0")
            leasing = asyncio.create_task(frontier.lease(2))
            await proxy.was_cut.wait()
            leasing.cancel()
            await asyncio.wait([leasing])
            assert (await frontier.stats()).leased in (2, 4)
        async with opened(job) as frontier:
            assert await frontier.stats() == Stats(waiting=4)
            assert [lease.deliveries for lease in (await frontier.lease(4)).leases] == [1, 1, 1, 1]

    async def test_leases_whose_reply_is_lost_are_given_back_by_the_next_question(self, job: str) -> None:
        async with through_proxy(job) as (proxy, frontier):
            await frontier.add(pages("a", 4))
            proxy.cut_reply = _first_that_says(b"http://a/0")
            first = await frontier.lease(2)
            assert (proxy.cuts, urls(first)) == (1, ["a/2", "a/3"])
            second = await frontier.lease(2)
            assert [(lease.request.url, lease.deliveries) for lease in second.leases] == [
                ("http://a/0", 1),
                ("http://a/1", 1),
            ]

    async def test_leases_of_one_partition_are_given_back_whatever_the_others_answer(self, job: str) -> None:
        hosts = [f"host{n}" for n in range(12)]
        async with through_proxy(job, partitions=2) as (proxy, frontier):
            await frontier.add([page for host in hosts for page in pages(host, 1)])
            proxy.cut_reply = _first_that_says(b"http://host")
            leases = list((await frontier.lease(3)).leases)
            assert proxy.cuts == 1
            while len(leases) < 12:
                more = (await frontier.lease(12)).leases
                assert more
                leases += more
            assert {lease.deliveries for lease in leases} == {1}

    async def test_a_commit_is_answered_to_a_worker_that_was_cut_off_and_forgotten(
        self, job: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(redis_frontier, "FORGET", 0.0)
        cut_off = asyncio.Event()

        def cut(data: bytes) -> bool:
            if b"$2\r\nok" in data:
                cut_off.set()
            return cut_off.is_set()

        async with through_proxy(job) as (proxy, frontier), opened(job) as other:
            await frontier.heartbeat(BEAT)
            await frontier.add(pages("a", 1))
            proxy.cut_reply = cut
            committing = asyncio.create_task(
                frontier.commit(done(*(await frontier.lease(1)).leases), Counting())
            )
            await cut_off.wait()
            await other.heartbeat(BEAT)  # a worker's first beat looks for those that are gone
            assert [worker.id for worker in (await other.overview()).workers] == [other.worker]
            proxy.cut_reply = lambda data: False
            committed = await committing
            assert (len(committed.accepted), committed.stale) == (1, ())
            assert await frontier.positions() == {"out": "1"}

    async def test_a_late_copy_of_a_call_does_not_take_the_place_of_the_next_one(
        self, job: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is left in the buffers of a connection that was given up may arrive at any time."""
        async with opened(job) as frontier:
            await frontier.add(pages("a", 2))
            run, sent = frontier._link.run, []

            async def recorded(*words: Any) -> Any:
                sent.append(words)
                return await run(*words)

            monkeypatch.setattr(frontier._link, "run", recorded)
            for lease in (await frontier.lease(2)).leases:
                await frontier.commit(done(lease), Counting())
            first, second = (words for words in sent if words[0] == "commit")
            answer = await run(*second)
            assert answer[0] == b"ok"
            with pytest.raises(FrontierError, match="SUPERSEDED"):
                await run(*first)
            assert await run(*second) == answer

    async def test_with_connections_cut_at_random_every_page_counts_once(self, job: str) -> None:
        chance = random.Random(5)
        async with through_proxy(job, lease_seconds=1.0) as (proxy, frontier):
            added = await frontier.add(pages("a", 120))
            proxy.cut_reply = lambda data: chance.random() < 0.08
            proxy.cut_request = lambda data: chance.random() < 0.03
            deliver, counted = Counting(), 0
            while not (batch := await frontier.lease(8)).finished:
                committed = await frontier.commit(done(*batch.leases), deliver)
                counted += len(committed.accepted)
                await asyncio.sleep(min(batch.wake_in or 0.0, 0.1))
            assert proxy.cuts > 3
            proxy.cut_reply = proxy.cut_request = lambda data: False
            assert added.added == 120
            assert await frontier.stats() == Stats(done=120)
            assert counted == 120
            assert await frontier.positions() == {"out": "120"}


def _first_that_says(word: bytes):  # type: ignore[no-untyped-def]
    """True for the first piece of data with that word in it, and never again."""
    met = []

    def rule(data: bytes) -> bool:
        if word in data and not met:
            met.append(data)
            return True
        return False

    return rule


class TestFencing:
    async def test_a_stale_token_found_at_the_commit_takes_its_items_back(self, job: str) -> None:
        """The lease was lost, and this worker has no way to know before it commits."""
        async with opened(job) as slow, opened(job) as other:
            await slow.add(pages("a", 2))
            first, second = (await slow.lease(2)).leases
            await other._job.home.release([(first.host, [str(first.token)])])
            deliver = Counting()
            committed = await slow.commit(done(first, second), deliver)
            assert committed.stale == (first.token,)
            assert deliver.calls == [[first.token, second.token], [second.token]]
            assert await slow.positions() == {"out": "1"}
            assert await slow.stats() == Stats(waiting=1, done=1)

    async def test_no_two_leases_ever_have_one_token_even_if_the_server_falls_back(
        self, job: str, client: redis.Redis
    ) -> None:
        async with opened(job, lease_seconds=0.05) as frontier:
            await frontier.add(pages("a", 1))
            (first,) = (await frontier.lease(1)).leases
            client.hset(f"{job}:meta", "last_token", 0)
            await asyncio.sleep(0.06)
            (again,) = (await frontier.lease(1)).leases
            assert again.token > first.token

    async def test_an_output_that_another_worker_moved_is_written_from_where_it_is(self, job: str) -> None:
        async with opened(job) as one, opened(job) as two:
            await one.add(pages("a", 3))
            (a,) = (await one.lease(1)).leases
            (b,) = (await two.lease(1)).leases
            await one.commit(done(a), Counting())
            await two.commit(done(b), Counting())
            assert await one.positions() == {"out": "2"}


class TestAway:
    async def test_a_wrong_address_is_said_soon(self, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(redis_link, "FIRST_PATIENCE", 0.5)
        frontier = RedisFrontier(
            f"redis://u:secret@127.0.0.1:{servers.free_port()}/0", FrontierOptions(job=job)
        )
        with pytest.raises(FrontierError, match="no Redis answers at") as caught:
            await frontier.open()
        assert "secret" not in str(caught.value)

    async def test_a_wrong_password_is_said_at_once(self, job: str) -> None:
        server = RedisServer(servers.valkey().binary, "--requirepass", "right")
        try:
            server.start(wait=False)
            url = f"redis://:wrong@127.0.0.1:{server.port}/0"
            frontier = RedisFrontier(url, FrontierOptions(job=job))
            with pytest.raises(ConfigError, match="refuses the user or the password") as caught:
                await frontier.open()
            assert "wrong" not in str(caught.value)
            async with opened(job, url.replace("wrong", "right")) as frontier:
                assert await frontier.stats() == Stats()
        finally:
            server.remove()

    async def test_a_restart_is_waited_for_and_said_once(self, job: str) -> None:
        # Written before it answers: on a busy disk "everysec" may put off even the write, and a kill lose it.
        options = ("--appendonly", "yes", "--appendfsync", "always")
        server = RedisServer(servers.valkey().binary, *options).start()
        said: list[str] = []
        try:
            async with opened(job, server.url) as frontier:
                frontier.listen(lambda: None, said.append)
                await frontier.add(pages("a", 50))
                leases = (await frontier.lease(5)).leases
                server.stop(kill=True)
                committing = asyncio.create_task(frontier.commit(done(*leases), Counting()))
                await asyncio.sleep(0.5)
                server.start()
                assert len((await committing).accepted) == 5
                assert await frontier.stats() == Stats(waiting=45, done=5)
            assert [line.split(" (")[0].split(" after")[0] for line in said] == [
                f"Redis at redis://127.0.0.1:{server.port}/0 is away",
                f"Redis at redis://127.0.0.1:{server.port}/0 is back",
            ]
        finally:
            server.remove()

    async def test_a_worker_that_leaves_does_not_wait_for_a_server_that_is_away(self, job: str) -> None:
        server = RedisServer(servers.valkey().binary).start()
        frontier = RedisFrontier(server.url, FrontierOptions(job=job))
        await frontier.open()
        server.remove()
        said: list[str] = []
        frontier.listen(lambda: None, said.append)
        await asyncio.wait_for(frontier.close(), 20)
        assert "left without a word" in said[-1]

    @pytest.mark.parametrize("refusal", ["OOM", "READONLY"])
    async def test_a_server_that_takes_no_writes_is_waited_for(self, job: str, refusal: str) -> None:
        server = RedisServer(servers.valkey().binary).start()
        said: list[str] = []
        try:
            async with opened(job, server.url) as frontier:
                await frontier.add(pages("a", 5))
                frontier.listen(lambda: None, said.append)
                with server.client() as client:
                    if refusal == "OOM":
                        client.config_set("maxmemory", 1)
                    else:
                        client.replicaof("127.0.0.1", servers.free_port())
                    adding = asyncio.create_task(frontier.add(pages("b", 2)))
                    await asyncio.sleep(0.3)
                    assert not adding.done()
                    client.config_set("maxmemory", 0) if refusal == "OOM" else client.replicaof("NO", "ONE")
                assert (await adding).added == 2
                assert "is away" in said[0]
        finally:
            server.remove()

    async def test_after_a_wipe_workers_stop_instead_of_finishing(self, job: str) -> None:
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        await frontier.open()
        await frontier.add(pages("a", 5))
        assert remove(servers.valkey_url(), job) > 0
        with pytest.raises(FrontierError, match="the job is gone from Redis"):
            await frontier.lease(1)
        said: list[str] = []
        frontier.listen(lambda: None, said.append)
        await frontier.close()
        assert "the job is gone from Redis" in said[0]

    @pytest.mark.parametrize("first_call", ["lease", "commit"])
    async def test_a_server_that_falls_back_is_found_out_before_anything_is_visited_again(
        self, job: str, first_call: str
    ) -> None:
        """Else links of a lost commit would be left out as known when their page is visited again."""
        server = RedisServer(servers.valkey().binary, "--save", "3600 1000000").start()
        said: list[str] = []
        try:
            async with opened(job, server.url, lease_seconds=3) as frontier:
                frontier.listen(lambda: None, said.append)
                await frontier.add(pages("a", 3))
                first, second, third = (await frontier.lease(3)).leases
                await frontier.commit(done(first), Counting())
                with server.client() as client:
                    client.save()
                assert not (await frontier.lease(1)).fell_back
                await frontier.commit(done(second, links=pages("b", 1)), Counting())
                server.stop(kill=True)
                server.start()
                if first_call == "commit":  # takes the place of the one that is lost
                    await frontier.commit(done(third), Counting())
                batch = await frontier.lease(0)
                assert batch.fell_back
                assert not (await frontier.lease(0)).fell_back
                assert [line for line in said if "fell back to an earlier state" in line]
                await asyncio.sleep(3)
                again = {lease.request.url: lease for lease in (await frontier.lease(9)).leases}
                others = [] if first_call == "commit" else [third.request.url]
                assert again.keys() == {second.request.url, *others}
                await frontier.commit(done(again[second.request.url], links=pages("b", 1)), Counting())
                assert await frontier.stats() == Stats(waiting=1, leased=len(others), done=3 - len(others))
                assert not (await frontier.lease(0)).fell_back
        finally:
            server.remove()

    async def test_a_job_that_is_gone_is_not_begun_again_by_its_workers(
        self, job: str, client: redis.Redis
    ) -> None:
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        frontier.listen(lambda: None, lambda line: None)
        await frontier.open()
        remove(servers.valkey_url(), job)
        for write in (
            lambda: frontier.apply(FrontierOptions(job=job, per_host=3)),
            lambda: frontier.remember({"a": "b"}),
            lambda: frontier.configure({"delay": "1"}),
        ):
            with pytest.raises(FrontierError, match="the job is gone from Redis"):
                await write()
        await frontier.close()
        assert client.keys(f"{job}:*") == []

    async def test_a_server_that_keeps_nothing_is_warned_about(self, job: str) -> None:
        said: list[str] = []
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        frontier.listen(lambda: None, said.append)
        await frontier.open()
        await frontier.close()
        assert len(said) == 1
        assert "appendonly yes" in said[0]
        assert "save 60 1000" in said[0]

    async def test_a_key_of_another_program_is_named_and_left_alone(
        self, job: str, client: redis.Redis
    ) -> None:
        client.set(f"{job}:meta", "mine")
        with pytest.raises(JobError, match="is used by another program"):
            async with opened(job):
                """Not reached."""
        assert client.get(f"{job}:meta") == "mine"


async def _subscribed(client: redis.Redis, job: str, count: int) -> None:
    async with asyncio.timeout(20):
        while dict(client.pubsub_numsub(f"{job}:news"))[f"{job}:news"] < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class TestNews:
    async def test_an_idle_worker_hears_of_work_and_of_the_end(self, job: str, client: redis.Redis) -> None:
        heard = asyncio.Event()
        async with opened(job) as idle, opened(job) as busy:
            await _subscribed(client, job, 2)
            idle.listen(heard.set, lambda line: None)
            assert not (await idle.lease(1)).leases
            await busy.add(pages("a", 1))
            await asyncio.wait_for(heard.wait(), 10)
            heard.clear()
            leases = (await busy.lease(1)).leases
            assert not (await idle.lease(1)).leases
            heard.clear()
            await busy.commit(done(*leases))
            await asyncio.wait_for(heard.wait(), 10)
            assert (await idle.lease(1)).finished

    async def test_a_worker_that_gets_nothing_asks_less_and_less_often(self, job: str) -> None:
        async with opened(job, per_host=1) as busy, opened(job, per_host=1) as idle:
            await busy.add(pages("a", 50))
            await busy.lease(1)
            waits = [(await idle.lease(1)).wake_in for _ in range(8)]
            assert all(wait is not None for wait in waits)
            assert waits[-1] >= 0.9  # type: ignore[operator]

    async def test_one_that_got_less_than_it_wanted_is_not_woken_by_every_bit_of_news(self, job: str) -> None:
        told: list[int] = []
        async with opened(job) as frontier:
            frontier.listen(lambda: told.append(1), lambda line: None)
            await frontier.add(pages("a", 2))
            assert len((await frontier.lease(5)).leases) == 2
            frontier._news._heard(b"work")
            frontier._news._heard(b"work")
            assert not told
            await asyncio.sleep(0.15)
            assert told == [1]


def test_news_that_come_when_a_timer_is_about_to_ring_are_heard() -> None:
    """The loop of a crawl has timers that do not tell when they ring."""

    async def hear() -> int:
        rounds = 0
        told: list[int] = []
        async with opened("news-under-uvloop") as frontier:
            frontier.listen(lambda: told.append(1), lambda line: None)
            for _ in range(3):
                told.clear()
                frontier._news._not_before = asyncio.get_running_loop().time() + 0.0003
                frontier._news._heard(b"work")
                frontier._news._heard(b"work")
                await asyncio.sleep(0.02)
                rounds += bool(told)
        return rounds

    assert uvloop.run(hear()) == 3


class TestMemory:
    @pytest.mark.parametrize("count", [200_000])
    async def test_a_seen_url_costs_at_most_twelve_bytes_and_a_waiting_one_forty_beside_its_json(
        self, count: int
    ) -> None:
        await _measure(count)

    @pytest.mark.soak
    @pytest.mark.timeout(7200)
    @pytest.mark.parametrize("count", [1_000_000, 10_000_000, 50_000_000])
    async def test_that_holds_for_millions(self, count: int) -> None:
        await _measure(count)


async def _measure(count: int) -> None:
    """Seen URLs without their requests are measured by adding them in a script of the store's own."""
    server = RedisServer(servers.valkey().binary).start()
    try:
        async with opened("m", server.url) as frontier:
            client = redis.Redis(port=server.port, socket_timeout=None)
            sample = 100_000
            before = client.info("memory")["used_memory"]
            size = 0
            for start in range(0, sample, 1_000):
                batch = [
                    Request(f"http://shop.example/products/{n}.html") for n in range(start, start + 1_000)
                ]
                size += sum(len(msgspec.json.encode(request)) for request in batch)
                await frontier.add(batch)
            both = client.info("memory")["used_memory"] - before
            while leases := (await frontier.lease(1_000)).leases:
                await frontier.commit([Outcome(lease, Done()) for lease in leases])
            seen = client.info("memory")["used_memory"] - before
            assert (both - seen - size) / sample <= 40
            # The rest only as fingerprints: their requests came and went.
            chance = random.Random(1)
            mark = servers.seen_script()
            began = time.monotonic()
            for _ in range(0, count - sample, 10_000):
                numbers = [str(chance.getrandbits(64) - 2**63) for _ in range(10_000)]
                client.eval(mark, 1, "m:meta", frontier._job.home._header({}), *numbers)
            per_url = (client.info("memory")["used_memory"] - before) / count
            print(f"{count:,} URLs: {per_url:.2f} bytes each, after {time.monotonic() - began:,.0f} s")
            assert per_url <= (12 if count >= 1_000_000 else 14)
    finally:
        server.remove()


class TestDedup:
    async def test_bloom_forgets_nothing_and_errs_as_rarely_as_promised(self, job: str) -> None:
        async with opened(job, dedup="bloom", bloom_capacity=2_000, bloom_error=0.01) as frontier:
            first = [Request(f"http://a/{n}") for n in range(8_000)]
            added = 0
            for start in range(0, 8_000, 1_000):
                added += (await frontier.add(first[start : start + 1_000])).added
            assert 8_000 * 0.99 <= added <= 8_000
            for start in range(0, 8_000, 1_000):
                assert (await frontier.add(first[start : start + 1_000])).added == 0
            (note, *_) = (await frontier.overview()).notes
            assert "3 layer(s)" in note or "4 layer(s)" in note
            assert "0.00" in note

    async def test_none_lets_everything_in_again(self, job: str) -> None:
        async with opened(job, dedup="none") as frontier:
            assert [(await frontier.add(pages("a", 2))).added for _ in range(2)] == [2, 2]

    async def test_what_a_job_was_created_with_stays(self, job: str) -> None:
        async with opened(job, dedup="none", partitions=2):
            """Created."""
        async with opened(job) as frontier:
            assert (await frontier.add(pages("a", 2) + pages("a", 2))).added in (2, 4)
            assert frontier._job.options.partitions == 2
        with pytest.raises(JobError, match="was created with partitions=2, not 3"):
            async with opened(job, partitions=3):
                """Not reached."""

    async def test_generations_of_seen_sets_open_as_it_grows(self, job: str, client: redis.Redis) -> None:
        async with opened(job) as frontier:
            await frontier.add(pages("a", 10))
            client.hset(f"{job}:meta", "newest_count", 256 * 4096 - 5)
            await frontier.add(pages("b", 10))
            assert client.hget(f"{job}:meta", "generations") == "2"
            assert (await frontier.add(pages("a", 11) + pages("b", 11))).added == 2
            assert client.keys(f"{job}:seen:2:*")


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
