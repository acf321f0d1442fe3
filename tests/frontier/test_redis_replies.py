"""What becomes of calls whose replies are lost, of old copies of them, and of workers that are not alone."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
import redis

from silkline.errors import FrontierError
from silkline.frontier import redis as redis_frontier
from silkline.outcome import Stats
from tests.frontier.conftest import dead, done, pages, retry, urls
from tests.frontier.redis_worker import BEAT, Counting, opened, through_proxy


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
