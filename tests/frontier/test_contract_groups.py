"""What every frontier promises about politeness keys: which hosts share their limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from silkline.errors import JobError
from silkline.outcome import Alias, Dead, Done, Outcome
from silkline.request import Request
from tests.frontier.conftest import ManualClock, Opened, done, pages, retry, urls

SHOP = ["www.shop.co.uk", "img.shop.co.uk"]


class Names:
    """A name service that is asked."""

    def __init__(self, **addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, names: Collection[str]) -> Mapping[str, str]:
        self.asked += sorted(names)
        return {name: self.addresses[name] for name in names if name in self.addresses}


class TestByDomain:
    async def test_hosts_of_one_domain_share_cap_delay_and_block(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(politeness_by="domain", per_host=3) as frontier:
            await frontier.add(pages(SHOP[0], 2) + pages(SHOP[1], 2) + pages("other.co.uk", 1))
            batch = await frontier.lease(9)
            assert urls(batch) == [f"{SHOP[0]}/0", "other.co.uk/0", f"{SHOP[0]}/1", f"{SHOP[1]}/0"]
            assert {lease.host for lease in batch.leases} == {"shop.co.uk", "other.co.uk"}
            await frontier.block_host("shop.co.uk", 5.0)
            await frontier.commit(done(*batch.leases))
            assert (await frontier.lease(9)).wake_in == 5.0
            clock.now += 5.0
            assert urls(await frontier.lease(9)) == [f"{SHOP[1]}/1"]

    async def test_schemes_and_ports_make_no_difference_and_addresses_are_their_own(
        self, opened: Opened
    ) -> None:
        async with opened(politeness_by="domain") as frontier:
            asked = [
                *("http://shop.co.uk:8080/", "https://a.b.shop.co.uk/", "http://10.0.0.1/"),
                *("http://[::1]:80/", "http://localhost/", "http://co.uk/"),
            ]
            expected = ["shop.co.uk", "shop.co.uk", "10.0.0.1", "::1", "localhost", "co.uk"]
            assert await frontier.politeness_keys(asked) == expected

    async def test_pages_are_found_again_and_budgets_count_by_domain(self, opened: Opened) -> None:
        async with opened(politeness_by="domain", max_pages_per_host=2) as frontier:
            added = await frontier.add(pages(SHOP[0], 1) + pages(SHOP[1], 2))
            assert (added.added, added.refused.count) == (2, 1)
            assert (await frontier.add(pages(SHOP[0], 1))).duplicate == 1
            assert (await frontier.explain(f"http://{SHOP[1]}/0")).place == "waiting"
            assert "shop.co.uk has its 2 pages" in (await frontier.explain(f"http://{SHOP[1]}/9")).detail
            batch = await frontier.lease(9)
            await frontier.commit([Outcome(lease, Dead("x", "y")) for lease in batch.leases])
            assert len(await frontier.dead_letters.newest(host="shop.co.uk")) == 2
            assert await frontier.dead_letters.resend(host="shop.co.uk") == 2
            assert len((await frontier.lease(9)).leases) == 2

    async def test_the_longest_delay_of_several_hosts_holds(self, opened: Opened) -> None:
        async with opened(politeness_by="domain") as frontier:
            await frontier.add(pages(SHOP[0], 3))
            await frontier.limit_host("shop.co.uk", delay=1.0, only_raise=True)
            await frontier.limit_host("shop.co.uk", delay=0.5, only_raise=True)
            assert [lease.starts_in for lease in (await frontier.lease(2)).leases] == [0.0, 1.0]
            await frontier.limit_host("shop.co.uk", delay=0.5)
            assert (await frontier.overview()).hosts[0].delay == 0.5


class TestByAddress:
    async def test_hosts_at_one_address_share_their_limits(self, opened: Opened) -> None:
        names = Names(a="10.0.0.1", b="10.0.0.1", c="10.0.0.2")
        async with opened(politeness_by="ip", resolve=names, per_host=2) as frontier:
            await frontier.add(pages("a", 2) + pages("b", 2) + pages("c", 1))
            batch = await frontier.lease(9)
            assert sorted(urls(batch)) == ["a/0", "a/1", "c/0"]
            links = pages("b", 3) + pages("10.0.0.2", 1)
            committed = await frontier.commit(done(*batch.leases, links=links))
            assert committed.added == 2
            assert {lease.host for lease in (await frontier.lease(9)).leases} == {"10.0.0.1", "10.0.0.2"}
            assert names.asked == ["a", "b", "c"]

    async def test_each_name_is_asked_for_once_and_the_first_answer_counts(self, opened: Opened) -> None:
        names = Names(a="10.0.0.1")
        async with opened(politeness_by="ip", resolve=names) as frontier:
            await frontier.add(pages("a", 1) + pages("nowhere", 1))
            names.addresses.update(a="10.0.0.9", nowhere="10.0.0.9")
            assert (await frontier.add(pages("a", 2) + pages("nowhere", 2))).added == 2
            assert names.asked == ["a", "nowhere"]
            assert await frontier.politeness_keys(["http://a/", "http://nowhere/"]) == [
                "10.0.0.1",
                "http://nowhere:80",
            ]

    async def test_what_one_worker_has_decided_holds_for_all(self, opened: Opened) -> None:
        first, second = Names(a="10.0.0.1", b="10.0.0.1"), Names(a="10.0.0.2", b="10.0.0.2")
        async with opened(politeness_by="ip", resolve=first) as frontier:
            if type(frontier).__name__ == "MemoryFrontier":
                return  # it has no second worker
            await frontier.add(pages("a", 1))
            async with opened(resolve=second) as other:
                assert other.politeness_by == "ip", "a job keeps what it was begun with"
                assert (await other.add(pages("a", 2))).added == 1
                assert await other.politeness_keys(["http://a/", "http://b/"]) == ["10.0.0.1", "10.0.0.2"]
                assert second.asked == ["b"]
            async with opened() as without:
                assert await without.politeness_keys(["http://a/", "http://c/"]) == [
                    "10.0.0.1",
                    "http://c:80",
                ]

    async def test_retries_and_aliases_stay_with_their_address(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        names = Names(a="10.0.0.1", b="10.0.0.2")
        async with opened(politeness_by="ip", resolve=names) as frontier:
            await frontier.add(pages("a", 2))
            first, second = (await frontier.lease(9)).leases
            alias = Alias("http://b:80", frontier.fingerprint("http://b/0"))
            await frontier.commit([*retry(first), Outcome(second, Done(), aliases=(alias,))])
            assert (await frontier.add(pages("b", 1))).duplicate == 1
            clock.now += 10.0
            assert [lease.host for lease in (await frontier.lease(9)).leases] == ["10.0.0.1"]


async def test_a_job_keeps_what_it_is_polite_by(opened: Opened) -> None:
    async with opened(politeness_by="domain") as frontier:
        kind = type(frontier).__name__
        await frontier.add([Request("http://a.shop.co.uk/")])
    if kind == "MemoryFrontier":
        return
    async with opened() as again:
        assert again.politeness_by == "domain"
        assert [lease.host for lease in (await again.lease(9)).leases] == ["shop.co.uk"]
    for other in ("ip", "host"):
        with pytest.raises(JobError, match=rf"created with politeness_by ?= ?domain, not {other}"):
            async with opened(politeness_by=other):
                pass


async def test_a_job_that_names_nothing_is_polite_by_hosts_and_is_held_to_that(opened: Opened) -> None:
    async with opened() as frontier:
        assert frontier.politeness_by == "host"
        if type(frontier).__name__ == "MemoryFrontier":
            return
    async with opened(politeness_by="host") as again:
        assert again.politeness_by == "host"
    with pytest.raises(JobError, match=r"created with politeness_by ?= ?host, not domain"):
        async with opened(politeness_by="domain"):
            pass
