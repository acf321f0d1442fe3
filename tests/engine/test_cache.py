"""Crawls with the HTTP cache, against nginx with ETags."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.nginx import Nginx, nginx
from tests.site import Site

from silkline import Crawler, Page, Report
from silkline.errors import ConfigError
from silkline.observe.report import lines

PAGES = 30


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Nginx]:
    root, scratch = tmp_path / "root", tmp_path / "nginx"
    root.mkdir()
    scratch.mkdir()
    for number in range(PAGES):
        links = "".join(f'<a href="/{n}.html">{n}</a>' for n in range(PAGES))
        (root / f"{number}.html").write_text(f"<h1>Page {number}</h1>{links}" + "text " * 200)
    redirect = "location = /old { return 302 /0.html; }"
    with nginx(root, scratch, redirect) as running:
        yield running


def crawl(site: Nginx, folder: Path, start: str = "/0.html", **settings: Any) -> tuple[Report, list[Any]]:
    site.forget()
    run = {name: settings.pop(name) for name in ("fetcher",) if name in settings}
    crawler = Crawler(
        "shop",
        frontier=f"sqlite:///{folder}/shop.db",
        outputs=[str(folder / "shop.jsonl")],
        quiet=True,
        fresh=True,
        **settings,
    )

    @crawler.handler
    def page(page: Page) -> Iterator[Any]:
        yield {"h1": page.text("h1"), "unmodified": page.not_modified, "cached": page.from_cache}
        yield page.follow("a")

    report = crawler.run(site.url + start, **run)
    items = [json.loads(line) for line in (folder / "shop.jsonl").read_text().splitlines()]
    return report, items


@pytest.mark.parametrize("fetcher", ["http", "curl"])
def test_a_second_crawl_transfers_no_page_that_has_not_changed(
    site: Nginx, tmp_path: Path, fetcher: str
) -> None:
    first, items = crawl(site, tmp_path, cache="revalidate", fetcher=fetcher)
    assert (first.pages, first.unmodified, first.cached) == (PAGES, 0, 0)
    assert not any(item["unmodified"] for item in items)
    changed = tmp_path / "root" / "7.html"
    changed.write_text(changed.read_text().replace("Page 7", "Page seven"))

    second, items = crawl(site, tmp_path, cache="revalidate", fetcher=fetcher)
    assert (second.pages, second.unmodified, second.cached) == (PAGES, PAGES - 1, 0)
    assert [item["h1"] for item in items if not item["unmodified"]] == ["Page seven"]
    assert {item["h1"] for item in items if item["unmodified"]} == {
        f"Page {number}" for number in range(PAGES) if number != 7
    }
    assert Counter(sent.status for sent in site.pages()) == {304: PAGES - 1, 200: 1}
    assert [sent.path for sent in site.pages() if sent.size] == ["/7.html"]
    assert "  cache     29 pages came unmodified, 0 without asking" in lines(second)


def test_fresh_pages_are_not_even_asked_for(site: Nginx, tmp_path: Path) -> None:
    crawl(site, tmp_path, cache="on")
    for number in range(PAGES):  # heuristic freshness is a tenth of the age
        os.utime(tmp_path / "root" / f"{number}.html", (1_600_000_000, 1_600_000_000))
    crawl(site, tmp_path, cache="on")
    report, items = crawl(site, tmp_path, cache="on")
    assert (report.pages, report.cached, site.pages()) == (PAGES, PAGES, [])
    assert all(item["cached"] and not item["unmodified"] for item in items)


def test_offline_a_crawl_is_replayed_without_its_site(site: Nginx, tmp_path: Path) -> None:
    online, items = crawl(site, tmp_path, "/old", cache="on")
    replayed, again = crawl(site, tmp_path, "/old", cache="offline")
    assert replayed.pages == online.pages == PAGES, "what /old leads to is not visited again"
    assert {item["h1"] for item in again} == {item["h1"] for item in items}
    assert site.sent() == []


def test_offline_what_was_never_stored_is_a_dead_letter_of_its_own_cause(site: Nginx, tmp_path: Path) -> None:
    report, _ = crawl(site, tmp_path, cache="offline")
    assert (report.pages, report.dead, report.retried) == (0, {"not_cached": 1}, 0)
    assert site.sent() == []


@pytest.mark.parametrize("fresh", [True, False])
def test_offline_a_page_that_robots_txt_refused_is_refused_again(tmp_path: Path, fresh: bool) -> None:
    """And is no failure; one that was not there either way is."""
    rules = "User-agent: *\nDisallow: /private/\nCrawl-delay: 5\n"
    pages = {"/": '<a href="/private/1">1</a>', "/robots.txt": rules}
    urls = ["/", "/private/2"]

    def run(site: Site, *more: str, **settings: Any) -> Report:
        crawler = Crawler("j", frontier=f"sqlite:///{tmp_path}/j.db", quiet=True, **settings)
        crawler.handler(lambda page: page.follow("a"))
        return crawler.run(*(site.url + url for url in (*urls, *more)))

    with Site(pages) as site:
        online = run(site, cache="on")
        assert (online.pages, online.refused, online.dead) == (1, {"robots": 2}, {})
        hits = dict(site.hits)
        offline = run(site, "/new", "/private/3", cache="offline", fresh=fresh)
        assert dict(site.hits) == hits
    assert (offline.refused["robots"], offline.dead) == (3, {"not_cached": 1})
    assert offline.failed == {"not_cached": 1}


def test_without_a_cache_there_is_no_file(site: Nginx, tmp_path: Path) -> None:
    report, _ = crawl(site, tmp_path)
    assert (report.pages, report.unmodified, report.cached) == (PAGES, 0, 0)
    assert not list(tmp_path.glob("*.cache*"))
    assert not any(line.startswith("  cache") for line in lines(report))


def test_processes_share_one_cache(site: Nginx, tmp_path: Path) -> None:
    crawl(site, tmp_path, cache="revalidate", processes=2)
    report, _ = crawl(site, tmp_path, cache="revalidate", processes=2)
    assert (report.pages, report.unmodified) == (PAGES, PAGES)


def test_a_cache_that_cannot_be_used_stops_the_crawl_before_it_begins(site: Nginx, tmp_path: Path) -> None:
    (tmp_path / "shop.cache").write_text("something else " * 100)
    with pytest.raises(ConfigError, match=r"the cache .*shop\.cache cannot be used"):
        crawl(site, tmp_path, cache="on")
    assert site.sent() == []


def test_what_holds_cookies_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Folder and files; what is there already keeps the permissions that it has."""
    old = tmp_path / "old"
    old.mkdir(mode=0o755)
    (old / "j.db").touch(0o644)

    def modes(folder: Path) -> dict[str, int]:
        return {
            path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.glob("j.*")) if path.exists()
        }

    seen: dict[str, int] = {}
    with Site({"/": "x"}) as site:
        for folder in (tmp_path / "new" / "jobs", old):
            crawler = Crawler("j", frontier=f"sqlite:///{folder}/j.db", quiet=True, cache="on")
            crawler.handler(lambda page, folder=folder: seen.update(modes(folder)))
            assert crawler.run(site.url).pages == 1
            if folder is not old:
                files = {name: mode for name, mode in seen.items() if not name.endswith(".workers")}
                assert set(files) >= {"jobs", "j.db", "j.db-wal", "j.cache", "j.cache-wal"}
                assert files.pop("jobs") == 0o700
                assert set(files.values()) == {0o600}
    assert modes(old)["j.db"] == 0o644
    assert modes(old)["old"] == 0o755


def test_a_damaged_cache_says_what_to_delete(tmp_path: Path) -> None:
    cache = tmp_path / "j.cache"
    cache.write_bytes(b"no database" * 100)
    crawler = Crawler("j", frontier=f"sqlite:///{tmp_path}/j.db", quiet=True, cache="on")
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError, match=f"cannot be used: file is not a database; delete {cache}, which"):
        crawler.run("http://127.0.0.1:9/")
