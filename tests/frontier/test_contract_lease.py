"""What every frontier promises, whatever its store: adding, leasing, politeness, expiry."""

from __future__ import annotations

import pytest

from silkline.errors import BadUrlError, TaskError
from silkline.frontier.rules import crash_backoff
from silkline.outcome import Added, Done, Outcome, Stats
from silkline.request import Request
from tests.frontier.conftest import ManualClock, Opened, done, pages, retry, urls


class TestAdd:
    async def test_a_url_is_enqueued_once_however_it_is_written(self, opened: Opened) -> None:
        async with opened() as frontier:
            assert await frontier.add(pages("a", 2) + pages("a", 1)) == Added(added=2, duplicate=1)
            assert await frontier.add([Request("HTTP://A:80/x/../0#top")]) == Added(added=0, duplicate=1)
            assert (await frontier.stats()).waiting == 2

    async def test_a_key_of_its_own_lets_a_url_in_again(self, opened: Opened) -> None:
        async with opened() as frontier:
            page = Request("http://a/")
            assert (await frontier.add([page, Request("http://a/", key="again")])).added == 2

    async def test_a_request_comes_back_as_it_went_in(self, opened: Opened) -> None:
        request = Request(
            'https://bücher.example/a?q="quoted"&z=\' ü \U0001f577',
            method="POST",
            headers={"X-A": 'a "b" \\ \x00 \x7f'},
            body=b"\x00\xff{}",
            label="author",
            priority=-7,
            depth=3,
            retry_count=2,
            extra={"n": 9_007_199_254_740_993, "f": 0.1, "list": [1, None, True], "": {"$": "ü\x00"}},
            key="k'ey",
        )
        async with opened() as frontier:
            await frontier.add([request])
            (lease,) = (await frontier.lease(5)).leases
            assert lease.request == request
            assert lease.fingerprint == request.fingerprint
            assert lease.host == "https://xn--bcher-kva.example:443"
            await frontier.commit(retry(lease, after=0.0))
            (again,) = (await frontier.lease(5)).leases
            assert again.request.retry_count == 3
            assert again.request.extra == request.extra

    @pytest.mark.parametrize("bad", [Request("no url"), Request("http://a/bad", extra={"x": object()})])
    async def test_a_bad_request_refuses_its_whole_batch(self, opened: Opened, bad: Request) -> None:
        async with opened() as frontier:
            with pytest.raises((BadUrlError, TaskError)):
                await frontier.add([Request("http://a/good"), bad])
            assert await frontier.stats() == Stats()


