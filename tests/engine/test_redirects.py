"""Redirects keep the limits of the host they lead to."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests import servers
from tests.site import Site, check_spacing, noting, redirect

from silkline import Crawler, Request, Response
from silkline.engine import turns
from silkline.events import Visited
from silkline.frontier.sqlite import SqliteFrontier

Store = dict[str, Any]


@pytest.fixture(params=["memory", "sqlite", "valkey"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Where the job is, as settings."""
    job = f"redirects-{zlib.crc32(bytes(tmp_path)):x}"
    if request.param == "valkey":
        return {"frontier": servers.valkey_url(), "name": job}
    return {
        "frontier": "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/job.db",
        "name": job,
    }


def crawler_for(store: Store, **settings: Any) -> Crawler:
    crawler = Crawler(**store, quiet=True, **settings)
    crawler.handler(lambda page: page.follow("a"))
    return crawler


@contextmanager
def leading(count: int, pages: dict[str, Any], **target: Any) -> Iterator[tuple[Site, Site]]:
    """A site all of whose pages redirect to those of another one."""
    with Site(pages, **target) as there, Site({}) as here:
        here.pages = {f"/{n}": redirect(f"{there.url}/{n}") for n in range(count)}
        yield here, there


def test_redirects_leave_a_host_alone_that_has_asked_for_it(store: Store) -> None:
    """Others than those that are on their way when it says so do not reach it, and none is lost."""
    asked: list[float] = []

    async def busy(request: web.Request) -> web.Response:
        asked.append(time.monotonic())
        if len(asked) <= 2:
            return web.Response(status=503, headers={"Retry-After": "3"})
        return web.Response(text="x", content_type="text/html")

    with leading(40, {f"/{n}": busy for n in range(40)}) as (here, there):
        report = crawler_for(store, per_host=2, adaptive=False).run([f"{here.url}/{n}" for n in range(40)])
        assert (report.pages, report.requests) == (40, 42)
        assert there.hits.total() == 42
        assert here.hits.total() == 40  # nobody asks it again for what it has said
    blocked = [at for at in asked if at - asked[0] < 2.8]
    assert len(blocked) <= 2  # one, where the first answer was in the store before the second was asked


def test_redirects_keep_the_cap_of_the_host_they_lead_to(store: Store) -> None:
    with leading(40, {f"/{n}": "x" for n in range(40)}, delay=0.05) as (here, there):
        with Site({}) as other:
            other.pages = {f"/{n}": redirect(f"{there.url}/{n}") for n in range(20, 40)}
            starts = [f"{here.url}/{n}" for n in range(20)] + [f"{other.url}/{n}" for n in range(20, 40)]
            assert crawler_for(store, per_host=3, concurrency=20).run(starts).pages == 40
        assert there.most_in_flight == 3


def test_a_chain_of_redirects_keeps_the_delay(store: Store) -> None:
    """Of each host on its way, the one where it began included."""
    starts: list[float] = []
    pages = {f"/{n}": noting(starts, redirect(f"/{n + 1}")) for n in range(4)} | {"/4": noting(starts)}
    with Site(pages) as site:
        report = crawler_for(store, delay=0.3).run(f"{site.url}/0")
    assert (report.pages, report.requests) == (1, 1)
    check_spacing(starts, 0.3)


def test_redirects_keep_the_crawl_delay_of_the_host_they_lead_to(store: Store) -> None:
    starts: list[float] = []

    async def robots(request: web.Request) -> web.Response:
        return web.Response(text="User-agent: *\nCrawl-delay: 0.3\n")

    pages = {"/robots.txt": robots} | {f"/{n}": noting(starts) for n in range(5)}
    with leading(5, pages) as (here, _):
        assert crawler_for(store).run([f"{here.url}/{n}" for n in range(5)]).pages == 5
    check_spacing(starts, 0.3)


def test_a_page_that_redirects_have_led_elsewhere_is_as_it_would_be_at_once(tmp_path: Path) -> None:
    """History, items and identity; a POST becomes a GET; the fragment stays."""
    seen: list[tuple[str, str, tuple[str, ...], str]] = []

    async def end(request: web.Request) -> web.Response:
        body = await request.text()
        seen.append((request.method, body, (), request.headers.get("X-Mine", "")))
        return web.Response(text="x", content_type="text/html")

    crawler = Crawler("job", frontier="memory:", quiet=True)
    pages: list[tuple[str, tuple[str, ...], str]] = []
    crawler.handler(lambda page: pages.append((page.url, page.response.history, page.request.url)))
    with Site({"/end": end}) as there, Site({}) as here:
        here.pages = {"/": redirect("/next"), "/next": redirect(f"{there.url}/end")}
        start = f"{here.url}/#part"
        crawler.run(Request.post(start, form={"a": "b"}, headers={"X-Mine": "1", "Authorization": "secret"}))
        assert seen == [("GET", "", (), "1")]
        assert pages == [
            (f"{there.url}/end#part", (start, f"{here.url}/next#part"), start),
        ]


def test_redirects_without_end_are_stopped_over_several_hosts(store: Store) -> None:
    with Site({}) as one, Site({}) as two:
        one.pages = {f"/{n}": redirect(f"{two.url}/{n + 1}") for n in range(20)}
        two.pages = {f"/{n}": redirect(f"{one.url}/{n + 1}") for n in range(20)}
        report = crawler_for(store).run(f"{one.url}/0")
        assert report.dead == {"too_many_redirects": 1}
        assert one.hits.total() + two.hits.total() == 11


