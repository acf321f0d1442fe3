"""robots.txt of many hosts: read once, kept for all workers, obeyed. The network is a dictionary here; real
servers are in tests/engine/test_robots.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from silkline.config import FrontierOptions
from silkline.errors import (
    ConnectError,
    DecodeError,
    DnsError,
    FetchTimeout,
    Postponed,
    ProtocolError,
    RobotsRefused,
    RobotsUnreachable,
    TlsError,
    TooLargeError,
    TooManyRedirects,
)
from silkline.frontier import MemoryFrontier
from silkline.politeness.robots import STALE, kept_name, recalled
from silkline.politeness.robots_fetch import DAY, SHORTEST, robots_url
from silkline.politeness.robots_known import Entry, Known, Memory, decode, encode
from silkline.politeness.robots_txt import RobotsTxt, Rule
from silkline.request import Request
from silkline.url import host_of
from tests.politeness.conformance import cases
from tests.politeness.conftest import Guest, Make

HOME = "https://e.com/"
HOST = "https://e.com:443"
FILE = "https://e.com/robots.txt"
RULES = "User-agent: *\nDisallow: /private\n"


async def admit(guest: Guest, url: str) -> None:
    await guest.robots.admit(Request(url), host_of(url))


async def outcome(guest: Guest, url: str) -> str:
    try:
        await admit(guest, url)
    except (RobotsRefused, RobotsUnreachable, Postponed) as error:
        return type(error).__name__
    return "admitted"


def test_robots_txt_is_at_the_root_of_the_origin() -> None:
    for case in cases("robots_url"):
        assert robots_url(host_of(case["url"])) == case["robots_url"]


async def test_a_refused_url_is_told_the_line_that_refuses_it(guest: Make) -> None:
    async with guest({FILE: RULES}) as g:
        await admit(g, HOME)
        with pytest.raises(RobotsRefused) as raised:
            await admit(g, f"{HOME}private/1")
        assert str(raised.value) == f"refused by line 2 of {FILE}: Disallow: /private"
        assert g.asked == [FILE]


async def test_many_who_ask_at_once_read_it_once(guest: Make) -> None:
    async def slow(request: Request) -> str:
        await asyncio.sleep(0.02)
        return RULES

    async with guest({FILE: slow}) as g:
        found = await asyncio.gather(*(outcome(g, f"{HOME}{path}") for path in ("a", "private", "b") * 20))
        assert found == ["admitted", "RobotsRefused", "admitted"] * 20
        assert g.asked == [FILE]


async def test_one_who_goes_away_takes_nothing_from_the_others(guest: Make) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> str:
        started.set()
        await go_on.wait()
        return RULES

    async with guest({FILE: slow}) as g:
        first = asyncio.create_task(admit(g, HOME))
        second = asyncio.create_task(outcome(g, f"{HOME}private"))
        await started.wait()
        first.cancel()
        go_on.set()
        assert await second == "RobotsRefused"
        assert g.asked == [FILE]


async def test_other_workers_and_later_runs_need_not_read_it(guest: Make) -> None:
    frontier = MemoryFrontier(FrontierOptions())
    async with guest({FILE: RULES}, frontier=frontier) as first:
        await admit(first, HOME)
    async with guest({}, frontier=frontier) as second:
        assert await outcome(second, f"{HOME}private") == "RobotsRefused"
        assert second.asked == []
    async with guest({FILE: RULES}, frontier=frontier, agent="other") as third:
        await admit(third, HOME)
        assert third.asked == [FILE], "rules for another name are other rules"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({}, DAY),
        ({"Cache-Control": "max-age=7200"}, 7200),
        ({"Cache-Control": "public, MAX-AGE = 7200, must-revalidate"}, 7200),
        ({"Cache-Control": "max-age=99999999"}, DAY),
        ({"Cache-Control": "max-age=1"}, SHORTEST),
        ({"Cache-Control": "no-store"}, SHORTEST),
        ({"Cache-Control": "no-cache, max-age=7200"}, SHORTEST),
        ({"Cache-Control": "s-maxage=5, x-no-storey"}, DAY),
        ({"Cache-Control": "max-age=soon"}, DAY),
    ],
)
async def test_it_counts_for_a_day_or_as_long_as_cache_control_says(
    guest: Make, header: dict[str, str], seconds: float
) -> None:
    async with guest({FILE: (200, header, RULES)}) as g:
        await admit(g, HOME)
        kept = await g.frontier.kept(kept_name("silkline", HOST))
        assert kept is not None
        assert kept.seconds == pytest.approx(seconds + STALE, abs=1.0)


def answer_of(case: dict[str, Any]) -> Any:
    errors = {"connect": ConnectError("refused"), "timeout": FetchTimeout("slow"), "dns": DnsError("no host")}
    if "error" in case:
        return errors.get(case["error"], ProtocolError("the message ends early"))
    return (case["status"], {}, RULES if case["result"] == "parse" else "")


STATUS_CASES = [case for case in cases("fetch_status") if not {"redirects", "cached_age_h"} & case.keys()]


@pytest.mark.parametrize("case", STATUS_CASES, ids=lambda case: case["case"])
async def test_what_each_way_to_end_means(guest: Make, case: dict[str, Any]) -> None:
    async with guest({FILE: answer_of(case)}) as g:
        allowed = {}
        for path in ("", "private"):
            try:
                await admit(g, HOME + path)
                allowed[path] = True
            except (RobotsRefused, Postponed, ConnectError, DnsError):
                allowed[path] = False
        expected = {
            "parse": {"": True, "private": case["case"].endswith("HTML page as body")},
            "allow_all": {"": True, "private": True},
            "disallow_all": {"": False, "private": False},
            "disputed": {"": False, "private": False},  # 429 asks for fewer requests, not for all of them
        }
        if case["case"] == "200 with an HTML page as body":
            expected["parse"]["private"] = False  # our page stands for it with rules in it
        assert allowed == expected[case["result"]]


@pytest.mark.parametrize("hops", [1, 5])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_and_the_rules_are_the_first_hosts(
    guest: Make, hops: int, status: int
) -> None:
    pages: dict[str, Any] = {FILE: (status, {"Location": "https://other.com/1"}, "")}
    for hop in range(1, hops):
        pages[f"https://other.com/{hop}"] = (status, {"Location": f"/{hop + 1}"}, "")
    pages[f"https://other.com/{hops}"] = RULES
    async with guest(pages) as g:
        assert await outcome(g, f"{HOME}private") == "RobotsRefused"
        assert await outcome(g, f"{HOME}open") == "admitted"
        assert await outcome(g, "https://other.com/private") == "admitted"


async def test_more_redirects_than_are_followed_are_no_rules(guest: Make) -> None:
    async with guest({FILE: TooManyRedirects("more than 10 redirects")}) as g:
        assert await outcome(g, f"{HOME}private") == "admitted"


class TestWhileItCannotBeHad:
    @pytest.mark.parametrize(
        "answer",
        [503, 500, 429, FetchTimeout("slow"), ProtocolError("cut"), DecodeError("?"), TooLargeError("big")],
        ids=str,
    )
    async def test_pages_wait_and_the_host_is_left_alone_by_all_workers(
        self, guest: Make, answer: Any
    ) -> None:
        async with guest({FILE: answer}) as g:
            await g.frontier.add([Request(f"{HOME}{n}") for n in range(3)])
            (lease, *_) = (await g.frontier.lease(1)).leases
            assert await outcome(g, HOME) == "Postponed"
            assert await outcome(g, f"{HOME}other") == "Postponed"
            await g.frontier.release([lease.token])
            batch = await g.frontier.lease(9)
            assert batch.leases == ()
            assert batch.wake_in == pytest.approx(2.0, abs=0.5)
            # Of a file that is too large the beginning is asked for, too.
            assert g.asked == [FILE] * (2 if isinstance(answer, TooLargeError) else 1)
        assert len(g.troubles) == 1
        assert f"{FILE} cannot be had" in g.troubles[0]

    async def test_it_is_tried_again_with_growing_waits_until_patience_ends(
        self, guest: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 1000.0
        monkeypatch.setattr("silkline.politeness.robots.monotonic", lambda: now)
        monkeypatch.setattr("silkline.politeness.robots_known.monotonic", lambda: now)
        frontier = MemoryFrontier(FrontierOptions(), clock=lambda: now)
        async with guest({FILE: 503}, frontier=frontier, patience=20.0) as g:
            tried = []
            while await outcome(g, HOME) == "Postponed":
                if len(g.asked) > len(tried):
                    tried.append(now - 1000.0)
                now += 0.5
            assert tried == [0.0, 2.0, 6.0, 14.0]
            assert now - 1000.0 == 20.0
            with pytest.raises(RobotsUnreachable, match=f"{FILE}: HTTP status 503"):
                await admit(g, HOME)
            assert len(g.asked) == 5
            now += 3_601.0
            assert await outcome(g, HOME) == "Postponed", "later it is tried anew"
        assert [trouble.rpartition(": ")[2] for trouble in g.troubles] == [
            "its host's pages wait",
            "its host's pages are given up",
            "its host's pages wait",
        ]

    async def test_retry_after_is_obeyed(self, guest: Make) -> None:
        async with guest({FILE: (503, {"Retry-After": "40"}, "")}) as g:
            await g.frontier.add([Request(HOME)])
            assert await outcome(g, HOME) == "Postponed"
            assert (await g.frontier.lease(1)).wake_in == pytest.approx(40.0, abs=1.0)

    async def test_it_counts_again_as_soon_as_it_is_there(
        self, guest: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 1000.0
        monkeypatch.setattr("silkline.politeness.robots.monotonic", lambda: now)
        monkeypatch.setattr("silkline.politeness.robots_known.monotonic", lambda: now)
        frontier = MemoryFrontier(FrontierOptions(), clock=lambda: now)
        async with guest({FILE: [503, RULES]}, frontier=frontier) as g:
            assert await outcome(g, HOME) == "Postponed"
            now += 2.0
            assert await outcome(g, HOME) == "admitted"
            assert await outcome(g, f"{HOME}private") == "RobotsRefused"

    async def test_rules_of_yesterday_are_better_than_none(
        self, guest: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 1000.0
        monkeypatch.setattr("silkline.politeness.robots.monotonic", lambda: now)
        monkeypatch.setattr("silkline.politeness.robots_known.monotonic", lambda: now)
        frontier = MemoryFrontier(FrontierOptions(), clock=lambda: now)
        async with guest({FILE: [RULES, 503, "User-agent: *\nDisallow: /other"]}, frontier=frontier) as g:
            assert await outcome(g, HOME) == "admitted"
            now += DAY + 3600.0
            assert await outcome(g, HOME) == "admitted"
            assert await outcome(g, f"{HOME}private") == "RobotsRefused"
            assert len(g.asked) == 2
            now += 600.0
            assert await outcome(g, f"{HOME}private") == "admitted"
            assert await outcome(g, f"{HOME}other") == "RobotsRefused"

    @pytest.mark.parametrize("error", [DnsError("no host"), ConnectError("refused"), TlsError("expired")])
    async def test_a_host_that_cannot_be_reached_fails_its_pages_as_without_robots_txt(
        self, guest: Make, error: Any
    ) -> None:
        async with guest({FILE: error}) as g:
            for _ in range(3):
                with pytest.raises(type(error), match=str(error)):
                    await admit(g, HOME)
            assert g.asked == [FILE], "not once for each page"
            assert await g.frontier.kept(kept_name("silkline", HOST)) is None


class TestDelay:
    async def test_a_crawl_delay_is_the_hosts_delay_for_all_workers(self, guest: Make) -> None:
        async with guest({FILE: "User-agent: *\nCrawl-delay: 7\n"}) as g:
            await g.frontier.add([Request(f"{HOME}{n}") for n in range(3)])
            await admit(g, HOME)
            assert g.spaced == [(HOST, 7.0)]
            assert len((await g.frontier.lease(9)).leases) == 1
            assert (await g.frontier.lease(9)).wake_in == pytest.approx(7.0, abs=1.0)
        assert g.troubles == []

    async def test_of_those_that_were_leased_before_it_was_known_one_goes_first(self, guest: Make) -> None:
        async with guest({FILE: f"{RULES}Crawl-delay: 7\n"}) as g:
            urls = [HOME + path for path in ("private", "a", "b", "c")]
            found = await asyncio.gather(*(outcome(g, url) for url in urls))
            assert found == ["RobotsRefused", "admitted", "Postponed", "Postponed"]
            assert await outcome(g, f"{HOME}b") == "admitted", "handed out again when its host was due"

    async def test_it_is_capped_and_the_operator_told(self, guest: Make) -> None:
        async with guest({FILE: "User-agent: *\nCrawl-delay: 86400\n"}, max_delay=30.0) as g:
            await admit(g, HOME)
            assert g.spaced == [(HOST, 30.0)]
        (trouble,) = g.troubles
        assert trouble == f"{FILE} asks for 86400 s between two requests; they are 30 s apart (max_delay)"

    async def test_a_shorter_one_than_the_jobs_own_changes_nothing(self, guest: Make) -> None:
        async with guest({FILE: "User-agent: *\nCrawl-delay: 1\n"}, delay=2.0) as g:
            await asyncio.gather(*(admit(g, f"{HOME}{n}") for n in range(3)))
            assert g.spaced == []
            assert (await g.frontier.overview()).hosts == ()

    async def test_one_that_is_taken_back_ends(self, guest: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 1000.0
        monkeypatch.setattr("silkline.politeness.robots.monotonic", lambda: now)
        monkeypatch.setattr("silkline.politeness.robots_known.monotonic", lambda: now)
        frontier = MemoryFrontier(FrontierOptions(), clock=lambda: now)
        async with guest({FILE: ["User-agent: *\nCrawl-delay: 7\n", RULES]}, frontier=frontier) as g:
            await admit(g, HOME)
            now += DAY + 1.0
            await admit(g, HOME)
            await g.frontier.add([Request(f"{HOME}{n}") for n in range(3)])
            assert len((await g.frontier.lease(9)).leases) == 3


class TestVerdict:
    async def test_it_says_which_rule_decides(self, guest: Make) -> None:
        async with guest({FILE: f"{RULES}Allow: /private/not\nCrawl-delay: 3\n"}) as g:
            verdict = await g.robots.verdict(f"{HOME}private/not/1")
            assert (verdict.allowed, verdict.rule, verdict.line) == (True, "Allow: /private/not", 3)
            assert (verdict.source, verdict.crawl_delay) == (FILE, 3.0)
            assert str(verdict) == f"allowed by line 3 of {FILE}: Allow: /private/not"
            assert str(await g.robots.verdict(HOME)) == f"allowed: {FILE}: no rule matches"

    async def test_it_says_why_there_is_no_rule(self, guest: Make) -> None:
        async with guest({FILE: 404, "http://down.com/robots.txt": 503}) as g:
            assert str(await g.robots.verdict(HOME)) == f"allowed: {FILE}: HTTP status 404"
            down = await g.robots.verdict("http://down.com/x")
            assert str(down) == "refused: http://down.com/robots.txt: HTTP status 503"

    async def test_it_can_be_recalled_without_fetching(self, guest: Make) -> None:
        async with guest({FILE: RULES}) as g:
            assert await recalled(g.frontier, "silkline", f"{HOME}private") is None
            await admit(g, HOME)
            found = await recalled(g.frontier, "SilkLine", f"{HOME}private/1")
            assert str(found) == f"refused by line 2 of {FILE}: Disallow: /private"
            assert await recalled(g.frontier, "silkline", "https://other.com/") is None


class TestMemory:
    def rules(self, count: int) -> Known:
        return Known("", RobotsTxt(tuple(Rule(n, False, f"/{n}") for n in range(count))))

    def test_the_hosts_used_last_stay(self) -> None:
        memory = Memory(hosts=2)
        for host in "ab":
            memory.put(host, Entry(Known(host), 60.0))
        assert memory.get("a") is not None
        memory.put("c", Entry(Known("c"), 60.0))
        assert (memory.get("b"), len(memory)) == (None, 2)
        assert memory.get("a") is not None

    def test_the_rules_of_all_of_them_are_bounded(self) -> None:
        memory = Memory(hosts=100, rules=10)
        for host in "abcd":
            memory.put(host, Entry(self.rules(4), 60.0))
        assert len(memory) == 2
        memory.put("large", Entry(self.rules(1000), 60.0))
        assert (len(memory), memory.get("large") is not None) == (1, True)

    def test_what_is_over_is_not_given(self) -> None:
        memory = Memory()
        memory.put("a", Entry(Known("a"), 0.0))
        assert memory.get("a") is None


@pytest.mark.parametrize("count", [0, 3, 5_000])
def test_what_is_kept_comes_back_and_is_small(count: int) -> None:
    rules = tuple(Rule(n, n % 2 == 0, f"/shop/{n}/") for n in range(count))
    known = Known(FILE, RobotsTxt(rules, 2.0, (HOME,)))
    value = encode(known)
    assert decode(value) == known
    assert len(value) < 200 + 8 * count
    assert decode(b"z" + value) is None
    assert decode(b"") is None
