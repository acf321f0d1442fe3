"""Pages with several URLs: what redirects and rel=canonical lead to is recorded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from silkline import Crawler, Page, Request
from silkline.observe.report import lines
from silkline.testing import MockFetcher, page_from

HOME = "https://shop.example/"


def moved(target: str) -> tuple[int, dict[str, str], str]:
    return 301, {"Location": target}, ""


def crawl(tmp_path: Path, pages: dict[str, Any], *seeds: Any, **settings: Any) -> tuple[list[Any], Any]:
    """The items, and the report."""
    out = tmp_path / "out.jsonl"
    crawler = Crawler(
        "job",
        fetcher=MockFetcher({HOME.rstrip("/") + path: page for path, page in pages.items()}),
        frontier=f"sqlite:///{tmp_path}/job.db",
        outputs=[str(out)],
        quiet=True,
        **{"concurrency": 1, **settings},
    )

    @crawler.handler
    def page(page: Page) -> Any:
        yield {"title": page.title}
        yield page.follow("a")

    report = crawler.run(*(seeds or [HOME]))
    return sorted(json.loads(line)["title"] for line in out.read_text().splitlines()), report


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize(
    "home",
    [
        '<title>Home</title><a href="/old"></a><a href="/older"></a><a href="/new"></a>',
        '<title>Home</title><a href="/new"></a><a href="/old"></a><a href="/older"></a>',
    ],
)
def test_a_page_and_what_redirects_to_it_give_one_item(tmp_path: Path, home: str, concurrency: int) -> None:
    pages = {"/": home, "/old": moved("/new"), "/older": moved("/old"), "/new": "<title>New</title>"}
    items, report = crawl(tmp_path, pages, concurrency=concurrency)
    assert items == ["Home", "New"]
    assert (report.items, report.duplicates, report.stats.done) == (2, 2, 4)
    assert "2 pages are others' by redirect" in "\n".join(lines(report))


def test_the_target_of_a_redirect_is_not_visited_again(tmp_path: Path) -> None:
    pages = {"/": moved("/home"), "/home": '<title>Home</title><a href="/home#x"></a><a href="/"></a>'}
    items, report = crawl(tmp_path, pages)
    assert (items, report.requests, report.stats.done) == (["Home"], 1, 1)


def test_the_links_of_a_duplicate_are_followed(tmp_path: Path) -> None:
    """It may be another page after all, such as the login page of another member."""
    seen: list[str] = []

    def login(request: Request) -> str:
        seen.append(request.url)
        return f'<title>Log in</title><a href="/help/{len(seen)}"></a>'

    pages = {
        "/": '<title>Home</title><a href="/a"></a><a href="/b"></a>',
        "/a": moved("/login"),
        "/b": moved("/login"),
        "/login": login,
        "/help/1": "<title>1</title>",
        "/help/2": "<title>2</title>",
    }
    items, report = crawl(tmp_path, pages)
    assert items == ["1", "2", "Home", "Log in"]
    assert report.duplicates == 1


def test_requests_with_an_identity_of_their_own_are_no_duplicates(tmp_path: Path) -> None:
    pages = {"/": "<title>Home</title>", "/old": moved("/")}
    seeds = [HOME, Request(f"{HOME}old", key="today"), Request.post(f"{HOME}old", form={"a": "1"})]
    items, report = crawl(tmp_path, pages, *seeds)
    assert (items, report.duplicates) == (["Home"] * 3, 0)


VARIANTS = {
    "/": '<title>Home</title><a href="/shirt?color=red"></a><a href="/shirt?color=blue"></a>',
    "/shirt?color=red": '<title>Red</title><link rel="canonical" href="/shirt">',
    "/shirt?color=blue": '<title>Blue</title><link rel="canonical" href="/shirt">',
}


def test_rel_canonical_makes_duplicates_only_where_it_is_asked_for(tmp_path: Path) -> None:
    assert crawl(tmp_path, VARIANTS)[0] == ["Blue", "Home", "Red"]
    items, report = crawl(tmp_path, VARIANTS, fresh=True, canonical=True)
    assert (items, report.duplicates) == (["Home", "Red"], 1)


def test_a_canonical_address_on_another_site_counts_for_nothing(tmp_path: Path) -> None:
    named = '<title>{}</title><link rel="canonical" href="https://{}/">'
    pages = {
        "/": '<title>Home</title><a href="/1"></a><a href="/2"></a><a href="/3"></a><a href="/4"></a>',
        "/1": named.format(1, "other.example"),
        "/2": named.format(2, "other.example"),
        "/3": named.format(3, "www.shop.example"),
        "/4": named.format(4, "www.shop.example"),
    }
    assert crawl(tmp_path, pages, canonical=True)[0] == ["1", "2", "3", "Home"]


@pytest.mark.parametrize(
    ("html", "url"),
    [
        ('<link rel="canonical" href="/a?b=1">', "https://shop.example/a?b=1"),
        ("<link href=x REL='nofollow CANONICAL'>", "https://shop.example/dir/x"),
        ('<base href="/b/"><link rel=canonical href="x">', "https://shop.example/b/x"),
        ('<link rel="canonical" href="javascript:0">', None),
        ('<link rel="alternate" href="/canonical">', None),
        ('<template><link rel="canonical" href="/x"></template>', None),
        ("<p>canonical</p>", None),
    ],
)
def test_the_canonical_url_is_the_one_of_the_document(html: str, url: str | None) -> None:
    assert page_from(html, url="https://shop.example/dir/page").canonical_url == url


def test_what_is_no_html_has_no_canonical_url() -> None:
    page = page_from('{"a": "<link rel=canonical href=/x>"}', content_type="application/json")
    assert page.canonical_url is None
