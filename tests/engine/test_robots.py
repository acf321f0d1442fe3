"""Whole crawls that obey robots.txt, against a real server, on the memory and the SQLite frontier."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web
from tests import servers
from tests.site import Site, noting

from silkline import Crawler, Page, Request
from silkline.config import FrontierOptions
from silkline.frontier import SqliteFrontier
from silkline.observe.report import Report, lines

LINKS = "".join(f'<a href="{path}">x</a>' for path in ("/a", "/b", "/private/1", "/private/2", "/go"))


class Robot:
    """A robots.txt that can be changed, and that knows how often it was asked for."""

    def __init__(self, *answers: str | int) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.agents: list[str] = []
        self.was_asked = threading.Event()

    async def __call__(self, request: web.Request) -> web.Response:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.was_asked.set()
        self.agents.append(request.headers["User-Agent"])
        await asyncio.sleep(0.02)
        return web.Response(status=answer) if isinstance(answer, int) else web.Response(text=answer)


def pages(robot: Robot) -> dict[str, Any]:
    async def go(request: web.Request) -> web.Response:
        raise web.HTTPFound("/private/behind")

    return {
        "/robots.txt": robot,
        "/": LINKS,
        "/a": "a",
        "/b": "b",
        "/private/1": "secret",
        "/private/2": "secret",
        "/private/behind": "secret",
        "/go": go,
    }


@pytest.fixture(params=["memory:", "sqlite", "valkey"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new one for each test: on the server, a database that is emptied."""
    if request.param == "memory:":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/job.db"
    url = servers.valkey_url()
    with redis.Redis.from_url(url) as server:
        server.flushdb()
    return url


def crawl(site: Site, frontier: str, *seeds: str, **settings: Any) -> Report:
    crawler = Crawler("job", frontier=frontier, quiet=True, **settings)

    @crawler.handler
    def page(page: Page) -> Any:
        yield page.follow("a")

    return crawler.run(*(seeds or [f"{site.url}/"]))


def test_what_robots_txt_refuses_is_not_fetched_whatever_leads_there(frontier: str) -> None:
    robot = Robot("User-agent: *\nDisallow: /private\n")
    with Site(pages(robot)) as site:
        report = crawl(site, frontier, f"{site.url}/", f"{site.url}/private/seed")
        assert not [path for path in site.hits if path.startswith("/private")]
        assert (report.reason, report.pages, report.requests) == ("finished", 3, 3)
        assert (report.refused, report.dead, report.failed) == ({"robots": 4}, {}, {})
        assert report.success_rate == 1.0
        assert robot.asked == 1
        rule = f"refused by line 2 of {site.url}/robots.txt: Disallow: /private"
        assert report.refused_by == {rule: 4}
        assert [line.strip() for line in lines(report) if "refused" in line] == [
            "refused   4: robots 4",
            f"4 {rule}",
        ]


async def test_a_refusal_can_be_explained_and_taken_back(tmp_path: Path) -> None:
    frontier = f"sqlite:///{tmp_path}/job.db"
    robot = Robot("User-agent: *\nDisallow: /private\n")
    with Site(pages(robot)) as site:
        await asyncio.to_thread(crawl, site, frontier)
        opened = SqliteFrontier(tmp_path / "job.db", FrontierOptions(job="job"))
        await opened.open()
        found = await opened.explain(f"{site.url}/private/1")
        assert found.place == "dead"
        assert f"robots: refused by line 2 of {site.url}/robots.txt: Disallow: /private;" in found.detail
        assert await opened.dead_letters.resend(cause="robots") == 3
        await opened.close()
        report = await asyncio.to_thread(crawl, site, frontier, robots=False)
        assert (report.pages, report.refused) == (3, {})
        assert site.hits["/private/1"] == 1


