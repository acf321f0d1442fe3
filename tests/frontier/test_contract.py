"""What every frontier promises, whatever its store: see protocols.Frontier."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from silkline.errors import BadUrlError, FrontierError, TaskError
from silkline.frontier.rules import crash_backoff
from silkline.outcome import Added, Done, Outcome, Stats
from silkline.protocols import Frontier, Positions
from silkline.request import Request
from tests.frontier.conftest import ManualClock, Opened, dead, done, pages, retry, urls


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
            (letter,) = await frontier.dead_letters()
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


class TestCommit:
    async def test_each_verdict_puts_the_request_in_its_place(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            a, b, c = (await frontier.lease(3)).leases
            result = await frontier.commit(done(a) + retry(b, after=5.0) + dead(c))
            assert [o.lease.token for o in result.accepted] == [a.token, b.token, c.token]
            assert await frontier.stats() == Stats(delayed=1, done=1, dead=1)
            assert (await frontier.lease(3)).wake_in == 5.0
            clock.now += 5.0
            (again,) = (await frontier.lease(3)).leases
            assert (again.request.retry_count, again.deliveries) == (1, 2)

    async def test_an_error_message_may_hold_any_text(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            await frontier.commit(dead(*(await frontier.lease(1)).leases, error='\x00 "ü" \ud83d \\'))
            (letter,) = await frontier.dead_letters()
            assert letter.error == '\ufffd "ü" ? \\'

    async def test_replaying_a_commit_changes_nothing(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            a, b, c = (await frontier.lease(3)).leases
            outcomes = done(a, links=pages("b", 2)) + retry(b) + dead(c)
            await frontier.commit(outcomes)
            before = await frontier.stats(), await frontier.dead_letters()
            replayed = await frontier.commit(outcomes)
            assert (replayed.accepted, replayed.stale) == ((), (a.token, b.token, c.token))
            assert (await frontier.stats(), await frontier.dead_letters()) == before

    async def test_of_two_outcomes_for_one_lease_the_first_counts(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            (lease,) = (await frontier.lease(1)).leases
            result = await frontier.commit(done(lease) + dead(lease))
            assert result.accepted == (*done(lease),)
            assert result.stale == (lease.token,)
            assert await frontier.stats() == Stats(done=1)

    async def test_links_are_enqueued_once_and_only_if_the_lease_holds(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            a, b = (await frontier.lease(2)).leases
            await frontier.release([b.token])
            outcomes = done(a, links=pages("a", 4) + pages("b", 2) + pages("b", 2))
            outcomes += done(b, links=pages("lost", 5) + pages("b", 3))
            assert (await frontier.commit(outcomes)).added == 4
            assert await frontier.stats() == Stats(waiting=5, done=1)

    async def test_no_place_lets_a_known_url_in_again(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 5))
            a, b, c, d = (await frontier.lease(4)).leases
            await frontier.commit(done(a) + retry(b) + dead(c))
            assert (await frontier.commit(done(d, links=pages("a", 5)))).added == 0

    async def test_items_are_delivered_with_the_positions_and_these_are_kept(self, opened: Opened) -> None:
        calls = []

        def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            calls.append(([o.lease.token for o in outcomes], dict(positions)))
            return {"out.csv": str(len(calls)), 'odd "name" ü': "\n"}

        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            a, b = (await frontier.lease(2)).leases
            await frontier.release([b.token])
            await frontier.commit(done(a, b), deliver)
            await frontier.commit([], deliver)
            first, second = {"out.csv": "1", 'odd "name" ü': "\n"}, {"out.csv": "2", 'odd "name" ü': "\n"}
            assert calls == [([a.token], {}), ([], first)]
            assert await frontier.positions() == second

    async def test_if_delivery_fails_nothing_has_happened(self, opened: Opened) -> None:
        broken = OSError("no space left")

        def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            raise broken

        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            a, b = (await frontier.lease(2)).leases
            outcomes = done(a, links=pages("b", 2)) + dead(b)
            with pytest.raises(OSError, match="no space left") as caught:
                await frontier.commit(outcomes, deliver)
            assert caught.value is broken
            assert await frontier.stats() == Stats(leased=2)
            assert await frontier.positions() == {}
            assert (await frontier.commit(outcomes)).added == 2


class TestRelease:
    async def test_it_goes_back_to_its_old_place_and_does_not_count(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 4))
            a, b = (await frontier.lease(2)).leases
            await frontier.release([b.token, a.token, 999])
            await frontier.release([a.token])
            batch = await frontier.lease(3)
            assert urls(batch) == ["a/0", "a/1", "a/2"]
            assert [lease.deliveries for lease in batch.leases] == [1, 1, 1]

    async def test_closing_gives_back_what_is_held(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            await frontier.lease(2)
            await frontier.close()
            await frontier.close()
            with pytest.raises(FrontierError, match="not open"):
                await frontier.lease(1)
            await frontier.open()
            assert await frontier.stats() == Stats(waiting=3)


class TestCompletion:
    async def test_finished_means_that_nothing_is_open(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            assert (await frontier.lease(1)).finished
            await frontier.add(pages("a", 1))
            batch = await frontier.lease(1)
            assert not batch.finished
            assert not (await frontier.lease(1)).finished
            await frontier.commit(retry(*batch.leases, after=3.0))
            assert not (await frontier.lease(1)).finished
            clock.now += 3.0
            await frontier.commit(done(*(await frontier.lease(1)).leases))
            last = await frontier.lease(1)
            assert (last.finished, last.wake_in) == (True, None)

    async def test_the_page_budget_counts_ended_visits_and_leases(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(max_pages=4) as frontier:
            await frontier.add(pages("a", 9))
            a, b, c = (await frontier.lease(3)).leases
            assert len((await frontier.lease(3)).leases) == 1
            waits = await frontier.lease(3)
            assert (waits.leases, waits.budget_spent, waits.wake_in) == ((), False, 60.0)
            await frontier.commit(done(a) + retry(b, after=1.0) + dead(c))
            clock.now += 1.0
            (again,) = (await frontier.lease(3)).leases
            assert again.fingerprint == b.fingerprint
            clock.now += 60.0
            await frontier.release([lease.token for lease in (await frontier.lease(3)).leases])
            await frontier.commit(done(*(await frontier.lease(3)).leases))
            assert (await frontier.lease(3)).budget_spent
            assert await frontier.stats() == Stats(waiting=5, done=3, dead=1)
        async with opened(max_pages=4) as frontier:
            if (await frontier.stats()).open:
                assert (await frontier.lease(3)).budget_spent


async def three_dead(frontier: Frontier, clock: ManualClock) -> None:
    await frontier.add(pages("a", 2) + pages("b", 1))
    a0, b0, a1 = (await frontier.lease(3)).leases
    await frontier.commit(dead(a0, cause="timeout", error="no answer"))
    clock.now += 1.0
    await frontier.commit(dead(b0))
    clock.now += 1.0
    await frontier.commit(dead(a1))


class TestDeadLetters:
    async def test_they_are_listed_newest_first_by_cause_and_by_host(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_dead(frontier, clock)
            letters = await frontier.dead_letters()
            assert [letter.request.url for letter in letters] == ["http://a/1", "http://b/0", "http://a/0"]
            oldest = letters[-1]
            assert (oldest.cause, oldest.error, oldest.deliveries) == ("timeout", "no answer", 1)
            assert oldest.fingerprint == oldest.request.fingerprint
            assert oldest.at == clock.now - 2.0
            assert str(oldest.worker)
            assert list(await frontier.dead_letters(cause="http_404", limit=1)) == [letters[0]]
            assert list(await frontier.dead_letters(host="http://a:80")) == [letters[0], letters[2]]
            assert list(await frontier.dead_letters(cause="timeout", host="http://b:80")) == []
            assert await frontier.dead_causes() == {"timeout": 1, "http_404": 2}

    async def test_a_resent_one_starts_afresh_past_the_dedup(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            (lease,) = (await frontier.lease(1)).leases
            await frontier.commit(retry(lease, after=0.0))
            (lease,) = (await frontier.lease(1)).leases
            assert (lease.request.retry_count, lease.deliveries) == (1, 2)
            await frontier.commit(dead(lease))
            assert await frontier.resend(cause="crash") == 0
            assert await frontier.resend() == 1
            (again,) = (await frontier.lease(1)).leases
            assert (again.request, again.deliveries) == (pages("a", 1)[0], 1)
            assert await frontier.dead_letters() == []

    async def test_resend_takes_the_newest_up_to_its_limit(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await three_dead(frontier, clock)
            assert await frontier.resend(host="http://a:80", limit=1) == 1
            assert urls(await frontier.lease(9)) == ["a/1"]
            assert await frontier.stats() == Stats(leased=1, dead=2)

    async def test_a_dropped_one_is_forgotten_but_stays_seen(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_dead(frontier, clock)
            assert await frontier.drop(cause="http_404") == 2
            assert await frontier.stats() == Stats(done=2, dead=1)
            assert (await frontier.add(pages("a", 2) + pages("b", 1))).added == 0


class TestExplain:
    async def test_it_says_the_place_and_why(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 6))
            a, b, c, _ = (await frontier.lease(4)).leases
            await frontier.commit(done(a) + retry(b, after=30.0) + dead(c))
            await frontier.block_host("http://a:80", 60.0)

            async def told(n: int) -> str:
                where = await frontier.explain(f"http://a/{n}")
                return f"{where.place} {where.detail}".strip()

            assert await told(0) == "done"
            assert await told(1) == "delayed until 2027-01-15T08:00:30+00:00, retry 1, cause timeout"
            gone = "dead http_404: HTTP status 404; 1 deliveries, given up 2027-01-15T08:00:00+00:00"
            assert await told(2) == gone
            held = await told(3)
            assert held.startswith("leased by worker ")
            assert held.endswith(" until 2027-01-15T08:01:00+00:00, delivery 1")
            waits = "behind 1 of http://a:80, priority 0; the host is blocked until 2027-01-15T08:01:00+00:00"
            assert await told(5) == f"waiting {waits}"
            assert await told(99) == "never seen"


async def test_facts_are_kept_and_replaced_by_name(opened: Opened) -> None:
    async with opened() as frontier:
        await frontier.remember({"ended": "never", 'odd "name"': "ü\n"})
        await frontier.remember({"ended": "today"})
        assert await frontier.recall() == {"ended": "today", 'odd "name"': "ü\n"}
