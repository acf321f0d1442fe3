"""Redirects that lead to where a request has to wait: it goes on there, by the limits of that host."""

from __future__ import annotations

import msgspec

from silkline.outcome import Blocked, Lease, Moved, Outcome
from silkline.request import Onward, Request
from silkline.url import host_of
from tests.frontier.conftest import ManualClock, Opened, dead, done, pages, retry, urls


def moved(*leases: Lease, to: str = "http://b/target") -> list[Outcome]:
    via = (leases[0].request.target,)
    return [Outcome(lease, Moved(host_of(to), Onward(to, via))) for lease in leases]


async def test_a_moved_request_is_the_same_one_at_the_other_host(opened: Opened) -> None:
    async with opened() as frontier:
        await frontier.add([Request("http://a/0", label="author", extra={"x": 1})])
        (before,) = (await frontier.lease(5)).leases
        await frontier.commit(moved(before))
        (lease,) = (await frontier.lease(5)).leases
        assert lease.host == host_of("http://b/")
        assert (lease.fingerprint, lease.deliveries) == (before.fingerprint, 1)
        assert lease.request == Request(
            "http://a/0",
            label="author",
            extra={"x": 1},
            onward=Onward("http://b/target", ("http://a/0",)),
        )
        await frontier.commit(done(lease))
        stats = await frontier.stats()
        assert (stats.done, stats.open) == (1, 0)
        assert (await frontier.explain("http://a/0")).place == "done"
        assert (await frontier.lease(5)).finished


