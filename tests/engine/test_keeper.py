"""A job's cookies outlive its process: resumed runs and other workers have the login."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests import servers
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


async def sign_in(request: web.Request) -> web.Response:
    links = "".join(f'<a href="/members/{n}"></a>' for n in range(60))
    response = web.Response(text=links, content_type="text/html")
    response.set_cookie("sid", "me")
    return response


@pytest.mark.parametrize("server", [False, True], ids=["sqlite", "valkey"])
def test_whichever_process_is_handed_a_page_behind_a_login_has_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    on: dict[str, Any] = {"frontier": servers.valkey_url()} if server else {}
    crawl = Crawler(f"login-{uuid.uuid4().hex[:8]}", outputs=["seen.jsonl"], quiet=True, processes=3, **on)

    @crawl.handler
    def page(page: Page) -> Iterator[Any]:
        if page.title:
            yield {"user": page.title}
        yield page.follow("a")

    pages = {"/login": sign_in, **{f"/members/{n}": members for n in range(60)}}
    with Site(pages, delay=0.01) as site:
        report = crawl.run(f"{site.url}/login", concurrency=2, per_host=6, adaptive=False)
    assert report.pages == 61
    lines = [line for path in tmp_path.glob("seen*.jsonl") for line in path.read_text().splitlines()]
    assert [json.loads(line)["user"] for line in lines] == ["me"] * 60


async def test_what_a_page_changed_is_there_before_its_links_are_and_looked_for_once() -> None:
    frontier = await open_frontier()
    ours, theirs = Sessions(), Sessions()
    writer, reader = Keeper(frontier, ours, shared=True), Keeper(frontier, theirs, shared=True)
    ours.get(None).jar.take([b"sid=1"], HERE, 1.0)
    await writer.share()
    await reader.look()
    assert theirs.get(None).jar.header(HERE, 10.0) == "sid=1"
    recalls = 0
    recall = frontier.recall

    async def counted() -> Mapping[str, str]:
        nonlocal recalls
        recalls += 1
        return await recall()

    frontier.recall = counted  # type: ignore[method-assign]
    await reader.look()
    await writer.look()
    await writer.share()
    assert not recalls