@pytest.mark.parametrize("engine", ["http", "curl"])
def test_of_a_file_that_is_larger_than_a_body_may_be_the_beginning_is_read(
    tmp_path: Path, engine: str
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\nDisallow: /private\n" + "# much\n" * 200_000 + "Disallow: /\n")

    async def large(request: web.Request) -> web.FileResponse:
        return web.FileResponse(file)

    with Site({"/robots.txt": large, "/a": "a", "/private/1": "secret"}) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True, fetcher=engine, max_body=1_000_000)
        crawler.handler(lambda page: None)
        report = crawler.run(f"{site.url}/a", f"{site.url}/private/1")
    assert (report.pages, report.refused) == (1, {"robots": 1})
    assert site.hits["/robots.txt"] == 2


def test_without_robots_nothing_is_asked(frontier: str) -> None:
    robot = Robot("User-agent: *\nDisallow: /\n")
    with Site(pages(robot)) as site:
        report = crawl(site, frontier, robots=False)
        assert (report.pages, robot.asked) == (6, 0)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, True),
        ({"user_agent": "shop-watch/2.0 (+https://shop.example/)"}, False),
        ({"robots_agent": "shop-watch"}, False),
        ({"user_agent": "shop-watch/2.0", "robots_agent": "other"}, True),
    ],
)
def test_the_name_in_robots_txt_is_ours(settings: dict[str, str], allowed: bool) -> None:
    robot = Robot("User-agent: *\nAllow: /\n\nUser-agent: Shop-Watch\nDisallow: /\n")
    with Site(pages(robot)) as site:
        report = crawl(site, "memory:", **settings)
        assert (report.pages > 0) is allowed
        assert robot.agents[0].startswith(settings.get("user_agent", "silkline/"))


def test_pages_wait_for_a_robots_txt_that_is_down_and_lose_no_retry(frontier: str) -> None:
    robot = Robot(503, "User-agent: *\nDisallow: /private\n")
    with Site(pages(robot)) as site:
        began = time.monotonic()
        report = crawl(site, frontier, retries=0)
        assert time.monotonic() - began > 1.9
        assert (report.reason, report.pages, report.retried) == ("finished", 3, 0)
        assert (report.refused, report.dead) == ({"robots": 3}, {})
        waits = f"{site.url}/robots.txt cannot be had (HTTP status 503): its host's pages wait"
        assert report.troubles.count(waits) == 1


def test_when_it_stays_down_pages_are_dead_letters_and_were_never_fetched(frontier: str) -> None:
    robot = Robot(500)
    with Site(pages(robot)) as site:
        report = crawl(site, frontier, *(f"{site.url}/{n}" for n in range(20)), robots_patience=0)
        assert (report.reason, report.dead) == ("finished", {"robots_unreachable": 20})
        assert (robot.asked, sum(site.hits.values())) == (1, 1)


async def test_waiting_pages_do_not_hold_up_the_end(tmp_path: Path) -> None:
    robot = Robot(503)
    with Site(pages(robot)) as site:
        crawler = Crawler("job", frontier=f"sqlite:///{tmp_path}/job.db", quiet=True)
        crawler.handler(lambda page: None)
        run = asyncio.create_task(crawler.run_async(f"{site.url}/"))
        await asyncio.to_thread(robot.was_asked.wait, 10)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, 5)


@pytest.mark.parametrize("processes", [1, 3])
def test_a_crawl_delay_holds_for_all_processes_together(tmp_path: Path, processes: int) -> None:
    starts: list[float] = []
    robot = Robot("User-agent: *\nCrawl-delay: 0.4\n")
    with Site({"/robots.txt": robot, **{f"/{n}": noting(starts) for n in range(8)}}) as site:
        report = crawl(
            site,
            f"sqlite:///{tmp_path}/job.db",
            *(f"{site.url}/{n}" for n in range(8)),
            processes=processes,
        )
        assert report.pages == 8
    starts.sort()
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    # Each process lets one page go when it learns the delay; after that the host has its rate. What the
    # server sees of a start comes late on a busy machine: one gap is longer, and the next one shorter.
    assert starts[-1] - starts[0] >= 0.4 * (len(starts) - processes) - 0.1, gaps
    assert sum(gap < 0.2 for gap in gaps) <= processes - 1, gaps
    assert robot.asked <= processes


