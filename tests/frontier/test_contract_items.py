"""What every frontier promises of dead items, and of telling duplicates before a commit."""

from __future__ import annotations

import msgspec
import pytest

from silkline.errors import FrontierError
from silkline.outcome import Alias, Dead, DeadItem, Done, Item, Lease, Outcome, RetryLater, Stats
from silkline.protocols import Frontier
from silkline.request import Request
from tests.frontier.conftest import ManualClock, Opened, done, pages, urls


def bad(
    index: int, cause: str = "item", sink: str = "", error: str = "no price", url: str = "http://a/0"
) -> DeadItem:
    return DeadItem(0, index, url, cause, error, '{"n": 1}', sink)


async def leased(frontier: Frontier, *requests: Request) -> list[Lease]:
    await frontier.add(requests)
    return list((await frontier.lease(len(requests))).leases)


async def three_pages(frontier: Frontier, clock: ManualClock) -> None:
    """Of http://a/0 two items are dead, later one of http://b/0, then one of http://a/1."""
    a, b, c = sorted(await leased(frontier, *pages("a", 2), *pages("b", 1)), key=lambda one: one.request.url)
    await frontier.commit([Outcome(a, Done(), dead_items=(bad(7, "step"), bad(2)))])
    clock.now += 1.0
    await frontier.commit([Outcome(c, Done(), dead_items=(bad(0),))])
    clock.now += 1.0
    await frontier.commit([Outcome(b, Done(), dead_items=(bad(0, "refused", "out.db"),))])


