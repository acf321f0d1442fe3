"""Live settings in real crawls: what an operator changes takes effect within 2 s, and loses nothing."""

# The store and the site are asked until they say so: there is no event to wait for.
# ruff: noqa: ASYNC110

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests import servers
from tests.engine.operator import Crawl, operated
from tests.site import Endless, Site

from silkline import Crawler
from silkline.config import FrontierOptions
from silkline.engine import session, steering
from silkline.events import Event, Steered, Trouble
from silkline.frontier import MemoryFrontier
from silkline.outcome import Heartbeat
from silkline.request import Request

SOON = 4.0
"""Seconds: twice what is promised, for a machine that is busy with other things."""


REAL_PERIOD = steering.PERIOD
SHORT_PERIOD = (0.15, 0.19)


@pytest.fixture(params=["sqlite", "valkey"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Workers beat ten times as often as they do in earnest: these tests need not wait."""
    monkeypatch.setattr(steering, "PERIOD", SHORT_PERIOD)
    return servers.valkey_url() if request.param == "valkey" else f"sqlite:///{tmp_path}/job.db"


class Gate:
    """Pages that are answered once the gate is open."""

    def __init__(self) -> None:
        self.open = False

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        while not self.open:
            await asyncio.sleep(0.01)
        return web.Response(text="x", content_type="text/html")


@pytest.fixture
def site() -> Iterator[Site]:
    """20 pages of 20 ms each."""
    with Site({f"/{n}": "x" for n in range(20)}, delay=0.02) as site:
        yield site


@pytest.fixture
def endless() -> Iterator[Endless]:
    with Endless(delay=0.02) as site:
        yield site


def pages(site: Site, count: int) -> list[str]:
    return [f"{site.url}/{n}" for n in range(count)]


async def ended(crawl: Crawl, site: Endless) -> None:
    """Let the crawl come to its end: it has lost nothing and done nothing twice."""
    site.ended = True
    report = await crawl.report()
    assert (report.pages, report.dead) == (site.hits.total(), {})
    assert set(site.hits.values()) == {1}


async def most_from_now_on(site: Site, condition: Callable[[], bool]) -> int:
    """The most that were in flight at once until `condition`."""
    site.most_in_flight = site.in_flight
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
    return site.most_in_flight


async def test_a_paused_crawl_starts_nothing_holds_nothing_and_goes_on(
    frontier: str, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "PERIOD", REAL_PERIOD)
    async with operated(frontier, concurrency=4, per_host=4) as crawl:
        crawl.start(endless.seeds)
        await crawl.until(lambda: endless.hits.total() > 20, "pages")
        await crawl.frontier.configure({"paused": "true"})
        began = time.monotonic()
        await crawl.until_phase("paused")
        assert time.monotonic() - began < SOON
        async with asyncio.timeout(20):
            while (await crawl.frontier.stats()).leased:
                await asyncio.sleep(0.01)
        stopped_at = endless.hits.total()
        await asyncio.sleep(1.0)
        assert endless.hits.total() == stopped_at
        async with asyncio.timeout(20):
            while not [w for w in (await crawl.frontier.overview()).workers if w.beat.paused]:
                await asyncio.sleep(0.05)
        await crawl.frontier.configure({"paused": None})
        await crawl.until(lambda: endless.hits.total() > stopped_at + 20, "more pages")
        await ended(crawl, endless)


async def test_a_visit_that_runs_when_the_pause_comes_keeps_its_lease_and_counts(
    frontier: str, site: Site
) -> None:
    gate = site.pages["/slow"] = Gate()
    async with operated(frontier, lease_seconds=1.0) as crawl:
        crawl.start(f"{site.url}/slow")
        await crawl.until(lambda: site.in_flight == 1, "the slow page")
        await crawl.frontier.configure({"paused": "true"})
        await crawl.until_phase("paused")
        await asyncio.sleep(2.0)  # the lease would be over, had it not been renewed
        assert (await crawl.frontier.lease(1)).leases == ()
        gate.open = True
        async with asyncio.timeout(20):
            while (await crawl.frontier.stats()).done == 0:
                await asyncio.sleep(0.01)
        assert (site.hits["/slow"], (await crawl.frontier.stats()).open) == (1, 0)
        await crawl.frontier.configure({"paused": "false"})
        assert (await crawl.report()).pages == 1


async def test_a_job_that_is_paused_fetches_nothing_from_the_start(frontier: str, site: Site) -> None:
    async with operated(frontier) as crawl:
        await crawl.frontier.configure({"paused": "true"})
        crawl.start(pages(site, 10))
        await crawl.until_phase("paused")
        async with asyncio.timeout(20):
            while (await crawl.frontier.stats()).waiting < 10:
                await asyncio.sleep(0.01)
        assert site.hits.total() == 0
        await crawl.frontier.configure({"paused": None})
        assert (await crawl.report()).pages == 10


async def test_concurrency_rises_and_falls(frontier: str, endless: Endless) -> None:
    endless.delay = 0.05
    async with operated(frontier, concurrency=2, per_host=100) as crawl:
        crawl.start(endless.seeds)
        await crawl.until(lambda: endless.hits.total() > 20, "pages")
        assert endless.most_in_flight <= 2
        await crawl.frontier.configure({"concurrency": "6"})
        await crawl.until(lambda: endless.most_in_flight > 4, "a higher concurrency")
        assert endless.most_in_flight <= 6
        await crawl.frontier.configure({"concurrency": "1"})
        await crawl.until(lambda: crawl.last is not None and crawl.last.in_flight == 1, "a lower concurrency")
        until = endless.hits.total() + 10
        assert await most_from_now_on(endless, lambda: endless.hits.total() > until) <= 2
        await ended(crawl, endless)


async def test_the_cap_of_hosts_follows(frontier: str, endless: Endless) -> None:
    async with operated(frontier, concurrency=16, per_host=1) as crawl:
        crawl.start(endless.seeds)
        await crawl.until(lambda: endless.hits.total() > 20, "pages")
        assert endless.most_in_flight == 1
        await crawl.frontier.configure({"per_host": "8"})
        await crawl.until(lambda: endless.most_in_flight >= 6, "a higher cap")
        await ended(crawl, endless)
        assert endless.most_in_flight <= 8


async def test_a_delay_comes_and_goes(frontier: str, endless: Endless) -> None:
    events: list[Event] = []
    async with operated(frontier, concurrency=4, per_host=4, hooks=[events.append]) as crawl:
        crawl.start(endless.seeds)
        await crawl.until(lambda: endless.hits.total() > 20, "pages")
        await crawl.frontier.configure({"delay": "0.5"})
        await crawl.until(lambda: any(isinstance(e, Steered) for e in events), "the delay")
        await asyncio.sleep(0.5)
        before, began = endless.hits.total(), time.monotonic()
        await asyncio.sleep(1.5)
        assert endless.hits.total() - before <= (time.monotonic() - began) / 0.5 + 1
        await crawl.frontier.configure({"delay": "0"})
        before = endless.hits.total()
        await crawl.until(lambda: endless.hits.total() > before + 60, "more pages than the delay would allow")
        await ended(crawl, endless)


async def test_an_hour_of_delay_ends_with_the_setting(frontier: str, site: Site) -> None:
    async with operated(frontier, delay=3600.0) as crawl:
        crawl.start(pages(site, 5))
        await crawl.until(lambda: site.hits.total() == 1, "the first page")
        await crawl.frontier.configure({"delay": "0.01"})
        assert (await crawl.report()).pages == 5


async def test_timeout_and_retries_follow(frontier: str, site: Site) -> None:
    site.pages |= {f"/slow/{n}": Gate() for n in range(6)}
    async with operated(frontier, concurrency=1, timeout=1.5, retries=50) as crawl:
        crawl.start([f"{site.url}/slow/{n}" for n in range(6)])
        await crawl.until(lambda: site.hits.total() == 1, "the first page")
        await crawl.frontier.configure({"timeout": "200ms", "retries": "0"})
        report = await crawl.report()
        assert report.dead == {"timeout": 6}
        errors = [letter.error for letter in await crawl.frontier.dead_letters.newest()]
        # The page that was under way keeps the limit that it began with.
        assert errors.count("no complete answer within 0.2 s") >= 2


async def test_a_bad_value_is_named_once_and_the_workers_own_holds(frontier: str, endless: Endless) -> None:
    events: list[Event] = []
    async with operated(frontier, concurrency=2, per_host=2, hooks=[events.append]) as crawl:
        await crawl.frontier.configure({"concurrency": "lots", "mood": "bad"})
        crawl.start(endless.seeds)
        await crawl.until(lambda: endless.hits.total() > 20, "pages")
        await crawl.frontier.configure({"retries": "9"})
        await crawl.until(lambda: any(isinstance(e, Steered) for e in events), "the change")
        await ended(crawl, endless)
        assert endless.most_in_flight == 2
    said = (event.message for event in events if isinstance(event, Trouble))
    troubles = Counter(message for message in said if message.startswith("live settings"))
    assert set(troubles.values()) == {1}
    assert sorted(message.partition(";")[0] for message in troubles) == [
        "live settings: concurrency must be a whole number from 1 to 10000, not 'lots'",
        "live settings: there is no live setting 'mood'",
    ]
    assert [event.changes for event in events if isinstance(event, Steered)] == [{"retries": "9"}]


async def test_a_run_says_which_live_settings_win_over_its_own(frontier: str, site: Site) -> None:
    async with operated(frontier, concurrency=8) as crawl:
        await crawl.frontier.configure({"concurrency": "3", "retries": "3"})
        crawl.start(pages(site, 5))
        troubles = (await crawl.report()).troubles
        assert any("' hold: concurrency=3 (silkline config unset --job job-" in line for line in troubles)


async def test_a_worker_that_is_kept_alive_takes_what_comes_later(frontier: str, site: Site) -> None:
    async with operated(frontier, keep_alive=True) as crawl:
        crawl.start(pages(site, 3))
        await crawl.until(lambda: site.hits.total() == 3, "pages")
        await asyncio.sleep(1.0)
        await crawl.frontier.add([Request(f"{site.url}/{n}") for n in range(3, 8)])
        began = time.monotonic()
        await crawl.until(lambda: site.hits.total() == 8, "the pages that came later")
        assert time.monotonic() - began < SOON


async def test_heartbeats_carry_the_figures_of_the_worker(frontier: str, site: Site) -> None:
    async with operated(frontier, concurrency=4, keep_alive=True) as crawl:
        crawl.start(pages(site, 20))
        async with asyncio.timeout(20):
            while not [w for w in (await crawl.frontier.overview()).workers if w.beat.pages == 20]:
                await asyncio.sleep(0.05)
        (worker,) = (await crawl.frontier.overview()).workers
        assert worker.seen < SOON
        assert (worker.beat.rate > 0, worker.beat.in_flight, worker.beat.paused) == (True, 0, False)
        assert worker.id.startswith(f"{worker.beat.host}-{worker.beat.pid}-")


class Counting(MemoryFrontier):
    """Counts the calls that a server would be asked."""

    calls: Counter[str]

    async def heartbeat(self, beat: Heartbeat) -> Any:
        self.calls["heartbeat"] += 1
        return await super().heartbeat(beat)

    async def lease(self, count: int) -> Any:
        self.calls["lease"] += 1
        return await super().lease(count)

    async def stats(self) -> Any:
        self.calls["stats"] += 1
        return await super().stats()

    async def renew(self, tokens: Any) -> Any:
        self.calls["renew"] += 1
        return await super().renew(tokens)

    async def commit(self, *rest: Any) -> Any:
        self.calls["commit"] += 1
        return await super().commit(*rest)

    async def release(self, tokens: Any) -> Any:
        self.calls["release"] += 1
        return await super().release(tokens)


async def test_an_idle_worker_only_beats(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = Counting(FrontierOptions(job="job"))
    frontier.calls = Counter()
    monkeypatch.setattr(session, "frontier_from", lambda url, *rest: frontier)
    monkeypatch.setattr(steering, "PERIOD", SHORT_PERIOD)
    crawler = Crawler("job", frontier="memory:", quiet=True, keep_alive=True)
    crawler.handler(lambda page: None)
    phases: list[str] = []
    crawl = asyncio.create_task(crawler.run_async(pages(site, 5), watch=lambda s: phases.append(s.phase)))
    async with asyncio.timeout(20):
        while site.hits.total() < 5:
            await asyncio.sleep(0.01)
        await only_beats(frontier.calls)
        await frontier.configure({"paused": "true"})
        while phases[-1] != "paused":
            await asyncio.sleep(0.01)
        await only_beats(frontier.calls)
    crawl.cancel()
    with pytest.raises(asyncio.CancelledError):
        await crawl


async def only_beats(calls: Counter[str]) -> None:
    await asyncio.sleep(1.5)  # what came before may settle
    calls.clear()
    began = time.monotonic()
    await asyncio.sleep(2.0)
    beats = calls.pop("heartbeat")
    assert 1 <= beats <= (time.monotonic() - began) / SHORT_PERIOD[0] + 1
    assert calls == {}


def test_in_earnest_it_beats_less_than_once_a_second() -> None:
    assert 1.0 < REAL_PERIOD[0] <= REAL_PERIOD[1] < 2.0
