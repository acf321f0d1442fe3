"""The scope of whole crawls: links, redirects, content types, and how the report and the job tell of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.site import Site

from silkline import Crawler, Request
from silkline.config import FrontierOptions
from silkline.engine.discovery import FACT, rules_from
from silkline.engine.refusals import why_never_seen
from silkline.errors import ConfigError
from silkline.frontier import MemoryFrontier
from silkline.frontier.open import frontier_from
from silkline.observe.report import Report, lines
from silkline.politeness.scope import ScopeRules
from silkline.testing import MockFetcher

HOME = "https://shop.example/"


def report_of(tmp_path: Path, pages: dict[str, Any], *seeds: str, **settings: Any) -> Report:
    fetcher = MockFetcher({HOME.rstrip("/") + path: page for path, page in pages.items()})
    crawler = Crawler("job", fetcher=fetcher, frontier=f"sqlite:///{tmp_path}/job.db", quiet=True, **settings)
    crawler.handler(lambda page: page.follow("a"))
    return crawler.run(*(seeds or [HOME]))


LINKS = {
    "/": '<a href="/a/1"></a><a href="/b/1"></a><a href="/b/2"></a><a href="https://other.example/"></a>',
    "/a/1": '<a href="/a/2"></a>',
    "/a/2": "",
    "/b/1": "",
    "/b/2": "",
}


def test_the_report_says_how_many_links_each_rule_refused_with_an_example(tmp_path: Path) -> None:
    report = report_of(tmp_path, LINKS, scope="host", deny=["/b/"], max_depth=1)
    assert report.pages == 2
    assert {reason: (r.count, r.example) for reason, r in report.links_refused.items()} == {
        "denied by /b/": (2, f"{HOME}b/1"),
        "on another host": (1, "https://other.example/"),
        "deeper than max_depth": (1, f"{HOME}a/2"),
    }
    assert "2 links, denied by /b/: https://shop.example/b/1" in "\n".join(lines(report))


def test_requests_that_a_handler_makes_itself_are_held_to_the_scope_and_starts_are_not(
    tmp_path: Path,
) -> None:
    crawler = Crawler("job", fetcher=MockFetcher({HOME: ""}), frontier="memory:", quiet=True, allow=["/p/"])
    crawler.handler(lambda page: Request(f"{HOME}other"))
    report = crawler.run(HOME)
    assert (report.pages, report.links_refused["matched by no allow pattern"].count) == (1, 1)


def test_links_beyond_max_links_are_left_out_and_counted(tmp_path: Path) -> None:
    links = "".join(f'<a href="/{n}"></a>' for n in range(50))
    pages = {"/": links, **{f"/{n}": "" for n in range(50)}}
    report = report_of(tmp_path, pages, max_links=20)
    assert report.pages == 21
    assert report.links_refused["beyond max_links of its page"].count == 30


def test_a_host_has_its_budget_and_the_report_tells(tmp_path: Path) -> None:
    report = report_of(tmp_path, LINKS, max_pages_per_host=3, scope="host")
    assert report.pages == 3
    assert report.links_refused["more than max_pages_per_host"].count >= 1


@pytest.mark.parametrize("engine", ["http", "curl"])
def test_a_redirect_that_leads_out_of_the_scope_is_refused_before_it_is_followed(
    tmp_path: Path, engine: str
) -> None:
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{other.url}/out")

    async def inside(request: web.Request) -> web.Response:
        raise web.HTTPFound("/end")

    pages = {"/": '<a href="/out"></a><a href="/in"></a>', "/out": moved, "/in": inside, "/end": ""}
    with Site({"/out": ""}) as other, Site(pages) as site:
        crawler = Crawler(
            "job", frontier=f"sqlite:///{tmp_path}/job.db", scope="host", quiet=True, fetcher=engine
        )
        crawler.handler(lambda page: page.follow("a"))
        report = crawler.run(f"{site.url}/")
        assert other.hits.total() == 0
        assert (report.pages, report.refused, report.dead) == (2, {"out_of_scope": 1}, {})
        (rule,) = report.refused_by
        assert rule == f"redirected to {other.url}/out, which is on another host"


def test_a_start_may_redirect_to_another_host(tmp_path: Path) -> None:
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{other.url}/")

    with Site({"/": '<a href="/x"></a>', "/x": ""}) as other, Site({"/": moved}) as site:
        crawler = Crawler(
            "job", frontier="memory:", scope="host", quiet=True, allow_private=True, allow=["/x"]
        )
        crawler.handler(lambda page: page.follow("a"))
        assert crawler.run(f"{site.url}/").pages == 2
        assert other.hits.total() == 2


def test_pages_of_other_content_types_are_refused_and_are_no_failures(tmp_path: Path) -> None:
    pages: dict[str, Any] = {
        "/": '<a href="/pdf"></a><a href="/none"></a><a href="/x"></a>',
        "/pdf": (200, {"Content-Type": "application/pdf"}, b"%PDF"),
        "/none": (200, {"Content-Type": ""}, b"?"),
        "/x": (200, {"Content-Type": "Application/XHTML+xml; charset=utf-8"}, "<html/>"),
    }
    report = report_of(tmp_path, pages, content_types=["text/*", "application/xhtml+xml"])
    assert (report.pages, report.refused, report.dead) == (2, {"content_type": 2}, {})
    assert "application/pdf, not text/* or application/xhtml+xml (content_types)" in report.refused_by


def test_the_rules_and_the_starts_are_kept_with_the_job(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/job.db"
    report_of(tmp_path, LINKS, f"{HOME}b/1", scope="host")
    report_of(tmp_path, LINKS, "https://other.example:8443/", scope="host", deny=["x"])

    async def kept() -> str:
        frontier = frontier_from(url, FrontierOptions(job="job"))
        await frontier.open()
        try:
            return (await frontier.recall())[FACT]
        finally:
            await frontier.close()

    rules = rules_from(asyncio.run(kept()))
    assert (rules.sites, rules.deny) == (("shop.example", "other.example:8443"), ("x",))


def test_a_rule_that_cannot_be_is_refused_before_anything_starts(tmp_path: Path) -> None:
    crawler = Crawler("job", frontier=f"sqlite:///{tmp_path}/job.db", deny=["("], quiet=True)
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError, match=r"^deny '\(' is no regular expression"):
        crawler.run(HOME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("HTTPS://other.example", "links to it are refused: on another host"),
        (f"{HOME}p/1?x#y", "links to it are refused: denied by [?]x"),
        (f"{HOME}a.JPG", "links to it are refused: not below /p/"),
        (f"{HOME}p/a.JPG", "links to it are refused: a .jpg file"),
        (
            f"{HOME}p/1",
            "no rule refuses it: no page links to it, or only by links that are nofollow or deeper than "
            "max_depth = 3 or on pages of a trap",
        ),
    ],
)
async def test_a_job_explains_why_it_never_met_a_url(url: str, why: str) -> None:
    rules = ScopeRules(
        kind="host",
        sites=("shop.example",),
        deny=("[?]x",),
        paths=("/p/",),
        skip_extensions=("media",),
        max_depth=3,
    )
    facts = {FACT: msgspec.json.encode(rules).decode()}
    frontier = MemoryFrontier(FrontierOptions())
    await frontier.open()
    assert await why_never_seen(frontier, facts, url) == why
    assert await why_never_seen(frontier, {}, url) == ""


@pytest.mark.parametrize("rule", ["--deny=/b/", "--path=/a/", "--scope=host", "--max-pages-per-host=1"])
def test_the_command_explains_what_each_rule_has_kept_out(tmp_path: Path, rule: str) -> None:
    def silkline(*words: str) -> str:
        command = [sys.executable, "-m", "silkline", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with Site({"/": '<a href="/b/1"></a><a href="//localhost:1/b/1"></a>', "/b/1": ""}) as site:
        silkline("crawl", f"{site.url}/", "--follow", "a", rule, "--job", "j", "--retries", "0", "--quiet")
        url = "http://localhost:1/b/1" if rule == "--scope=host" else f"{site.url}/b/1"
        told = silkline("explain", url, "--job", "j")
    if "per-host" in rule:
        assert "has its 1 pages already (max_pages_per_host)" in told
    else:
        assert told.startswith("never seen: links to it are refused: ")