class TestKeeping:
    async def test_they_are_listed_newest_first_by_cause_and_by_host(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            assert await frontier.stats() == Stats(done=3)
            items = await frontier.dead_items.newest()
            assert [(item.at - clock.now, item.index, item.cause) for item in items] == [
                (0.0, 0, "refused"),
                (-1.0, 0, "item"),
                (-2.0, 2, "item"),
                (-2.0, 7, "step"),
            ]
            page = Request("http://a/1").fingerprint
            assert items[0] == msgspec.structs.replace(
                bad(0, "refused", "out.db"), fingerprint=page, at=clock.now
            )
            assert list(await frontier.dead_items.newest(cause="item")) == [items[1], items[2]]
            assert list(await frontier.dead_items.newest(host="http://a:80", limit=2)) == [items[0], items[2]]
            assert list(await frontier.dead_items.newest(cause="item", host="http://c:80")) == []
            assert await frontier.dead_items.causes() == {"item": 2, "step": 1, "refused": 1}

    async def test_they_outlive_the_worker(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            await frontier.close()
            await frontier.open()
            assert len(await frontier.dead_items.newest()) == 4

    async def test_only_a_lease_that_holds_has_some_and_only_a_page_that_is_done(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            a, b, c = await leased(frontier, *pages("a", 3))
            await frontier.release([a.token])
            late = Outcome(a, Done(), dead_items=(bad(0),))
            again = Outcome(b, RetryLater(9.0, "timeout", ""), dead_items=(bad(0),))
            given_up = Outcome(c, Dead("http_404", ""), dead_items=(bad(0),))
            await frontier.commit([late, again, given_up])
            assert await frontier.dead_items.newest() == []
            assert await frontier.stats() == Stats(waiting=1, delayed=1, dead=1)

    async def test_a_replayed_commit_and_an_item_that_is_named_twice_leave_one(self, opened: Opened) -> None:
        async with opened() as frontier:
            (lease,) = await leased(frontier, *pages("a", 1))
            outcome = Outcome(
                lease, Done(), dead_items=(bad(1), bad(1, error="later"), bad(1, sink="out.db"))
            )
            await frontier.commit([outcome])
            await frontier.commit([outcome])
            assert [(i.error, i.sink) for i in await frontier.dead_items.newest()] == [
                ("later", ""),
                ("no price", "out.db"),
            ]

    async def test_a_duplicate_has_none(self, opened: Opened) -> None:
        async with opened() as frontier:
            (lease, _) = await leased(frontier, *pages("a", 2))
            known = Alias("http://a:80", Request("http://a/1").fingerprint)
            committed = await frontier.commit(
                [Outcome(lease, Done(), dead_items=(bad(0),), aliases=(known,))]
            )
            assert committed.accepted[0].dead_items == ()
            assert await frontier.dead_items.newest() == []

    async def test_they_may_hold_any_text(self, opened: Opened) -> None:
        async with opened() as frontier:
            (lease,) = await leased(frontier, *pages("a", 1))
            odd = '\x00 "ü" \ud83d \\'
            item = DeadItem(0, 0, odd, odd, odd, odd, odd)
            await frontier.commit([Outcome(lease, Done(), dead_items=(item,))])
            (kept,) = await frontier.dead_items.newest()
            fine = '\ufffd "ü" ? \\'
            assert (kept.url, kept.cause, kept.error, kept.record, kept.sink) == (fine,) * 5
            assert await frontier.dead_items.resend(cause=fine) == 1
            assert (await frontier.lease(1)).leases[0].request.redo == ((0, fine),)

    async def test_a_host_may_be_blocked_by_the_same_outcome(self, opened: Opened) -> None:
        async with opened() as frontier:
            (lease,) = await leased(frontier, *pages("a", 1))
            await frontier.commit([Outcome(lease, Done(), dead_items=(bad(0),), block_host=5.0)])
            await frontier.add(pages("a", 1, first=1))
            assert (await frontier.lease(1)).wake_in == 5.0
            assert len(await frontier.dead_items.newest()) == 1

    async def test_before_open_nothing_is_told(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.close()
            with pytest.raises(FrontierError, match="not open"):
                await frontier.dead_items.newest()
            await frontier.open()


class TestResend:
    async def test_a_page_waits_again_once_for_all_its_dead_items(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            assert await frontier.dead_items.resend(cause="step") == 1
            assert await frontier.stats() == Stats(waiting=1, done=2)
            assert await frontier.dead_items.causes() == {"item": 1, "refused": 1}
            assert await frontier.dead_items.resend(cause="step") == 0
            (lease,) = (await frontier.lease(9)).leases
            assert lease.request == msgspec.structs.replace(pages("a", 1)[0], redo=((2, ""), (7, "")))
            assert (lease.fingerprint, lease.deliveries) == (Request("http://a/0").fingerprint, 1)
            await frontier.commit([Outcome(lease, Done(), dead_items=(bad(7),))])
            assert await frontier.stats() == Stats(done=3)
            assert await frontier.dead_items.causes() == {"item": 2, "refused": 1}
            assert await frontier.dead_items.resend() == 3
            assert await frontier.stats() == Stats(waiting=3)

    async def test_it_takes_the_newest_up_to_its_limit_and_the_job_goes_on(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            assert (await frontier.lease(9)).finished
            assert await frontier.dead_items.resend(host="http://a:80", limit=1) == 1
            batch = await frontier.lease(9)
            assert (urls(batch), batch.finished) == (["a/1"], False)

    async def test_retries_so_far_are_forgotten(self, opened: Opened) -> None:
        async with opened() as frontier:
            (lease,) = await leased(frontier, *pages("a", 1))
            await frontier.commit([Outcome(lease, RetryLater(0.0, "timeout", ""))])
            (lease,) = (await frontier.lease(1)).leases
            await frontier.commit([Outcome(lease, Done(), dead_items=(bad(0),))])
            await frontier.dead_items.resend()
            (lease,) = (await frontier.lease(1)).leases
            assert (lease.request.retry_count, lease.deliveries) == (0, 1)

    async def test_a_page_that_fails_then_is_a_dead_letter_that_still_knows(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            await frontier.dead_items.resend(cause="refused")
            (lease,) = (await frontier.lease(1)).leases
            await frontier.commit([Outcome(lease, Dead("http_404", ""))])
            assert await frontier.dead_letters.resend() == 1
            assert (await frontier.lease(1)).leases[0].request.redo == ((0, "out.db"),)

    async def test_it_goes_to_its_old_place(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            (first,) = (await frontier.lease(1)).leases
            await frontier.commit([Outcome(first, Done(), dead_items=(bad(0),))])
            await frontier.dead_items.resend()
            assert urls(await frontier.lease(3)) == ["a/0", "a/1", "a/2"]


class TestDrop:
    async def test_dropped_ones_are_forgotten_and_their_pages_stay_done(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_pages(frontier, clock)
            assert await frontier.dead_items.drop(cause="item", limit=1) == 1
            assert await frontier.dead_items.drop(cause="item") == 1
            left = await frontier.dead_items.newest()
            assert [item.cause for item in left] == ["refused", "step"]
            assert left[1].at == clock.now - 2.0
            assert await frontier.dead_items.drop() == 2
            assert await frontier.dead_items.drop() == 0
            assert await frontier.stats() == Stats(done=3)
            assert await frontier.dead_items.resend() == 0


class TestDistinct:
    async def test_a_page_that_another_request_has_is_left_without_items(self, opened: Opened) -> None:
        async with opened() as frontier:
            a, b, c = await leased(frontier, *pages("a", 3))
            seen = Alias("http://a:80", c.fingerprint)
            new = Alias("http://b:80", Request("http://b/0").fingerprint)
            own = Alias("http://a:80", b.fingerprint)
            outcomes = [
                Outcome(lease, Done(), (Item(lease.fingerprint, 0, {}),), aliases=aliases)
                for lease, aliases in ((a, (new, seen)), (b, (new, own)), (c, ()))
            ]
            told = await frontier.distinct(outcomes)
            assert [len(outcome.items) for outcome in told] == [0, 1, 1]
            # Nothing was claimed by that.
            assert (await frontier.add(pages("b", 1))).added == 1
            assert [len(outcome.items) for outcome in await frontier.distinct(outcomes)] == [0, 0, 1]
            assert await frontier.distinct(done(a)) == done(a)
