"""How fast hosts are asked, by what they answer: real servers of limited capacity, alone and by several
processes."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests import servers
from tests.site import Site, noting

from silkline import Crawler
from silkline.config import FrontierOptions
from silkline.frontier import SqliteFrontier


class Limited:
    """Pages of a site that bears so many requests a second, and says 429 to the others."""

    def __init__(self, rate: float, burst: float = 5.0) -> None:
        self.answered: list[float] = []
        self.refused: list[float] = []
        self._rate, self._burst, self._tokens, self._at = rate, burst, burst, time.monotonic()

    async def __call__(self, request: web.Request) -> web.Response:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1.0:
            self.refused.append(now)
            return web.Response(status=429)
        self._tokens -= 1.0
        self.answered.append(now)
        return web.Response(text="x", content_type="text/html")


_jobs = count()


@pytest.fixture(params=["sqlite", "redis"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """(URL of a frontier, name for the job)"""
    job = f"pacing-{next(_jobs)}"
    return (f"sqlite:///{tmp_path}/job.db" if request.param == "sqlite" else servers.valkey_url()), job


def crawl(frontier: tuple[str, str], urls: list[str], **settings: Any) -> Any:
    url, job = frontier
    crawler = Crawler(job, frontier=url, quiet=True, fresh=True, retries=30, robots=False, **settings)
    crawler.handler(nothing)
    return crawler.run(urls)


def nothing(page: Any) -> None:
    """Workers are processes: it has to be found by name."""


def crawled(frontier: tuple[str, str], capacity: float, pages: int, **settings: Any) -> tuple[float, float]:
    """(pages a second, share of refusals), both in the second half. There are more URLs than pages are
    wanted, so that none has to wait for those that were refused often."""
    answers = Limited(capacity)
    with Site({f"/{n}": answers for n in range(4 * pages)}) as site:
        urls = [f"{site.url}/{n}" for n in range(4 * pages)]
        assert crawl(frontier, urls, max_pages=pages, **settings).pages == pages
    half = answers.answered[pages // 2]
    refused = sum(at > half for at in answers.refused)
    rate = (pages - pages // 2 - 1) / (answers.answered[pages - 1] - half)
    return rate, refused / (refused + pages / 2)


def test_a_host_of_limited_capacity_gets_what_it_can_bear(tmp_path: Path) -> None:
    rate, refused = crawled((f"sqlite:///{tmp_path}/job.db", "one"), 40.0, 200)
    assert 10.0 < rate < 50.0
    assert refused < 0.1


@pytest.mark.parametrize("processes", [1, 4])
def test_a_fixed_delay_is_the_same_for_any_number_of_processes(
    frontier: tuple[str, str], processes: int
) -> None:
    starts: list[float] = []
    with Site({f"/{n}": noting(starts) for n in range(60)}) as site:
        urls = [f"{site.url}/{n}" for n in range(60)]
        report = crawl(frontier, urls, delay=0.1, processes=processes)
    assert report.pages == 60
    rate = 59 / (max(starts) - min(starts))
    assert 5.0 < rate <= 10.5


def test_four_processes_find_the_capacity_together(frontier: tuple[str, str]) -> None:
    rate, refused = crawled(frontier, 40.0, 160, processes=4)
    assert 2.0 < rate < 50.0
    assert refused < 0.2


def test_a_host_that_redirects_is_judged_by_its_redirects_too(tmp_path: Path) -> None:
    """Not by its failures alone, which are one in eight."""
    asked = count(1)

    async def answer(request: web.Request) -> web.Response:
        if next(asked) % 8 == 5:
            return web.Response(status=429, headers={"Retry-After": "1"})
        return web.Response(status=302, headers={"Location": f"{there.url}{request.path}"})

    pages: dict[str, Any] = {f"/{n}": "<p>x" for n in range(40)}
    with Site(pages) as there, Site(dict.fromkeys(pages, answer)) as here:
        urls = [f"{here.url}{path}" for path in pages]
        report = crawl((f"sqlite:///{tmp_path}/job.db", "moved"), urls, delay=0.05, per_host=3, max_pages=38)
        paces = asyncio.run(paces_of(tmp_path / "job.db", [here.url, there.url]))
    assert report.pages == 38
    assert paces[0] is not None
    assert paces[0][1] < 4.0  # seconds between two starts; 10 where failures alone count
    assert paces[1] is None  # it has answered well


async def test_failures_behind_redirects_within_a_domain_slow_it_down(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.host.startswith("a."):
            return web.Response(status=302, headers={"Location": f"{targets}{request.path}"})
        return web.Response(status=500)

    with Site({f"/{n}": answer for n in range(500)}, delay=0.05) as site:
        targets = site.url.replace("127.0.0.1", "b.shop.localhost")
        urls = [f"{site.url.replace('127.0.0.1', 'a.shop.localhost')}/{n}" for n in range(500)]
        where = f"sqlite:///{tmp_path}/job.db"
        by_domain: dict[str, Any] = {"politeness_by": "domain", "allow_private": True, "robots": False}
        crawler = Crawler("moved", frontier=where, quiet=True, retries=0, **by_domain)
        crawler.handler(nothing)
        crawl = asyncio.create_task(crawler.run_async(urls))
        while not any(await states(tmp_path / "job.db", urls[:1])):
            assert not crawl.done()
            await asyncio.sleep(0.1)
        crawl.cancel()
        await asyncio.wait([crawl])


def test_pages_that_fail_once_slow_nobody_down(tmp_path: Path) -> None:
    """One in ten says 503 when it is asked first, wherever in the crawl that is."""
    asked: set[str] = set()

    async def answer(request: web.Request) -> web.Response:
        path = request.path
        if int(path[1:]) % 10 == 5 and path not in asked:
            asked.add(path)
            return web.Response(status=503)
        return web.Response(text="x", content_type="text/html")

    with Site({f"/{n}": answer for n in range(1_500)}, delay=0.02) as site:
        urls = [f"{site.url}/{n}" for n in range(1_500)]
        report = crawl((f"sqlite:///{tmp_path}/job.db", "moved"), urls)
        (pace,) = asyncio.run(paces_of(tmp_path / "job.db", urls[:1]))
    assert (report.pages, len(asked)) == (1_500, 150)
    assert pace is None or pace[1] < 0.05  # seconds between two starts


async def states(path: Path, urls: list[str]) -> list[tuple[int, float] | None]:
    """The same, while the job may just be about to be made."""
    there = await asyncio.to_thread(path.exists)
    return await paces_of(path, urls) if there else []


async def paces_of(path: Path, urls: list[str]) -> list[tuple[int, float] | None]:
    """(cap, delay) of their hosts, as their answers have led to."""
    frontier = SqliteFrontier(path, FrontierOptions(job="moved"))
    await frontier.open()
    try:
        hosts = [await frontier.host(key) for key in await frontier.politeness_keys(urls)]
    finally:
        await frontier.close()
    return [None if host is None else host.pace for host in hosts]
