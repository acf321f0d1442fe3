"""What every frontier promises its operator: heartbeats, live settings, limits, the overview."""

from __future__ import annotations

import msgspec

from silkline.config import FrontierOptions
from silkline.outcome import Heartbeat, HostState, Overview, Stats, WorkerState
from tests.frontier.conftest import ManualClock, Opened, dead, done, pages, retry, urls

BEAT = Heartbeat(
    host="box-ü", pid=4711, started=1_799_999_000.5, pages=12, items=3, in_flight=2, ready=1, rate=1.5
)


class TestHeartbeat:
    async def test_it_is_seen_by_the_operator_until_the_worker_closes(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            assert (await frontier.overview()).workers == ()
            await frontier.heartbeat(BEAT)
            clock.now += 1.5
            assert (await frontier.overview()).workers == (WorkerState(frontier.worker, 1.5, BEAT),)
            later = msgspec.structs.replace(BEAT, pages=13, paused=True)
            await frontier.heartbeat(later)
            assert (await frontier.overview()).workers == (WorkerState(frontier.worker, 0.0, later),)
            await frontier.close()
            await frontier.open()
            assert (await frontier.overview()).workers == ()

    async def test_the_holder_of_a_lease_goes_by_the_workers_id(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            await frontier.lease(1)
            assert f"by worker {frontier.worker} " in (await frontier.explain("http://a/0")).detail


class TestLiveSettings:
    async def test_they_are_set_and_unset_one_by_one(self, opened: Opened) -> None:
        async with opened() as frontier:
            assert await frontier.configure({}) == {}
            assert await frontier.configure({"delay": "0.5", "paused": "true"}) == {
                "delay": "0.5",
                "paused": "true",
            }
            assert await frontier.configure({"delay": "2", "concurrency": "9"}) == {
                "delay": "2",
                "paused": "true",
                "concurrency": "9",
            }
            left = {"paused": "true", "concurrency": "9"}
            assert await frontier.configure({"delay": None, "retries": None}) == left
            assert (await frontier.overview()).live == left

    async def test_a_worker_gets_them_raw_with_its_heartbeat(self, opened: Opened) -> None:
        async with opened() as frontier:
            assert await frontier.heartbeat(BEAT) == {}
            odd = {"paused": "perhaps", "what is this": "ü\n"}
            await frontier.configure(odd)
            assert await frontier.heartbeat(BEAT) == odd

    async def test_they_outlive_the_worker(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.configure({"delay": "3"})
            await frontier.close()
            await frontier.open()
            assert await frontier.heartbeat(BEAT) == {"delay": "3"}


class TestApply:
    async def test_a_larger_cap_frees_slots_at_once(self, opened: Opened) -> None:
        async with opened(per_host=1) as frontier:
            await frontier.add(pages("a", 5))
            assert len((await frontier.lease(5)).leases) == 1
            await frontier.apply(FrontierOptions(per_host=3))
            assert len((await frontier.lease(5)).leases) == 2

    async def test_a_smaller_cap_holds_back_until_slots_are_free(self, opened: Opened) -> None:
        async with opened(per_host=3) as frontier:
            await frontier.add(pages("a", 6))
            first = (await frontier.lease(3)).leases
            await frontier.apply(FrontierOptions(per_host=1))
            await frontier.commit(done(*first[:2]))
            assert (await frontier.lease(5)).leases == ()
            await frontier.commit(done(first[2]))
            assert urls(await frontier.lease(5)) == ["a/3"]

    async def test_a_delay_holds_from_the_last_start_on(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(window=0.0) as frontier:
            await frontier.add(pages("a", 3))
            await frontier.lease(1)
            await frontier.apply(FrontierOptions(delay=4.0, window=0.0))
            batch = await frontier.lease(1)
            assert (batch.leases, batch.wake_in) == ((), 4.0)
            clock.now += 4.0
            assert urls(await frontier.lease(3)) == ["a/1"]

    async def test_a_shorter_delay_brings_sleeping_hosts_forward(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(delay=3600.0, window=0.0) as frontier:
            await frontier.add(pages("a", 2) + pages("b", 2))
            assert len((await frontier.lease(4)).leases) == 2
            await frontier.apply(FrontierOptions(delay=1.0, window=0.0))
            assert (await frontier.lease(4)).wake_in == 1.0
            clock.now += 1.0
            assert sorted(urls(await frontier.lease(4))) == ["a/1", "b/1"]

    async def test_a_hosts_own_limits_and_its_block_stay(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3) + pages("b", 3))
            await frontier.limit_host("http://a:80", cap=1)
            await frontier.block_host("http://b:80", 30.0)
            await frontier.apply(FrontierOptions(per_host=2))
            assert urls(await frontier.lease(9)) == ["a/0"]
            clock.now += 30.0
            assert urls(await frontier.lease(9)) == ["b/0", "b/1"]

    async def test_leases_live_and_die_by_the_new_limits(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(lease_seconds=60.0, max_deliveries=5) as frontier:
            await frontier.add(pages("a", 1))
            await frontier.apply(FrontierOptions(lease_seconds=2.0, max_deliveries=1))
            await frontier.lease(1)
            clock.now += 2.0
            assert (await frontier.lease(1)).finished
            assert await frontier.dead_letters.causes() == {"crash": 1}


class TestOverview:
    async def test_an_empty_job_has_nothing_to_show(self, opened: Opened) -> None:
        async with opened() as frontier:
            overview = await frontier.overview()
            assert msgspec.structs.replace(overview, notes=()) == Overview(Stats())

    async def test_hosts_come_with_the_most_waiting_first_and_their_limits(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(delay=2.0, window=0.0) as frontier:
            await frontier.add(pages("small", 1) + pages("big", 5) + pages("idle", 1) + pages("middle", 3))
            await frontier.limit_host("http://middle:80", delay=9.0, cap=2)
            leases = {lease.request.url: lease for lease in (await frontier.lease(9)).leases}
            await frontier.commit(done(leases["http://idle/0"]) + retry(leases["http://small/0"]))
            await frontier.block_host("http://big:80", 60.0)
            clock.now += 0.5
            overview = await frontier.overview()
            assert overview.hosts == (
                HostState("http://big:80", 4, 1, due_in=59.5, blocked_for=59.5),
                HostState("http://middle:80", 2, 1, delay=9.0, cap=2, due_in=8.5),
            )
            assert overview.host_count == 2
            assert overview.stats == Stats(waiting=6, delayed=1, leased=2, done=1)
            short = await frontier.overview(1)
            assert (short.hosts, short.host_count) == (overview.hosts[:1], 2)
            assert (await frontier.overview(0)).host_count == 2

    async def test_the_oldest_lease_is_as_old_as_since_it_was_given(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(lease_seconds=60.0) as frontier:
            await frontier.add(pages("a", 3))
            (first,) = (await frontier.lease(1)).leases
            clock.now += 20.0
            (second,) = (await frontier.lease(1)).leases
            await frontier.renew([first.token])
            clock.now += 1.0
            assert (await frontier.overview()).oldest_lease == 21.0
            await frontier.commit(dead(first))
            assert (await frontier.overview()).oldest_lease == 1.0
            await frontier.release([second.token])
            assert (await frontier.overview()).oldest_lease is None
            await frontier.lease(1)
            assert (await frontier.overview()).oldest_lease == 0.0


async def test_nobody_is_told_news_of_its_own_doing(opened: Opened) -> None:
    news: list[None] = []
    async with opened() as frontier:
        frontier.listen(lambda: news.append(None), lambda line: None)
        await frontier.heartbeat(BEAT)
        news.clear()  # what was there before
        await frontier.add(pages("a", 2))
        await frontier.commit(done(*(await frontier.lease(2)).leases))
        await frontier.heartbeat(BEAT)
        assert news == []