def test_a_redirect_to_another_host_needs_leave_there() -> None:
    theirs = Robot("User-agent: *\nDisallow: /private\n")
    with Site({"/robots.txt": theirs, "/private/x": "secret", "/open": "ok"}) as other:

        async def to_private(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{other.url}/private/x")

        async def to_open(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{other.url}/open")

        with Site({"/1": to_private, "/2": to_open}) as site:
            report = crawl(site, "memory:", f"{site.url}/1", f"{site.url}/2")
        assert (report.pages, report.refused) == (1, {"robots": 1})
        assert dict(other.hits) == {"/robots.txt": 1, "/open": 1}


def test_middleware_sees_robots_txt_as_any_other_fetch() -> None:
    seen: list[str] = []

    async def middleware(request: Request, call_next: Any) -> Any:
        seen.append(request.url.rpartition("/")[2])
        return await call_next(request)

    with Site(pages(Robot(404))) as site:
        crawler = Crawler("job", frontier="memory:", middleware=[middleware], quiet=True)
        crawler.handler(lambda page: None)
        crawler.run(f"{site.url}/a")
    assert seen == ["robots.txt", "a"]


NOFOLLOWED = """<a href="/a">a</a> <a href="/b" rel="nofollow">b</a>
<a href="/c" rel="external NOFOLLOW">c</a> <a href="/page">n</a>"""


def asking(site_pages: dict[str, Any], **settings: Any) -> tuple[Report, set[str]]:
    """The report, and the paths that were fetched."""
    with Site(site_pages) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True, **settings)

        @crawler.handler
        def page(page: Page) -> Any:
            yield {"url": page.url}
            yield page.follow("a")
            if page.url.endswith("/made"):
                yield Request(f"{site.url}/own")

        return crawler.run(f"{site.url}/", f"{site.url}/made"), set(site.hits)


ASKING: dict[str, Any] = {
    "/": NOFOLLOWED,
    **{f"/{name}": name for name in ("a", "b", "c", "d", "e", "own")},
    "/page": '<meta name="robots" content="nofollow,noindex"><a href="/d">d</a>',
    "/made": '<meta name="silkline" content="nofollow"><a href="/e">e</a>',
}


class TestWhatPagesAsk:
    def test_nofollow_is_obeyed_and_noindex_costs_no_item(self) -> None:
        report, fetched = asking(ASKING)
        assert fetched == {"/", "/a", "/page", "/made", "/own"}
        assert report.items == 5

    def test_noindex_pages_lose_their_items_where_that_is_wanted(self) -> None:
        report, fetched = asking(ASKING, robots_meta="all")
        assert fetched == {"/", "/a", "/page", "/made", "/own"}
        assert (report.pages, report.items) == (5, 4)

    def test_switched_off_nothing_is_heard(self) -> None:
        report, fetched = asking(ASKING, robots_meta="off")
        assert fetched == set(ASKING)
        assert report.items == len(ASKING)

    def test_a_rule_for_another_robot_is_not_for_us(self) -> None:
        _, fetched = asking(ASKING, user_agent="shop-watch/1.0")
        assert fetched == {"/", "/a", "/page", "/made", "/own", "/e"}


def test_what_robots_txt_refuses_is_not_charged_to_the_page_budget(frontier: str) -> None:
    open_pages = {f"/{n}": "open" for n in range(9)}
    links = "".join(
        f'<a href="{path}">x</a>' for n, path in enumerate(open_pages) for path in (f"/private/{n}", path)
    )
    with Site({"/robots.txt": Robot("User-agent: *\nDisallow: /private"), "/": links, **open_pages}) as site:
        first = crawl(site, frontier, max_pages=4)
        assert (first.reason, first.pages) == ("budget", 4)
        assert first.refused["robots"] >= 3
        if frontier != "memory:":
            again = crawl(site, frontier, max_pages=6)
            assert (again.reason, again.pages) == ("budget", 2)
