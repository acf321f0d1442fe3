"""What every frontier promises, whatever its store: outcomes, completion, dead letters, explain."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from silkline.config import FrontierOptions
from silkline.errors import FrontierError, JobError
from silkline.frontier import MemoryFrontier
from silkline.keys import KeyRules
from silkline.outcome import Alias, Dead, Done, Item, Lease, Outcome, Refused, RetryLater, Stats, Whereabouts
from silkline.protocols import Frontier, Positions
from silkline.request import Request
from silkline.url import host_of
from tests.frontier.conftest import ManualClock, Opened, dead, done, pages, retry, urls


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

    async def test_a_retry_that_is_not_the_pages_fault_costs_none(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            free = RetryLater(0.0, "proxy", "no proxy works", costs_retry=False)
            for number, verdict in enumerate((free, RetryLater(0.0, "timeout", "slow"), free, free)):
                (lease,) = (await frontier.lease(1)).leases
                assert lease.request.retry_count == int(number > 1)
                assert lease.deliveries == lease.request.retry_count + 1
                await frontier.commit([Outcome(lease, verdict)])
            (lease,) = (await frontier.lease(1)).leases
            assert (lease.request.retry_count, lease.request.spared, lease.deliveries) == (1, 3, 2)
            await frontier.commit(dead(lease))
            assert await frontier.dead_letters.resend() == 1
            (lease,) = (await frontier.lease(1)).leases
            assert (lease.request.retry_count, lease.request.spared, lease.deliveries) == (0, 0, 1)

    async def test_retries_that_cost_none_do_not_count_as_the_workers_crashes(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            for _ in range(20):  # more than max_deliveries
                (lease,) = (await frontier.lease(1)).leases
                await frontier.commit(
                    [Outcome(lease, RetryLater(0.0, "http_429", "busy", costs_retry=False))]
                )
            await frontier.lease(1)
            clock.now += 1_000.0
            (lease,) = (await frontier.lease(1)).leases
            assert lease.deliveries == 2

    async def test_an_error_message_may_hold_any_text(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            await frontier.commit(dead(*(await frontier.lease(1)).leases, error='\x00 "ü" \ud83d \\'))
            (letter,) = await frontier.dead_letters.newest()
            assert letter.error == '\ufffd "ü" ? \\'

    async def test_replaying_a_commit_changes_nothing(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            a, b, c = (await frontier.lease(3)).leases
            outcomes = done(a, links=pages("b", 2)) + retry(b) + dead(c)
            await frontier.commit(outcomes)
            before = await frontier.stats(), await frontier.dead_letters.newest()
            replayed = await frontier.commit(outcomes)
            assert (replayed.accepted, replayed.stale) == ((), (a.token, b.token, c.token))
            assert (await frontier.stats(), await frontier.dead_letters.newest()) == before

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


def with_item(lease: Lease, *aliases: str) -> Outcome:
    keys = tuple(Alias(host_of(url), KeyRules(["default"]).fingerprint(url)) for url in aliases)
    return Outcome(lease, Done(), items=(Item(lease.fingerprint, 0, {}),), aliases=keys)


class TestAliases:
    async def test_the_target_of_a_redirect_is_seen_and_counts_as_no_page(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 1))
            (lease,) = (await frontier.lease(1)).leases
            result = await frontier.commit([with_item(lease, "http://b/0")])
            assert (len(result.accepted[0].items), result.duplicates) == (1, 0)
            assert await frontier.stats() == Stats(done=1)
            assert (await frontier.add(pages("b", 1))).added == 0
            found = await frontier.explain("http://b/0")
            assert (found.place, found.detail[:36]) == ("done", "another address of a page that is do")
            assert (await frontier.explain("http://a/0")).detail == ""

    async def test_a_page_that_leads_to_one_that_waits_is_kept_without_its_items(
        self, opened: Opened
    ) -> None:
        delivered = []

        def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            delivered.append([len(outcome.items) for outcome in outcomes])
            return positions

        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            (lease,) = (await frontier.lease(1)).leases
            result = await frontier.commit([with_item(lease, "http://a/1")], deliver)
            assert (delivered, result.duplicates, result.stale) == ([[0]], 1, ())
            (other,) = (await frontier.lease(9)).leases
            await frontier.commit([with_item(other)], deliver)
            assert delivered == [[0], [1]]

    async def test_of_pages_that_lead_to_the_same_one_the_first_keeps_its_items(self, opened: Opened) -> None:
        async with opened() as frontier:
            await frontier.add(pages("a", 3))
            a, b, c = (await frontier.lease(3)).leases
            result = await frontier.commit([with_item(lease, "http://a/x") for lease in (a, b)])
            assert [len(outcome.items) for outcome in result.accepted] == [1, 0]
            assert (await frontier.commit([with_item(c, "http://a/x")])).duplicates == 1

    async def test_a_commit_that_comes_too_late_or_fails_claims_nothing(self, opened: Opened) -> None:
        def broken(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            raise OSError("no space left")

        async with opened() as frontier:
            await frontier.add(pages("a", 2))
            a, b = (await frontier.lease(2)).leases
            with pytest.raises(OSError, match="no space left"):
                await frontier.commit([with_item(a, "http://a/x")], broken)
            await frontier.release([a.token])
            assert (await frontier.commit([with_item(a, "http://a/x")])).stale == (a.token,)
            failed = msgspec.structs.replace(with_item(b, "http://a/x"), verdict=Dead("x", "y"))
            await frontier.commit([failed])
            (again,) = (await frontier.lease(1)).leases
            assert (await frontier.commit([with_item(again, "http://a/x")])).duplicates == 0


class TestKeys:
    async def test_parameters_of_campaigns_and_sessions_make_no_other_page(self, opened: Opened) -> None:
        urls = ["http://a/?x=1", "http://a/?utm_source=m&x=1", "http://a/;jsessionid=AB12?x=1"]
        async with opened() as frontier:
            assert (await frontier.add(list(map(Request, urls)))).added == 1
            assert [lease.request.url for lease in (await frontier.lease(3)).leases] == urls[:1]
            assert (await frontier.explain(urls[1])).place == "leased"
            assert frontier.fingerprint(urls[0]) == frontier.fingerprint(urls[2])

    async def test_a_job_keeps_the_list_it_was_begun_with(self, opened: Opened) -> None:
        async with opened(ignore_params=("ref",)) as frontier:
            await frontier.add([Request("http://a/?ref=1")])
            durable = not isinstance(frontier, MemoryFrontier)
        if durable:
            async with opened() as frontier:
                assert (await frontier.add([Request("http://a/"), Request("http://a/?gclid=1")])).added == 1
            with pytest.raises(JobError, match=r"was created with ignore_params = ref: that cannot change"):
                async with opened(ignore_params=("default", "ref")):
                    pass


class TestHostBudget:
    async def test_a_host_has_so_many_pages_and_the_others_are_not_seen(self, opened: Opened) -> None:
        async with opened(max_pages_per_host=3) as frontier:
            result = await frontier.add(pages("a", 5) + pages("b", 1))
            assert (result.added, result.duplicate, result.refused) == (4, 0, Refused(2, "http://a/3"))
            (lease, *_) = (await frontier.lease(1)).leases
            linked = await frontier.commit(done(lease, links=pages("a", 9) + pages("b", 2)))
            assert (linked.added, linked.refused) == (1, Refused(6, "http://a/3"))
            where = await frontier.explain("http://a/4")
            assert where == Whereabouts(
                "never seen", "http://a:80 has its 3 pages already (max_pages_per_host)"
            )
            assert (await frontier.explain("http://b/7")).detail == ""


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

    async def test_a_page_budget_that_others_have_used_up_is_spent_whatever_they_still_hold(
        self, opened: Opened
    ) -> None:
        async with opened(max_pages=2) as frontier:
            await frontier.add(pages("a", 9))
            (a,) = (await frontier.lease(1)).leases
            await frontier.apply(FrontierOptions())
            b, c = (await frontier.lease(2)).leases
            await frontier.apply(FrontierOptions(max_pages=2))
            await frontier.commit(done(a))
            waits = await frontier.lease(3)
            assert (waits.leases, waits.budget_spent) == ((), False)
            await frontier.commit(dead(b))
            spent = await frontier.lease(3)
            assert (spent.leases, spent.budget_spent, spent.finished) == ((), True, False)
            assert (await frontier.stats()).leased == 1
            await frontier.apply(FrontierOptions())
            assert (await frontier.lease(1)).budget_spent is False
            await frontier.commit(done(c))

    @pytest.mark.parametrize("cause", ["robots", "robots_unreachable"])
    async def test_the_page_budget_counts_no_page_that_robots_txt_kept_us_from(
        self, opened: Opened, clock: ManualClock, cause: str
    ) -> None:
        for _ in range(2):  # a restart goes on counting
            async with opened(max_pages=2) as frontier:
                await frontier.add(pages("a", 9))
                first, second = (await frontier.lease(9)).leases
                await frontier.commit(dead(first, second, cause=cause))
                assert (await frontier.lease(0)).budget_spent is False
        async with opened(max_pages=2) as frontier:
            await frontier.add(pages("a", 9))
            await frontier.commit(done(*(await frontier.lease(9)).leases))
            assert (await frontier.lease(9)).budget_spent


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
            letters = await frontier.dead_letters.newest()
            assert [letter.request.url for letter in letters] == ["http://a/1", "http://b/0", "http://a/0"]
            oldest = letters[-1]
            assert (oldest.cause, oldest.error, oldest.deliveries) == ("timeout", "no answer", 1)
            assert oldest.fingerprint == oldest.request.fingerprint
            assert oldest.at == clock.now - 2.0
            assert str(oldest.worker)
            assert list(await frontier.dead_letters.newest(cause="http_404", limit=1)) == [letters[0]]
            assert list(await frontier.dead_letters.newest(host="http://a:80")) == [letters[0], letters[2]]
            assert list(await frontier.dead_letters.newest(cause="timeout", host="http://b:80")) == []
            assert await frontier.dead_letters.causes() == {"timeout": 1, "http_404": 2}

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
            assert await frontier.dead_letters.resend(cause="crash") == 0
            assert await frontier.dead_letters.resend() == 1
            (again,) = (await frontier.lease(1)).leases
            assert (again.request, again.deliveries) == (pages("a", 1)[0], 1)
            assert await frontier.dead_letters.newest() == []

    async def test_resend_takes_the_newest_up_to_its_limit(self, opened: Opened, clock: ManualClock) -> None:
        async with opened() as frontier:
            await three_dead(frontier, clock)
            assert await frontier.dead_letters.resend(host="http://a:80", limit=1) == 1
            assert urls(await frontier.lease(9)) == ["a/1"]
            assert await frontier.stats() == Stats(leased=1, dead=2)

    async def test_a_dropped_one_is_forgotten_but_stays_seen(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened() as frontier:
            await three_dead(frontier, clock)
            assert await frontier.dead_letters.drop(cause="http_404") == 2
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
            gone = "dead http_404: HTTP status 404; 1 delivery, given up 2027-01-15T08:00:00+00:00"
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
