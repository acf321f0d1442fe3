"""Sitemaps as seeds, from a real server: found, fetched, followed, bounded."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.site import Site

from silkline import Crawler, Sitemaps
from silkline.config import Settings
from silkline.engine import sitemaps as module
from silkline.errors import ConfigError, SourceError
from silkline.request import Request
from silkline.seeds import Seeds, SeedSource

DATA = Path(__file__).parent.parent / "data" / "conformance" / "sitemaps"


def entries(name: str, urls: Sequence[str], lastmod: str = "") -> str:
    changed = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return "".join(f"<{name}><loc>{url}</loc>{changed}</{name}>" for url in urls)


def urlset(*urls: str, lastmod: str = "") -> str:
    return f"<urlset>{entries('url', urls, lastmod)}</urlset>"


def index(*urls: str) -> str:
    return f"<sitemapindex>{entries('sitemap', urls)}</sitemapindex>"


def answer(body: bytes, content_type: str, **headers: str) -> Any:
    async def send(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Type": content_type, **headers})

    return send


def listed(source: SeedSource) -> list[str]:
    return [request.url for batch in source for request in batch]


def test_a_list_of_sitemaps_is_followed_each_file_once() -> None:
    with Site({}) as site:
        site.pages |= {
            "/index.xml": index("/index.xml", "/a.xml", "/deeper.xml", "/missing.xml", "/a.xml"),
            "/deeper.xml": index("/b.xml", "/index.xml"),
            "/a.xml": urlset(f"{site.url}/1", f"{site.url}/2#top", "mailto:x@y.z"),
            "/b.xml": urlset(f"{site.url}/3", "https://other.example/4"),
        }
        source = Sitemaps(f"{site.url}/index.xml", settings=Settings(retries=0))
        assert listed(source) == [f"{site.url}/{n}" for n in (1, 2)] + [
            f"{site.url}/3",
            "https://other.example/4",
        ]
        assert set(site.hits.values()) == {1}
        assert source.invalid == 2
        assert source.reasons == (
            f"{site.url}/a.xml: 'mailto:x@y.z' is not an http or https URL",
            f"{site.url}/missing.xml: HTTP status 404",
        )


def test_lists_of_lists_end_somewhere() -> None:
    with Site({f"/{n}.xml": index(f"/{n + 1}.xml") for n in range(50)}) as site:
        source = Sitemaps(f"{site.url}/0.xml")
        assert listed(source) == []
        assert len(site.hits) == module.MAX_DEPTH + 1
        told = "lists no page: it is a list of sitemaps, and none of its 6 files has one"
        assert source.reasons == (f"{site.url}/0.xml: {told}",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (index("/s.xml"), "it is a list of sitemaps that names no other than itself"),
        (urlset(), "it is empty"),
    ],
)
def test_a_sitemap_without_a_page_is_told_as_such(tmp_path: Path, content: str, why: str) -> None:
    with Site({"/s.xml": content}) as site:
        url = f"{site.url}/s.xml"
        crawler = Crawler(frontier=f"sqlite:///{tmp_path}/job.db", quiet=True)
        crawler.handler(lambda page: None)
        with pytest.raises(ConfigError, match=f"has nothing to crawl: {url}: lists no page: {why}$"):
            crawler.run(Sitemaps(url))


def test_a_sitemap_with_nothing_newer_is_no_fault_of_it() -> None:
    with Site({"/s.xml": urlset("/a", lastmod="2020-01-01")}) as site:
        source = Sitemaps(f"{site.url}/s.xml", since="2024-01-01")
        assert (listed(source), source.invalid) == ([], 0)


@pytest.mark.parametrize("start", ["", "/", "/robots.txt"])
def test_a_sites_home_page_stands_for_the_sitemaps_of_its_robots_txt(start: str) -> None:
    with Site({"/s.xml": urlset("/1"), "/t.xml": urlset("/2"), "/sitemap.xml": urlset("/no")}) as site:
        site.pages["/robots.txt"] = (
            f"Sitemap: /s.xml\nUser-agent: *\nDisallow: /\nSitemap: {site.url}/t.xml\n"
        )
        assert listed(Sitemaps(site.url + start)) == [f"{site.url}/1", f"{site.url}/2"]


def test_without_any_named_there_it_is_at_its_usual_place() -> None:
    with Site({"/sitemap.xml": urlset("/1")}) as site:
        assert listed(Sitemaps(f"{site.url}/")) == [f"{site.url}/1"]


def test_since_leaves_out_what_is_older_and_does_not_fetch_older_lists() -> None:
    old, new = entries("sitemap", ["/old.xml"], "2025-12-31"), entries("sitemap", ["/new.xml"], "2026-02-01")
    rows = entries("url", ["/1"], "2026-01-31"), entries("url", ["/2"], "2026-01-30"), entries("url", ["/3"])
    pages = {
        "/index.xml": f"<sitemapindex>{old}{new}</sitemapindex>",
        "/old.xml": urlset("/0"),
        "/new.xml": f"<urlset>{''.join(rows)}</urlset>",
    }
    with Site(dict(pages)) as site:
        found = listed(Sitemaps(f"{site.url}/index.xml", since="2026-01-31"))
        assert found == [f"{site.url}/1", f"{site.url}/3"]
        assert "/old.xml" not in site.hits


@pytest.mark.parametrize(
    ("url", "since", "message"),
    [
        ("shop.example", None, "sitemap: 'shop.example' has no scheme"),
        ("https://shop.example/", "last week", "since: 'last week' is no date; write 2026-01-31"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(url: str, since: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sitemaps(url, since=since)


def test_what_is_no_sitemap_and_what_is_not_there_are_told_apart() -> None:
    with Site({"/page": "<html><p>hello</p></html>"}) as site:
        with pytest.raises(ConfigError, match=f"{site.url}/page is no sitemap"):
            listed(Sitemaps(f"{site.url}/page"))
        with pytest.raises(
            SourceError, match=f"the sitemap {site.url}/none.xml cannot be read: HTTP status 404"
        ):
            listed(Sitemaps(f"{site.url}/none.xml"))


def test_one_that_cannot_be_read_does_not_keep_the_others_from_it() -> None:
    with Site({"/page": "<html><p>hello</p></html>", "/s.xml": urlset("/1")}) as site:
        source = Sitemaps(f"{site.url}/none.xml", f"{site.url}/page", f"{site.url}/s.xml")
        assert listed(source) == [f"{site.url}/1"]
        assert source.invalid == 2
        assert source.reasons == (f"{site.url}/none.xml: HTTP status 404", f"{site.url}/page: no sitemap")


def test_beside_other_seeds_one_that_cannot_be_read_is_an_invalid_seed() -> None:
    with Site({"/": "x"}) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True)
        crawler.handler(lambda page: None)
        report = crawler.run(site.url, Sitemaps(f"{site.url}/none.xml"))
        assert (report.pages, report.seeded.invalid) == (1, 1)
        assert report.seeded.reasons == (f"{site.url}/none.xml: HTTP status 404",)


def test_a_server_that_stumbles_is_asked_again() -> None:
    asked = 0

    async def busy(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked == 1:
            return web.Response(status=503, headers={"Retry-After": "0"})
        return web.Response(text=urlset("/1"))

    with Site({"/s.xml": busy}) as site:
        assert listed(Sitemaps(f"{site.url}/s.xml")) == [f"{site.url}/1"]


def test_the_files_of_the_conformance_data_come_over_the_wire() -> None:
    cases = [case for case in json.loads((DATA / "index.json").read_text()) if "count" not in case]
    with Site({}) as site:
        for case in cases:
            body = (DATA / case["file"]).read_bytes()
            site.pages[f"/{case['file']}"] = answer(body, case["content_type"])
        for case in cases:
            sitemap = Sitemaps(f"{site.url}/{case['file']}", settings=Settings(retries=0))
            expected = case.get("urls")
            try:
                found = listed(sitemap)
            except ConfigError:
                assert expected == [], case["file"]
                continue
            if expected and not case.get("contains"):
                right = {len(set(expected)), len(expected), len(case.get("also_ok") or ())}
                assert len(found) in right, case["file"]


def test_gzip_in_gzip_and_content_codings_are_unpacked() -> None:
    body = gzip.compress(urlset("/1").encode())
    with Site({}) as site:
        site.pages |= {
            "/a.xml.gz": answer(body, "application/gzip"),
            "/b.xml": answer(body, "application/xml", **{"Content-Encoding": "gzip"}),
            "/c.xml.gz": answer(gzip.compress(body), "application/gzip"),
        }
        for path in ("/a.xml.gz", "/b.xml", "/c.xml.gz"):
            assert listed(Sitemaps(site.url + path)) == [f"{site.url}/1"]


def test_a_bomb_costs_no_memory_and_ends_at_50_mib() -> None:
    pages = urlset("/1", "/2").encode()
    tail = b" " * (60 << 20) + b"<url><loc>/3</loc></url></urlset>"
    bomb = gzip.compress(pages.replace(b"</urlset>", tail))
    with Site({}) as site:
        site.pages["/s.xml.gz"] = answer(bomb, "application/gzip")
        source = Sitemaps(f"{site.url}/s.xml.gz")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert listed(source) == [f"{site.url}/1", f"{site.url}/2"]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
        assert source.reasons == (f"{site.url}/s.xml.gz: more than 50 MiB unpacked: the rest is not read",)


def test_a_file_that_is_cut_gives_what_it_has() -> None:
    body = gzip.compress(urlset(*(f"/{n}-{os.urandom(8).hex()}" for n in range(2_000))).encode())
    with Site({}) as site:
        site.pages["/s.xml.gz"] = answer(body[: len(body) // 2], "application/gzip")
        source = Sitemaps(f"{site.url}/s.xml.gz")
        assert 100 < len(listed(source)) < 2_000
        assert source.reasons == (f"{site.url}/s.xml.gz: the gzip data ends early",)


def test_the_address_guard_holds_for_what_a_sitemap_names() -> None:
    with Site({"/s.xml": urlset("/1")}) as other, Site({}) as site:
        far = other.url.replace("127.0.0.1", "localhost")
        site.pages["/index.xml"] = index(f"{far}/s.xml", "/own.xml")
        site.pages["/own.xml"] = urlset("/2")
        source = Sitemaps(f"{site.url}/index.xml", settings=Settings(retries=0))
        assert listed(source) == [f"{site.url}/2"]
        assert not other.hits
        assert "localhost" in source.reasons[0]


def test_a_crawl_starts_at_a_sitemap_and_fetches_as_the_crawl_does(tmp_path: Path) -> None:
    agents = set()

    async def sitemap(request: web.Request) -> web.Response:
        agents.add(request.headers["User-Agent"])
        return web.Response(text=urlset("/1", "/2"), content_type="application/xml")

    with Site({"/s.xml": sitemap, "/1": "one", "/2": "two"}) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True, user_agent="shop-watch/1.0")
        crawler.handler(lambda page: {"url": page.url})
        report = crawler.run(Sitemaps(f"{site.url}/s.xml"))
    assert (report.pages, report.seeded.added) == (2, 2)
    assert agents == {"shop-watch/1.0"}


def test_labels_and_seeds_go_together_with_others() -> None:
    with Site({"/s.xml": urlset("/1")}) as site:
        seeds = Seeds(f"{site.url}/", Sitemaps(f"{site.url}/s.xml"))
        assert list(seeds.given) == [f"{site.url}/", f"{site.url}/s.xml"]
        assert list(seeds) == [[Request(f"{site.url}/")], [Request(f"{site.url}/1")]]


MEASURE = """
import resource, sys
from silkline import Sitemaps
count = 0
for batch in Sitemaps(sys.argv[1]):
    count += len(batch)
    if count == 100_000:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def read_files(files: int) -> tuple[int, int]:
    """How many URLs, and by how many KiB the memory grew after the first 100,000."""
    body = gzip.compress(urlset(*(f"/p/{n}" for n in range(50_000)), lastmod="2026-01-31").encode(), 1)
    with Site({}) as site:
        site.pages["/index.xml"] = index(*(f"/{n}.xml.gz" for n in range(files)))
        site.pages |= {f"/{n}.xml.gz": answer(body, "application/gzip") for n in range(files)}
        command = [sys.executable, "-c", MEASURE, f"{site.url}/index.xml"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3_000, check=True)
    count, grown = done.stdout.split()
    return int(count), int(grown)


def test_memory_does_not_grow_with_the_number_of_files() -> None:
    count, grown = read_files(6)
    assert count == 300_000
    assert grown < 10_000


@pytest.mark.soak
def test_memory_does_not_grow_over_fifty_million_urls() -> None:
    count, grown = read_files(1_000)
    assert count == 50_000_000
    assert grown < 20_000
