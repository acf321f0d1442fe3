"""Hosts that the user names may be anywhere; what pages and files name may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.site import Site

from silkline import Crawler, Page, Request, seed
from silkline.config import FrontierOptions
from silkline.engine.named import MAX_NAMED, NamedHosts, hosts_of
from silkline.errors import BlockedError
from silkline.fetch.guard import AddressGuard
from silkline.frontier import SqliteFrontier
from silkline.observe.report import Report
from silkline.response import Response


@pytest.fixture(params=["memory:", "sqlite"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/job.db"


def crawl(frontier: str, *seeds: object, **settings: object) -> Report:
    crawler = Crawler("named", frontier=frontier, quiet=True, **settings)

    @crawler.handler
    def page(page: Page) -> object:
        return page.follow("a")

    return crawler.run(*seeds)  # type: ignore[arg-type]


def test_a_seed_may_be_local_and_its_links_to_other_local_hosts_are_dead_at_once(frontier: str) -> None:
    with Site({"/": '<a href="/in">x</a>', "/in": "in"}) as site:
        elsewhere = site.url.replace("127.0.0.1", "localhost")
        site.pages["/"] = f'<a href="/in">x</a><a href="{elsewhere}/out">x</a>'
        report = crawl(frontier, site.url)
        assert (report.pages, report.dead, report.retried) == (2, {"blocked": 1}, 0)
        assert site.hits["/out"] == 0


def test_a_list_in_the_call_names_its_hosts(frontier: str) -> None:
    with Site({"/": "x"}) as site:
        assert crawl(frontier, [site.url, Request(f"{site.url}/?2")]).dead == {"http_404": 1}


def test_a_file_an_iterator_and_a_task_name_nothing_unless_private_addresses_are_allowed(
    tmp_path: Path,
) -> None:
    with Site({"/": "x"}) as site:
        (tmp_path / "urls.txt").write_text(site.url)
        assert crawl("memory:", tmp_path / "urls.txt").dead == {"blocked": 1}
        assert crawl("memory:", iter([site.url])).dead == {"blocked": 1}
        assert crawl("memory:", tmp_path / "urls.txt", allow_private=True).pages == 1


def test_a_resume_without_seeds_knows_the_names(tmp_path: Path) -> None:
    with Site({"/": '<a href="/2">x</a>', "/2": "x"}) as site:
        store = f"sqlite:///{tmp_path}/job.db"
        assert crawl(store, site.url, max_pages=1).pages == 1
        report = crawl(store)
        assert (report.dead, site.hits["/2"]) == ({}, 1)


def test_a_producer_names_hosts_for_the_workers_and_a_file_of_it_does_not(tmp_path: Path) -> None:
    with Site({"/": "x", "/2": "x"}) as site:
        (tmp_path / "urls.txt").write_text(f"{site.url}/2")
        by_file, by_hand = (f"sqlite:///{tmp_path}/{name}.db" for name in ("file", "hand"))
        seed(by_file, tmp_path / "urls.txt", job="named")
        assert crawl(by_file).dead == {"blocked": 1}
        seed(by_hand, site.url, job="named")
        seed(by_hand, tmp_path / "urls.txt", job="named")
        assert (crawl(by_hand).pages, site.hits["/2"]) == (2, 1)


async def test_a_worker_hears_of_hosts_that_are_named_while_it_runs(tmp_path: Path) -> None:
    options = FrontierOptions(job="shared")
    theirs, mine = (SqliteFrontier(tmp_path / "job.db", options) for _ in range(2))
    await theirs.open()
    await mine.open()
    named = NamedHosts(mine)
    guard = AddressGuard(named)
    request = Request("http://inside.test/")

    async def hop(request: Request) -> Response:
        guard("inside.test", "10.0.0.1", 80)
        return Response(request.url, 200, (), b"", request)

    try:
        with pytest.raises(BlockedError):
            await named.hop(request, hop)
        await NamedHosts(theirs).name({"other.test", "inside.test"})
        assert (await named.hop(request, hop)).status == 200
        assert set(named) == {"other.test", "inside.test"}
    finally:
        await mine.close()
        await theirs.close()


def test_the_hosts_of_urls() -> None:
    urls = ["http://A.test/1", "http://a.test/2", "HTTPS://[::1]:8/x", " http://2130706433", "no url", ""]
    assert hosts_of(urls) == {"a.test", "::1", "127.0.0.1"}
    assert len(hosts_of(f"http://h{n}.test/" for n in range(MAX_NAMED + 10))) == MAX_NAMED