def test_redirects_out_of_scope_wait_for_nobody(store: Store) -> None:
    """They are refused at once, and not even the robots.txt of the other host is read."""
    with leading(1, {"/0": "x"}) as (here, there):
        here.pages["/start"] = '<a href="/0">'
        report = crawler_for(store, scope="host", allow_private=True).run(f"{here.url}/start")
        assert report.refused == {"out_of_scope": 1}
        assert not there.hits


async def test_a_redirect_within_a_host_without_a_pace_costs_no_round_trip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many leases are handed out and committed as there are pages."""
    leased: list[int] = []
    lease = SqliteFrontier.lease

    async def counted(self: SqliteFrontier, count: int) -> Any:
        batch = await lease(self, count)
        leased.append(len(batch.leases))
        return batch

    monkeypatch.setattr(SqliteFrontier, "lease", counted)
    with Site({}) as site:
        site.pages = {f"/{n}": redirect(f"/{n}/") for n in range(20)} | {f"/{n}/": "x" for n in range(20)}
        crawler = crawler_for({"name": "job", "frontier": f"sqlite:///{tmp_path}/job.db"})
        report = await asyncio.to_thread(crawler.run, [f"{site.url}/{n}" for n in range(20)])
    assert report.pages == 20
    assert sum(leased) == 20


def test_a_resumed_run_says_which_hosts_are_still_blocked(tmp_path: Path) -> None:
    """By name the host that redirects lead to; the first run has said so, too, when it was told."""

    async def busy(request: web.Request) -> web.Response:
        return web.Response(status=503, headers={"Retry-After": "900"})

    store = {"name": "job", "frontier": f"sqlite:///{tmp_path}/job.db"}
    with leading(1, {"/0": busy}) as (here, there):
        here.pages["/page"] = "x"
        starts = [f"{here.url}/0", f"{here.url}/page"]
        first = crawler_for(store, max_pages=1).run(starts)
        assert first.reason == "budget"
        assert any(line.startswith(f"{there.url} asks to be left alone") for line in first.troubles)
        again = crawler_for(store, max_pages=1).run(starts)
        command = ["explain", f"{here.url}/0", "--job", "job", "--frontier", store["frontier"]]
        shown = subprocess.run([sys.executable, "-m", "silkline", *command], capture_output=True, text=True)
    found, host = shown.stdout.splitlines()
    assert found.startswith(f"delayed: redirected to {there.url}/0; until ")
    assert host.startswith(there.url)
    assert "blocked for" in host
    (line,) = [line for line in again.troubles if "blocked until" in line]
    assert line.startswith("1 host is blocked until ")
    assert line.endswith(f"UTC: {there.url}")


def test_a_redirect_that_runs_out_while_it_waits_begins_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends well where the next one is in time, and is given up where none ever is."""
    monkeypatch.setattr(turns, "SHORT_LIVED", 0.2)
    given: dict[str, float] = {}

    async def sign(request: web.Request) -> web.Response:
        key = f"{request.path}-{len(given)}"
        given[key] = time.monotonic()
        return web.Response(status=302, headers={"Location": f"{there.url}{key}"})

    async def check(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nCrawl-delay: 0.6\n")
        in_time = time.monotonic() - given[request.path] < 1.5 and "never" not in request.path
        return web.Response(text="x", content_type="text/html", status=200 if in_time else 403)

    with Site({"/robots.txt": check}, other=check) as there, Site({}, other=sign) as here:
        starts = [f"{here.url}/{n}" for n in range(6)]
        report = crawler_for(store).run([*starts, f"{here.url}/never"])
    assert (report.pages, report.dead) == (6, {"http_403": 1})
    assert len(given) > 7
    assert sum("never" in key for key in given) == 3


@pytest.mark.parametrize(
    ("by", "target", "elsewhere"),
    [
        ("host", "http://a.shop.test/end", False),
        ("host", "http://b.shop.test/end", True),
        ("domain", "http://b.shop.test/end", False),
        ("domain", "http://other.test/end", True),
        ("ip", "http://127.0.0.2/end", True),
    ],
)
def test_an_answer_counts_for_the_group_that_gave_it(by: str, target: str, elsewhere: bool) -> None:
    """Also where a fetcher of the user's own has followed the redirects."""
    start = "http://127.0.0.1/" if by == "ip" else "http://a.shop.test/"

    class Following:
        async def fetch(self, request: Request) -> Response:
            busy = ((b"Retry-After", b"7"),)
            return Response(target, 429, busy, b"", request, history=(request.url,))

    visits: list[Visited] = []
    settings: dict[str, Any] = {"politeness_by": by, "retries": 0, "robots": False, "quiet": True}
    crawler = Crawler("job", frontier="memory:", fetcher=Following(), hooks=[visits.append], **settings)
    crawler.handler(lambda page: None)
    crawler.run(start)
    (visited,) = [event for event in visits if isinstance(event, Visited)]
    assert (visited.elsewhere, visited.outcome.block_host) == (elsewhere, 0.0 if elsewhere else 7.0)
