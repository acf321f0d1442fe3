"""A job's cookies outlive its process: resumed runs and other workers have the login."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from tests.site import Site

from silkline import Crawler, Page, Request
from silkline.config import FrontierOptions
from silkline.engine.keeper import Keeper
from silkline.fetch.cookies.cookie import place_of
from silkline.fetch.cookies.sessions import Sessions
from silkline.frontier.memory import MemoryFrontier

HERE = place_of("http://shop.example/")


async def login(request: web.Request) -> web.Response:
    response = web.Response(text='<a href="/members">in</a>', content_type="text/html")
    response.set_cookie("sid", request.query.get("user", "me"))
    return response


async def members(request: web.Request) -> web.Response:
    name = request.cookies.get("sid", "nobody")
    return web.Response(text=f"<title>{name}</title>", content_type="text/html")


def shop() -> Site:
    return Site({"/login": login, "/login?user=ann": login, "/members": members, "/members?again": members})


def crawler(**settings: object) -> tuple[Crawler, list[str | None]]:
    seen: list[str | None] = []
    crawl = Crawler("shop", quiet=True, **settings)

    @crawl.handler
    def page(page: Page) -> object:
        seen.append(page.title)
        return page.follow("a")

    return crawl, seen


def test_a_resumed_job_is_still_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with shop() as site:
        crawl, seen = crawler()
        crawl.run(f"{site.url}/login")
        crawl.run(f"{site.url}/members?again")
        assert seen == [None, "me", "me"]
        crawl.run(f"{site.url}/members", fresh=True)
        assert seen[3:] == ["nobody"]


def test_without_cookies_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with shop() as site:
        crawl, seen = crawler(cookies="off")
        crawl.run(f"{site.url}/login")
    assert seen == [None, "nobody"]


def test_links_stay_in_the_session_of_their_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with shop() as site:
        crawl, seen = crawler(frontier="memory:")
        crawl.run(Request(f"{site.url}/login?user=ann", session="ann"))
    assert seen == [None, "ann"]


def test_a_link_tells_of_its_page_as_the_policy_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str | None] = []

    async def tell(request: web.Request) -> web.Response:
        told.append(request.headers.get("Referer"))
        return web.Response(text="ok", content_type="text/html")

    pages = {"/": '<a href="/a">a</a>', "/a": tell}
    for policy in ("strict-origin-when-cross-origin", "origin", "off"):
        with Site(dict(pages)) as site:
            crawl, _ = crawler(frontier="memory:", referer=policy)
            crawl.run(f"{site.url}/#top")
        assert told.pop() == {"origin": f"{site.url}/", "off": None}.get(policy, f"{site.url}/")


async def open_frontier() -> MemoryFrontier:
    frontier = MemoryFrontier(FrontierOptions())
    await frontier.open()
    return frontier


async def test_a_login_is_stored_at_once_and_later_changes_together() -> None:
    frontier, sessions = await open_frontier(), Sessions()
    writes = 0
    remember = frontier.remember

    async def counted(facts: dict[str, str]) -> None:
        nonlocal writes
        writes += 1
        await remember(facts)

    frontier.remember = counted  # type: ignore[method-assign, assignment]
    keeper = Keeper(frontier, sessions)
    running = asyncio.create_task(keeper.run())
    for number in range(50):
        sessions.get(None).jar.take([f"n={number}".encode()], HERE, float(number))
        sessions.on_change()
        await asyncio.sleep(0.002)
    assert writes == 1
    assert any("n" in text for text in (await frontier.recall()).values())
    running.cancel()
    await keeper.flush()
    other = Sessions()
    await Keeper(frontier, other).load()
    assert other.get(None).jar.header(HERE, 100.0) == "n=49"
    await keeper.flush()
    assert writes == 2


async def test_two_workers_that_write_at_the_same_time_lose_no_cookie() -> None:
    frontier = await open_frontier()
    workers = [Sessions(), Sessions()]
    keepers = [Keeper(frontier, sessions) for sessions in workers]
    for number, sessions in enumerate(workers):
        sessions.get(None).jar.take([f"w{number}=1".encode()], HERE, 1.0 + number)
    await asyncio.gather(*(keeper.flush() for keeper in keepers))
    for _ in range(2):
        for keeper in keepers:
            await keeper.load()
            await keeper.flush()
    for sessions in workers:
        assert sessions.get(None).jar.header(HERE, 10.0) == "w0=1; w1=1"


KILLED = """
import os, signal, sys
from silkline import Crawler

crawler = Crawler("shop", quiet=True, robots=False)

@crawler.handler
def page(page):
    if page.url.endswith("/members") and "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    if page.title:
        print(page.title)
    yield page.follow("a")

crawler.run(sys.argv[1] + "/login")
"""


def test_a_login_survives_the_kill_of_its_worker(tmp_path: Path) -> None:
    (tmp_path / "spider.py").write_text(KILLED)
    with shop() as site:
        run = [sys.executable, "spider.py", site.url]
        killed = subprocess.run([*run, "kill"], cwd=tmp_path, timeout=60)
        assert killed.returncode == -signal.SIGKILL
        resumed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert resumed.stdout == "me\n", resumed.stderr
    assert site.hits["/login"] == 1