async def test_a_moved_request_waits_until_the_other_host_is_not_blocked(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened() as frontier:
        await frontier.block_host(host_of("http://b/"), 30.0)
        await frontier.add(pages("a", 3))
        await frontier.commit(moved(*(await frontier.lease(3)).leases))
        batch = await frontier.lease(5)
        assert (batch.leases, batch.finished, batch.wake_in) == ((), False, 30.0)
        found = await frontier.explain("http://a/2")
        assert (found.place, found.host) == ("waiting", host_of("http://b/"))
        assert found.detail.startswith(
            "redirected to http://b/target; waiting for http://b:80, behind 2 others; "
            "the host is blocked until 20"
        )
        clock.now += 30.0
        assert len((await frontier.lease(5)).leases) == 3


async def test_moved_requests_keep_the_delay_of_the_host_they_wait_for(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened(delay=1.0, window=0.5) as frontier:
        await frontier.add(pages("a", 1) + pages("c", 1))
        leases = (await frontier.lease(5)).leases
        assert [lease.delay for lease in leases] == [1.0, 1.0]
        await frontier.commit(moved(*leases))
        assert len((await frontier.lease(5)).leases) == 1
        clock.now += 0.5
        assert not (await frontier.lease(5)).leases
        clock.now += 0.5
        assert len((await frontier.lease(5)).leases) == 1


async def test_a_redirect_within_a_host_with_a_delay_waits_for_its_turn(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened(delay=1.0) as frontier:
        await frontier.add(pages("a", 1))
        await frontier.commit(moved(*(await frontier.lease(1)).leases, to="http://a/next"))
        assert (await frontier.lease(1)).wake_in == 1.0
        clock.now += 1.0
        (lease,) = (await frontier.lease(1)).leases
        assert lease.request.target == "http://a/next"


async def test_moved_requests_keep_the_cap_and_give_back_their_old_slot(opened: Opened) -> None:
    async with opened(per_host=2) as frontier:
        await frontier.add(pages("a", 4))
        await frontier.commit(moved(*(await frontier.lease(9)).leases))
        second = (await frontier.lease(9)).leases
        assert sorted(lease.host for lease in second) == [host_of(f"http://{h}/") for h in "aabb"]
        await frontier.commit(moved(*(lease for lease in second if lease.request.onward is None)))
        assert not (await frontier.lease(9)).leases  # b has its two
        await frontier.commit(done(*(lease for lease in second if lease.request.onward)))
        assert len((await frontier.lease(9)).leases) == 2


async def test_a_visit_that_has_begun_goes_on_before_others_begin(opened: Opened) -> None:
    async with opened(per_host=1) as frontier:
        await frontier.add([*pages("b", 3, priority=1000), *pages("a", 1)])
        leases = (await frontier.lease(2)).leases
        await frontier.commit(moved(*(lease for lease in leases if lease.host == host_of("http://a/"))))
        await frontier.commit(done(*(lease for lease in leases if lease.host == host_of("http://b/"))))
        assert urls(await frontier.lease(1)) == ["a/0"]


async def test_a_move_counts_against_no_budget(opened: Opened) -> None:
    async with opened(max_pages=1, max_deliveries=1, per_host=1) as frontier:
        await frontier.add(pages("a", 1))
        for host in "bcd":
            (lease,) = (await frontier.lease(5)).leases
            await frontier.commit(moved(lease, to=f"http://{host}/"))
        (lease,) = (await frontier.lease(5)).leases
        await frontier.commit(done(lease))
        assert (await frontier.lease(5)).budget_spent


async def test_an_expired_lease_frees_the_slot_of_the_host_it_was_moved_to(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened(per_host=1, lease_seconds=10.0) as frontier:
        await frontier.add(pages("a", 2))
        (first,) = (await frontier.lease(5)).leases
        await frontier.commit(moved(first))
        held = (await frontier.lease(5)).leases  # one of each
        assert len(held) == 2
        clock.now += 11.0
        again = (await frontier.lease(5)).leases
        assert [(lease.host, lease.request.target) for lease in again] == [
            (host_of("http://b/"), "http://b/target"),
            (host_of("http://a/"), "http://a/1"),
        ]
        assert [lease.deliveries for lease in again] == [2, 2]
        state = await frontier.host(host_of("http://b/"))
        assert state is not None
        assert (state.leased, state.waiting) == (1, 0)


async def test_a_late_move_changes_nothing(opened: Opened, clock: ManualClock) -> None:
    async with opened(lease_seconds=10.0) as frontier:
        await frontier.add(pages("a", 1))
        (first,) = (await frontier.lease(5)).leases
        clock.now += 11.0
        (second,) = (await frontier.lease(5)).leases
        committed = await frontier.commit(moved(first))
        assert committed.stale == (first.token,)
        await frontier.commit(done(second))
        assert (await frontier.lease(5)).finished


async def test_a_moved_request_that_fails_is_tried_again_and_dies_at_that_host(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened() as frontier:
        await frontier.add(pages("a", 1))
        await frontier.commit(moved(*(await frontier.lease(5)).leases))
        (lease,) = (await frontier.lease(5)).leases
        await frontier.commit(retry(lease, after=5.0))
        found = await frontier.explain("http://a/0")
        assert found.place == "delayed"
        assert found.detail.startswith("redirected to http://b/target; until")
        clock.now += 5.0
        (lease,) = (await frontier.lease(5)).leases
        assert (lease.request.target, lease.request.retry_count) == ("http://b/target", 1)
        await frontier.commit(dead(lease))
        assert (await frontier.explain("http://a/0")).place == "dead"
        (letter,) = await frontier.dead_letters.newest(host=host_of("http://b/"))
        assert letter.request.url == "http://a/0"
        assert await frontier.dead_letters.resend(host=host_of("http://b/")) == 1
        (lease,) = (await frontier.lease(5)).leases
        assert (lease.host, lease.request.target) == (host_of("http://b/"), "http://b/target")
        assert lease.deliveries == 1


async def test_a_request_that_is_led_back_is_found_where_it_is(opened: Opened) -> None:
    async with opened() as frontier:
        await frontier.add(pages("a", 1))
        for target in ("http://b/1", "http://c/2", "http://a/3"):
            await frontier.commit(moved(*(await frontier.lease(5)).leases, to=target))
            found = await frontier.explain("http://a/0")
            assert (found.place, found.host) == ("waiting", host_of(target))
            assert target in found.detail
        stats = await frontier.stats()
        assert (stats.waiting, stats.open) == (1, 1)


async def test_the_hosts_that_are_blocked_are_named_the_longest_first(
    opened: Opened, clock: ManualClock
) -> None:
    """Those alone that something waits for; redirects wait, too."""
    async with opened() as frontier:
        assert await frontier.blocked() == Blocked()
        await frontier.add([*pages("a", 1), *pages("c", 1), *pages("d", 1)])
        for host, seconds in (("b", 10.0), ("c", 30.0), ("d", 20.0), ("e", 90.0)):
            await frontier.block_host(host_of(f"http://{host}/"), seconds)
        await frontier.commit(moved(*(await frontier.lease(5)).leases))
        assert await frontier.blocked(2) == Blocked(3, ("http://c:80", "http://d:80"), 30.0)
        clock.now += 20.0
        (lease,) = (await frontier.lease(1)).leases
        assert await frontier.blocked() == Blocked(1, ("http://c:80",), 10.0)
        await frontier.commit([msgspec.structs.replace(retry(lease)[0], block_host=5.0)])
        assert (await frontier.blocked()).hosts == ("http://c:80", lease.host)
