"""Every kind of refusal of a whole crawl: counted in the report, and answered for by `silkline explain`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.politeness.trap_site import TrapSite
from tests.site import Site

from silkline import Crawler
from silkline.config import FrontierOptions
from silkline.engine.refusals import why_never_seen
from silkline.frontier import frontier_from
from silkline.observe.report import Report
from silkline.testing import MockFetcher

HOME = "https://shop.example/"
ROBOTS = "User-agent: *\nDisallow: /private\n"


async def explained(directory: Path, url: str) -> str:
    """As `silkline explain` puts it together."""
    frontier = frontier_from(f"sqlite:///{directory}/job.db", FrontierOptions(job="job"))
    await frontier.open()
    try:
        found = await frontier.explain(url)
        detail = found.detail or await why_never_seen(frontier, await frontier.recall(), url)
        return f"{found.place}: {detail}" if found.place == "never seen" else f"{found.place}: {found.detail}"
    finally:
        await frontier.close()


def command_in(directory: Path, *words: str) -> str:
    """What a command on the job "j" prints."""
    command = [sys.executable, "-m", "silkline", *words, "--job", "j"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def crawl(directory: Path, pages: dict[str, Any], **settings: Any) -> Report:
    site = {f"{HOME}robots.txt": ROBOTS} | {HOME + path: page for path, page in pages.items()}
    frontier = f"sqlite:///{directory}/job.db"
    crawler = Crawler("job", fetcher=MockFetcher(site), frontier=frontier, quiet=True, **settings)
    crawler.handler(lambda page: page.follow("a"))
    return await crawler.run_async(HOME)


REFUSED_LINKS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "host": (
        "https://other.example/",
        {"scope": "host"},
        "on another host",
        "never seen: links to it are refused: on another host",
    ),
    "site": (
        "https://other.example/",
        {"scope": "site"},
        "on another site",
        "never seen: links to it are refused: on another site",
    ),
    "path": (f"{HOME}b", {"paths": ["/a"]}, "not below /a", "links to it are refused: not below /a"),
    "scheme": (
        "http://shop.example/b",
        {"schemes": ["https"]},
        "not https",
        "links to it are refused: not https",
    ),
    "ending": (
        f"{HOME}b.pdf",
        {"skip_extensions": ["pdf"]},
        "a .pdf file",
        "links to it are refused: a .pdf file",
    ),
    "deny": (f"{HOME}b", {"deny": ["b$"]}, "denied by b$", "links to it are refused: denied by b$"),
    "allow": (
        f"{HOME}b",
        {"allow": ["/p/"]},
        "matched by no allow pattern",
        "links to it are refused: matched by no allow pattern",
    ),
    "trap": (
        f"{HOME}a/b/a/b/a/b/a/b/a/b/",
        {},
        "trap: the path goes in circles at https://shop.example/a/b/",
        "links to it are refused: trap: the path goes in circles at https://shop.example/a/b/",
    ),
    "depth": (f"{HOME}b", {"max_depth": 0}, "deeper than max_depth", "deeper than max_depth = 0"),
    "max_links": (f"{HOME}b", {"max_links": 1}, "beyond max_links of its page", "beyond max_links = 1"),
    "nofollow": (f"{HOME}b", {}, "nofollow", "only by links that are nofollow or"),
    "pattern": (
        f"{HOME}b",
        {"max_pages_per_pattern": 1},
        "more than max_pages_per_pattern of https://shop.example/",
        "more than max_pages_per_pattern = 1",
    ),
    "host budget": (
        f"{HOME}b",
        {"max_pages_per_host": 2},
        "more than max_pages_per_host",
        "never seen",
    ),
}


@pytest.mark.parametrize("kind", REFUSED_LINKS)
async def test_a_link_that_is_refused(tmp_path: Path, kind: str) -> None:
    url, settings, counted, told = REFUSED_LINKS[kind]
    rel = ' rel="nofollow"' if kind == "nofollow" else ""
    page = f'<a href="{HOME}a"></a><a href="{url}"{rel}></a>'
    if kind in ("allow", "depth"):
        page = f'<a href="{url}"></a>'
    report = await crawl(tmp_path, {"": page, "a": ""}, **settings)
    assert (report.links_refused[counted].count, report.links_refused[counted].example) == (1, url)
    assert told in await explained(tmp_path, url)


async def test_a_page_that_is_refused(tmp_path: Path) -> None:
    pages: dict[str, Any] = {
        "": '<a href="/private/1"></a><a href="/pdf"></a><a href="/old"></a>',
        "pdf": (200, {"Content-Type": "application/pdf"}, b"%PDF"),
        "old": (301, {"Location": "/new"}, b""),
        "new": "new",
    }
    report = await crawl(tmp_path, pages, content_types=["text/html"])
    assert report.refused == {"robots": 1, "content_type": 1}
    assert set(report.refused_by) == {
        f"refused by line 2 of {HOME}robots.txt: Disallow: /private",
        "application/pdf, not text/html (content_types)",
    }
    assert "dead: robots: refused by line 2" in await explained(tmp_path, f"{HOME}private/1")
    assert "dead: content_type: application/pdf" in await explained(tmp_path, f"{HOME}pdf")
    assert await explained(tmp_path, f"{HOME}old") == "done: "
    assert (await explained(tmp_path, f"{HOME}new")).startswith(
        "done: another address of a page that is done"
    )
    never_met = await explained(tmp_path, f"{HOME}private/2")
    assert never_met.startswith("never seen: it would be refused by robots.txt: refused by line 2 of")


def test_a_redirect_out_of_the_scope_and_what_the_command_says(tmp_path: Path) -> None:
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://localhost:1/out")

    silkline = partial(command_in, tmp_path)
    with Site({"/": '<a href="/out"></a>', "/out": moved}) as site:
        silkline("crawl", f"{site.url}/", "--follow", "a", "--scope", "host", "--quiet")
        told = silkline("explain", f"{site.url}/out")
        found = json.loads(silkline("explain", "http://localhost:1/out", "--json"))
    assert told.startswith(
        "dead: out_of_scope: redirected to http://localhost:1/out, which is on another host"
    )
    assert found == {
        "url": "http://localhost:1/out",
        "place": "never seen",
        "detail": "links to it are refused: on another host",
        "host": None,
        "paused": False,
    }


@pytest.mark.parametrize("scope", ["host", "site"])
def test_a_host_that_was_seeded_is_at_home_on_its_own_pages(tmp_path: Path, scope: str) -> None:
    silkline = partial(command_in, tmp_path)
    with Site({"/": '<a href="/a"></a>', "/a": ""}) as site:
        silkline("seed", f"{site.url}/")
        rules = ["--scope", scope, "--deny", "/private"]
        silkline("work", "--follow", "a", *rules, "--allow-private", "--quiet")
        assert silkline("explain", f"{site.url}/a") == "done\n"  # its link was followed
        told, denied, other = (
            silkline("explain", url)
            for url in (f"{site.url}/b", f"{site.url}/private", "https://other.example/")
        )
    assert told.startswith(
        f"never seen: no rule refuses it on pages of its own {scope}: none of them links to it, or only by "
    )
    assert told.endswith(f"; on other pages links to it are refused: on another {scope}\n")
    assert denied == "never seen: links to it are refused: denied by /private\n"
    if scope == "host":
        assert other == "never seen: links to it are refused: on another host\n"
    else:  # which sites are seeded nobody has noted
        assert other.startswith("never seen: no rule refuses it on pages of its own site: ")


def test_a_trap_that_only_its_pages_tell_is_known_to_all_workers(tmp_path: Path) -> None:
    with Site(TrapSite()) as site:  # type: ignore[arg-type]
        crawler = Crawler(
            "job", frontier=f"sqlite:///{tmp_path}/job.db", quiet=True, per_host=64, scope="host"
        )
        crawler.handler(lambda page: page.follow("a"))
        crawler.run(f"{site.url}/")
        told = asyncio.run(explained(tmp_path, f"{site.url}/list?page=999999"))
    assert told == f"never seen: links to it are refused: trap: pages without end at {site.url}/list?"
