"""A run knows what the items of earlier runs held: started over, with several processes, on a server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests import servers
from tests.site import Site

from silkline import Crawler, Page
from silkline.observe.report import Report

PAGES = 30
WARNING = "field 'price': filled in 0 % of items, 100 % in earlier runs: has the page changed?"


def site(price: str) -> Site:
    return Site({f"/{n}": f"<h1>Chair {n}</h1><b class='{price}'>9</b>" for n in range(PAGES)})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def crawl(site: Site, **settings: Any) -> Report:
    crawler = Crawler("shop", outputs=["shop.jsonl"], quiet=True, robots=False)

    @crawler.handler
    def page(page: Page) -> dict[str, Any]:
        return {"name": page.text("h1"), "price": page.text(".price")}

    return crawler.run(*(f"{site.url}/{n}" for n in range(PAGES)), **settings)


def test_the_report_says_how_often_each_field_is_filled_and_with_what() -> None:
    with site("price") as shop:
        name, price = crawl(shop).fields
    assert (name.full_name, name.types, name.filled, name.rate) == ("name", ("text",), PAGES, 1.0)
    assert name.earlier is None
    assert price.rate == 1.0


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_that_starts_over_still_knows_its_earlier_runs(processes: int) -> None:
    with site("price") as shop:
        assert crawl(shop).troubles == ()
    with site("cost") as changed:
        report = crawl(changed, fresh=True, processes=processes)
        assert report.troubles == (WARNING,)
        assert [(field.rate, field.earlier) for field in report.fields] == [(1.0, 1.0), (0.0, 1.0)]
        again = crawl(changed, fresh=True)
    # Of several processes the first one's pages are remembered: half of them where it had a full share.
    [warning] = again.troubles
    [share] = re.findall(r"items, (\S+) % in earlier runs", warning)
    assert warning == WARNING.replace("100 %", f"{share} %")
    assert float(share) == 50.0 if processes == 1 else 50.0 <= float(share) < 100.0


def test_a_job_that_finds_nothing_any_more_says_so() -> None:
    with site("price") as shop:
        crawl(shop)
        crawler = Crawler("shop", outputs=["shop.jsonl"], quiet=True, robots=False)
        crawler.handler(lambda page: None)
        report = crawler.run(*(f"{shop.url}/{n}" for n in range(PAGES)), fresh=True)
    assert report.troubles == (f"no items from {PAGES} pages, some in earlier runs: has the site changed?",)
    assert report.fields == ()


def test_a_finished_job_that_is_run_again_has_nothing_to_compare() -> None:
    with site("price") as shop:
        crawl(shop)
        report = crawl(shop)
    assert (report.reason, report.troubles, report.fields) == ("already finished", (), ())


def test_a_job_on_a_server_that_starts_over_knows_them_too() -> None:
    store = {"frontier": servers.valkey_url(), "job": "earlier-runs"}
    with site("price") as shop:
        crawl(shop, **store)
    with site("cost") as changed:
        assert WARNING in crawl(changed, **store, fresh=True).troubles


def test_items_of_a_page_that_fails_are_not_counted() -> None:
    with site("price") as shop:
        crawler = Crawler("shop", outputs=["shop.jsonl"], quiet=True, robots=False, frontier="memory:")
        crawler.handler(lambda page: [{"a": 1}, 1 / 0])
        assert crawler.run(f"{shop.url}/1").fields == ()
