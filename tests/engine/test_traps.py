"""Crawls of a site full of traps, to its end and with every real page, and of one that only looks like it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.politeness.trap_site import Made, RealSite, TrapSite
from tests.site import Site

from silkline import Crawler
from silkline.observe.report import Report, lines


def crawl(pages: Made, tmp_path: Path, **settings: object) -> tuple[Report, set[str]]:
    """The report, and the paths that were visited, without parameters of tracking and sessions."""
    with Site(pages) as site:  # type: ignore[arg-type]
        crawler = Crawler(
            "job",
            frontier=f"sqlite:///{tmp_path}/job.db",
            quiet=True,
            scope="host",
            per_host=32,
            robots=False,
            **settings,
        )
        crawler.handler(lambda page: page.follow("a"))
        report = crawler.run(f"{site.url}/")
        assert site.hits.total() == report.requests
        return report, {
            re.sub(r"[?&;](utm_source|gclid|sid|jsessionid)=[^&]*", "", path) for path in site.hits
        }


def test_a_site_with_a_dozen_kinds_of_traps_is_crawled_to_its_end_with_every_real_page(
    tmp_path: Path,
) -> None:
    pages = TrapSite()
    report, visited = crawl(pages, tmp_path)
    assert report.reason == "finished"
    assert pages.real - visited == set()
    assert pages.real_behind - {re.sub(r"^/s/\w+", "", path) for path in visited} == set()
    assert report.requests < 6_000
    told = "\n".join(lines(report))
    for trap in (
        r"the path goes in circles at http://\S+/loop/a/b/",
        r"the query says on=1 again and again at http://\S+/grow\?",
        r"a path of more than 40 segments at http://\S+/deep/0/",
        *(
            rf"pages without end at http://\S+{at}"
            for at in ("/calendar/0/", r"/s/\*/page/", r"/list\?", "/wiki/")
        ),
    ):
        assert re.search("trap: " + trap, told), f"{trap}\n{told}"


def test_a_pattern_has_its_budget_and_the_report_tells(tmp_path: Path) -> None:
    report, visited = crawl(TrapSite(), tmp_path, max_pages_per_pattern=50, traps=False, max_pages=600)
    patterns = Counter(re.sub(r"\?.*", "?", path) for path in visited)
    assert patterns["/find?"] <= 50
    assert any(re.match(r"more than max_pages_per_pattern of .*/find\?", why) for why in report.links_refused)


def test_a_site_that_only_looks_like_it_is_crawled_completely(tmp_path: Path) -> None:
    pages = RealSite()
    report, visited = crawl(pages, tmp_path)
    assert pages.real - visited == set()
    assert (report.links_refused, report.troubles) == ({}, ())


def test_without_traps_nothing_is_refused(tmp_path: Path) -> None:
    report, _ = crawl(TrapSite(), tmp_path, traps=False, max_pages=300)
    assert not [reason for reason in report.links_refused if reason.startswith("trap")]


def test_near_duplicates_are_reported_and_kept(tmp_path: Path) -> None:
    report, _ = crawl(TrapSite(), tmp_path, near_duplicates=True, max_pages=400)
    assert any(
        re.search(r"more pages are nearly identical to http://.*/wiki/", line) for line in report.troubles
    )