class TestLeaseOrder:
    async def test_priority_first_then_arrival(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 2) + pages("a", 2, 10, priority=5) + pages("a", 1, 20, priority=-1))
            assert urls(await frontier.lease(4)) == ["a/10", "a/11", "a/0", "a/1"]
            assert urls(await frontier.lease(4)) == ["a/20"]

    async def test_a_batch_is_shared_among_the_due_hosts(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("huge", 50) + pages("b", 2) + pages("c", 1))
            given = urls(await frontier.lease(6))
            assert given == ["huge/0", "b/0", "c/0", "huge/1", "b/1", "huge/2"]

    async def test_with_more_hosts_than_places_each_gets_one_and_the_longest_due_go_first(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            for host in "abcd":
                await frontier.add(pages(host, 5))
                clock.now += 1
            assert urls(await frontier.lease(3)) == ["a/0", "b/0", "c/0"]
            clock.now += 1
            assert urls(await frontier.lease(3)) == ["d/0", "a/1", "b/1"]
            clock.now += 1
            assert urls(await frontier.lease(3)) == ["c/1", "d/1", "a/2"]

    async def test_in_the_long_run_every_host_gets_the_same(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(per_host=100) as frontier:
            hosts = ["a", "b", "c", "d", "e"]
            for host in hosts:
                await frontier.add(pages(host, 40))
            given: list[str] = []
            for _ in range(20):
                clock.now += 1
                given += urls(await frontier.lease(3))
            assert [sum(url.startswith(host) for url in given) for host in hosts] == [12] * 5

    async def test_a_host_with_no_free_slot_does_not_hide_the_hosts_of_lower_priority(
        self, opened: Opened
    ) -> None:
        async with opened(per_host=2) as frontier:
            for priority in range(5, 0, -1):
                await frontier.add(pages("a", 1, priority, priority=priority))
            await frontier.add(pages("b", 1) + pages("c", 4))
            assert urls(await frontier.lease(4)) == ["a/5", "a/4", "b/0", "c/0"]

    async def test_tokens_never_repeat(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            tokens = []
            for _ in range(4):
                leases = (await frontier.lease(2)).leases
                tokens += [lease.token for lease in leases]
                await frontier.release([lease.token for lease in leases])
            assert len(set(tokens)) == 8


class TestPoliteness:
    async def test_a_host_never_has_more_in_flight_than_its_cap(self, opened: Opened) -> None:
        async with opened(per_host=3) as frontier:
            await frontier.add(pages("a", 9) + pages("b", 9))
            await frontier.limit_host("http://b:80", cap=1)
            first = await frontier.lease(10)
            assert urls(first) == ["a/0", "b/0", "a/1", "a/2"]
            assert first.wake_in == 60.0
            assert urls(await frontier.lease(10)) == []
            await frontier.commit(done(*first.leases[:2]))
            assert urls(await frontier.lease(10)) == ["b/1", "a/3"]

    async def test_a_delay_spaces_the_starts_inside_the_window(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(delay=0.75, window=2.0) as frontier:
            await frontier.add(pages("a", 9))
            batch = await frontier.lease(9)
            assert [lease.starts_in for lease in batch.leases] == [0.0, 0.75, 1.5]
            assert batch.wake_in == 2.25
            clock.now += 2.0
            assert (await frontier.lease(9)).leases == ()
            clock.now += 0.25
            assert [lease.starts_in for lease in (await frontier.lease(9)).leases] == [0.0, 0.75, 1.5]

    async def test_a_delay_counts_over_all_priorities_of_the_host(self, opened: Opened) -> None:
        async with opened(delay=1.0, window=2.0) as frontier:
            await frontier.add(pages("a", 9) + pages("a", 2, 10, priority=1))
            batch = await frontier.lease(9)
            assert urls(batch) == ["a/10", "a/11", "a/0"]
            assert [lease.starts_in for lease in batch.leases] == [0.0, 1.0, 2.0]

    async def test_a_new_delay_counts_from_the_last_start(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 9))
            await frontier.lease(1)
            clock.now += 4
            await frontier.limit_host("http://a:80", delay=10.0)
            assert (await frontier.lease(1)).wake_in == 6.0
            await frontier.limit_host("http://a:80", delay=5.0)
            assert (await frontier.lease(1)).wake_in == 1.0
            clock.now += 1
            assert urls(await frontier.lease(9)) == ["a/1"]

    async def test_a_blocked_host_gives_nothing_and_a_shorter_block_changes_nothing(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await frontier.block_host("http://a:80", 30.0)
            await frontier.add(pages("a", 1) + pages("b", 1))
            await frontier.block_host("http://a:80", 5.0)
            assert urls(await frontier.lease(9)) == ["b/0"]
            clock.now += 29.75
            assert (await frontier.lease(9)).wake_in == 0.25
            clock.now += 0.25
            assert urls(await frontier.lease(9)) == ["a/0"]

    async def test_an_outcome_can_block_its_host(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            (lease,) = (await frontier.lease(1)).leases
            await frontier.commit([Outcome(lease, Done(), block_host=20.0)])
            assert (await frontier.lease(1)).wake_in == 20.0

    @pytest.mark.parametrize("limits", [{"delay": -1.0}, {"delay": float("inf")}, {"cap": 0}])
    async def test_a_limit_that_means_nothing_is_refused(
        self, opened: Opened, limits: dict[str, float]
    ) -> None:
        async with opened() as frontier:
            with pytest.raises(ValueError, match="must be"):
                await frontier.limit_host("http://a:80", **limits)  # type: ignore[arg-type]


class TestShares:
    async def test_while_another_worker_is_hungry_it_is_left_half_of_a_hosts_free_slots(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(per_host=20) as rich, opened(per_host=20) as poor:
            if type(rich).__name__ == "MemoryFrontier":
                return  # it has no second worker
            await rich.add(pages("a", 99))
            first = (await rich.lease(99)).leases
            assert len(first) == 20, "as long as nobody else waits, one worker may have all"
            assert not (await poor.lease(99)).leases
            await rich.commit(done(*first[:17]))
            for worker, share in [(rich, 8), (poor, 4), (rich, 4)]:
                batch = await worker.lease(99)
                assert len(batch.leases) == share
                assert batch.wake_in == pytest.approx(0.1, abs=1e-6), "it may ask for more soon"
            assert len((await poor.lease(99)).leases) == 1, "no slot stays free"
            clock.now += 3.0
            await rich.commit(done(*first[17:]))
            assert len((await rich.lease(99)).leases) == 3

    async def test_those_that_get_all_they_ask_for_leave_each_other_what_they_want(
        self, opened: Opened
    ) -> None:
        async with opened(per_host=20) as one, opened(per_host=20) as other:
            await one.add(pages("a", 99))
            assert len((await one.lease(5)).leases) == 5
            if type(one).__name__ != "MemoryFrontier":
                assert len((await other.lease(12)).leases) == 12


class TestExpiry:
    async def test_an_expired_lease_is_given_to_another_and_the_old_token_is_worth_nothing(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(lease_seconds=10.0) as frontier:
            await frontier.add(pages("a", 1))
            (old,) = (await frontier.lease(1)).leases
            assert (await frontier.lease(1)).wake_in == 10.0
            clock.now += 10.0
            (new,) = (await frontier.lease(1)).leases
            assert (new.fingerprint, new.deliveries) == (old.fingerprint, 2)
            assert await frontier.renew([old.token, new.token]) == [old.token]
            result = await frontier.commit(done(old, links=pages("a", 3, 50)))
            assert (result.accepted, result.stale, result.added) == ((), (old.token,), 0)
            assert await frontier.stats() == Stats(leased=1)

    async def test_a_late_commit_still_counts_if_nobody_took_the_lease_back(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(lease_seconds=10.0) as frontier:
            await frontier.add(pages("a", 1))
            batch = await frontier.lease(1)
            clock.now += 100.0
            assert (await frontier.commit(done(*batch.leases))).stale == ()
            assert await frontier.stats() == Stats(done=1)

    async def test_a_renewed_lease_does_not_expire(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(lease_seconds=10.0) as frontier:
            await frontier.add(pages("a", 1))
            (lease,) = (await frontier.lease(1)).leases
            for _ in range(4):
                clock.now += 9.0
                assert list(await frontier.renew([lease.token])) == []
                assert (await frontier.lease(1)).leases == ()

    async def test_crashes_are_bounded_and_slowed_down(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(lease_seconds=10.0, max_deliveries=4) as frontier:
            await frontier.add(pages("poison", 1))
            for delivery in (1, 2, 3):
                (lease,) = (await frontier.lease(1)).leases
                assert lease.deliveries == delivery
                clock.now += 10.0
            wait = crash_backoff(3, lease.token)
            assert 0.5 <= wait < 1.5
            assert (await frontier.lease(1)).wake_in == pytest.approx(wait)
            assert (await frontier.stats()).delayed == 1
            clock.now += 2.0
            assert len((await frontier.lease(1)).leases) == 1
            clock.now += 10.0
            assert (await frontier.lease(1)).finished
            (letter,) = await frontier.dead_letters.newest()
            assert (letter.cause, letter.deliveries, letter.at) == ("crash", 4, clock.now)

    async def test_a_lease_that_starts_later_also_ends_later(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(delay=2.0, window=2.0, lease_seconds=10.0) as frontier:
            await frontier.add(pages("a", 2))
            await frontier.lease(2)
            clock.now += 10.0
            assert urls(await frontier.lease(2)) == ["a/0"]
            clock.now += 2.0
            assert urls(await frontier.lease(2)) == ["a/1"]
