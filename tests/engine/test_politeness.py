"""What a crawl does to hosts: caps, delays, Retry-After, and slow hosts among quick ones."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from aiohttp import web
from tests.site import Site, check_spacing, noting, plain

from silkline import Crawler, Request


@pytest.fixture(params=["memory:", "sqlite"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/job.db"


def crawler_for(frontier: str, **settings: Any) -> Crawler:
    crawler = Crawler("job", frontier=frontier, quiet=True, **settings)
    crawler.handler(lambda page: None)
    return crawler


def test_a_host_never_sees_more_than_its_cap(frontier: str) -> None:
    with Site({f"/{n}": "x" for n in range(60)}, delay=0.02) as site:
        report = crawler_for(frontier, per_host=3).run([f"{site.url}/{n}" for n in range(60)])
        assert report.pages == 60
        assert site.most_in_flight == 3


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("domain", ["a.shop.localhost", "b.shop.localhost", "shop.localhost"]),
        ("ip", ["one.localhost", "two.localhost", "127.0.0.1"]),
    ],
)
def test_hosts_of_one_domain_or_address_share_a_cap(frontier: str, by: str, names: list[str]) -> None:
    pages: dict[str, Any] = {f"/{n}": "x" for n in range(20)}
    with Site(pages, delay=0.02) as site:
        origins = [site.url.replace("127.0.0.1", name) for name in names]
        links = "".join(f'<a href="{origin}/{n}"></a>' for n in range(20) for origin in origins)
        pages["/"] = f"<html>{links}</html>"
        crawler = Crawler(
            "job", frontier=frontier, quiet=True, per_host=3, politeness_by=by, allow_private=True
        )
        crawler.handler(lambda page: page.follow("a"))
        assert crawler.run(f"{origins[0]}/").pages == 61
        assert site.most_in_flight == 3


def test_each_host_has_its_own_robots_txt_and_their_domain_the_longest_delay(frontier: str) -> None:
    """What one host's file refuses another one's may allow."""
    starts: list[float] = []

    async def robots(request: web.Request) -> web.Response:
        rules = "Crawl-delay: 0.05" if request.host.startswith("b.") else "Crawl-delay: 0.2\nDisallow: /1"
        return web.Response(text=f"User-agent: *\n{rules}\n")

    with Site({"/robots.txt": robots, **{f"/{n}": noting(starts) for n in range(4)}}) as site:
        names = ("a.shop.localhost", "b.shop.localhost")
        urls = [f"{site.url.replace('127.0.0.1', name)}/{n}" for name in names for n in range(4)]
        report = crawler_for(frontier, politeness_by="domain").run(urls)
    assert (report.pages, report.refused) == (7, {"robots": 1})
    late = sorted(starts)[2:]  # the two files are read first
    check_spacing(late, 0.2)


def test_a_delay_spaces_the_starts(frontier: str) -> None:
    starts: list[float] = []
    with Site({f"/{n}": noting(starts) for n in range(8)}) as site:
        assert crawler_for(frontier, delay=0.2).run([f"{site.url}/{n}" for n in range(8)]).pages == 8
    check_spacing(starts, 0.2)


def test_a_delay_is_kept_by_a_worker_that_falls_behind(frontier: str) -> None:
    starts: list[float] = []
    with Site({f"/{n}": noting(starts) for n in range(5)}) as site:
        crawler = Crawler("job", frontier=frontier, quiet=True, delay=0.3)
        # The first page keeps the event loop for itself until the next ones are overdue.
        crawler.handler(lambda page: time.sleep(1.0) if page.url.endswith("/0") else None)
        crawler.run([f"{site.url}/{n}" for n in range(5)])
    check_spacing(starts, 0.3)


def test_a_page_that_comes_while_leases_are_given_back_is_committed(frontier: str) -> None:
    """Its link is visited at once, not when the next outcome comes."""

    asked = count()

    async def busy(request: web.Request) -> web.StreamResponse:
        if next(asked) < 12:
            return web.Response(status=429, headers={"Retry-After": "2"})
        return await plain(request)

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(0.01 * int(request.path.rpartition("-")[2]))
        return web.Response(text='<a href="/next">', content_type="text/html")

    pages: dict[str, Any] = {f"/busy-{n}": busy for n in range(8)}
    with Site(pages) as limited, Site({f"/slow-{n}": slow for n in range(12)} | {"/next": "x"}) as other:
        seen: dict[str, float] = {}
        # Without a pace that is found out: it would go down with the 429s, more or less as they fall.
        crawler = Crawler("job", frontier=frontier, quiet=True, retries=1, adaptive=False)

        @crawler.handler
        def note(page: Any) -> Any:
            seen[page.url] = time.monotonic()
            yield page.follow("a")

        crawler.run(
            [f"{limited.url}/busy-{n}" for n in range(8)], [f"{other.url}/slow-{n}" for n in range(12)]
        )
        assert len(seen) == 21
    last = max(at for url, at in seen.items() if "slow" in url)
    assert seen[f"{other.url}/next"] - last < 1.0


def test_retry_after_blocks_the_host_and_wins_over_the_backoff(frontier: str) -> None:
    times: list[float] = []

    async def busy_once(request: web.Request) -> web.StreamResponse:
        times.append(time.monotonic())
        if len(times) == 1:
            return web.Response(status=429, headers={"Retry-After": "1"})
        return await plain(request)

    with Site({"/busy": busy_once, "/other": busy_once}) as site:
        crawler = crawler_for(frontier, concurrency=1)
        assert crawler.run(f"{site.url}/busy", f"{site.url}/other").pages == 2
    assert min(times[1:]) - times[0] >= 0.95


def test_a_host_that_asks_to_be_left_alone_is_named(frontier: str, tmp_path: Path) -> None:
    async def busy(request: web.Request) -> web.Response:
        return web.Response(status=503, headers={"Retry-After": "3600"})

    log = tmp_path / "log.jsonl"
    with Site({f"/{n}": busy for n in range(3)}) as site, Site({"/": "x"}) as other:
        crawler = crawler_for(frontier, max_pages=1, log_file=str(log))
        urls = [Request(f"{site.url}/{n}", priority=9) for n in range(3)]
        report = crawler.run(*urls, f"{other.url}/")
    (trouble,) = report.troubles
    assert trouble.startswith(f"{site.url} asks to be left alone until 20")
    assert [line for line in log.read_text().splitlines() if trouble in line]


def test_a_waiting_retry_holds_no_slot(frontier: str) -> None:
    async def unavailable(request: web.Request) -> web.Response:
        return web.Response(status=500)

    pages: dict[str, Any] = {f"/{n}": "x" for n in range(30)}
    with Site({**pages, "/broken": unavailable}) as site:
        started = time.monotonic()
        finished: list[float] = []
        crawler = Crawler("job", frontier=frontier, quiet=True, concurrency=1, retries=1)
        crawler.handler(lambda page: finished.append(time.monotonic()))
        report = crawler.run(f"{site.url}/broken", [f"{site.url}/{n}" for n in range(30)])
        assert report.dead == {"http_500": 1}
        assert max(finished) - started < 1.5


def test_one_hanging_host_leaves_the_throughput_of_the_others(frontier: str) -> None:
    """Twelve hosts of 100 ms a page want all the slots; a thirteenth that hangs must not cost 10 %.

    Slots are the bottleneck here, so that the machine's other load hardly counts."""

    async def hang(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response(text="x")

    def rate(seeds: list[str], hanging: list[str], number: str) -> float:
        finished: list[float] = []
        name = frontier if frontier == "memory:" else frontier.replace("job.db", f"{number}.db")
        crawler = Crawler("job", frontier=name, quiet=True, concurrency=64, timeout=4, retries=0)
        crawler.handler(lambda page: finished.append(time.monotonic()))
        report = crawler.run([*hanging, *seeds])
        assert report.pages == len(seeds)
        return len(finished) / (finished[-1] - finished[0])

    with ExitStack() as stack:
        hosts = [stack.enter_context(Site({f"/{n}": "x" for n in range(150)}, delay=0.1)) for _ in range(12)]
        hanging = stack.enter_context(Site({f"/{n}": hang for n in range(8)}))
        seeds = [f"{host.url}/{n}" for n in range(150) for host in hosts]
        slow = [f"{hanging.url}/{n}" for n in range(8)]
        # A pair at a time, as the machine's speed drifts; what the others do to it only ever slows a run.
        shares: list[float] = []
        while len(shares) < 7 and (not shares or median(shares) < 0.9):
            alone = rate(seeds, [], f"a{len(shares)}")
            shares.append(rate(seeds, slow, f"b{len(shares)}") / alone)
    assert median(shares) >= 0.9, shares
