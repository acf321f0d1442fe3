"""The demo shop: its declared truth is what a crawl finds, and its nuisances behave like real ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
import turbohtml

from silkline.demo import DemoServer, Shop
from silkline.demo.answers import HANGING_PATH
from silkline.demo.shop import LIMITED_PER_SECOND
from silkline.errors import ConfigError
from silkline.url import resolve

FAILURES_WORTH_A_RETRY = {429, 500, 502, 503}


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def server() -> AsyncIterator[DemoServer]:
    async with DemoServer(Shop(slowness=0.02)) as running:
        yield running


async def visit(client: aiohttp.ClientSession, url: str) -> tuple[str, turbohtml.Document | None]:
    """Fetch with 3 retries. Returns "done" or the cause of failure, and the page."""
    status = 0
    for _ in range(4):
        try:
            async with client.get(url) as response:
                if response.status == 200:
                    return "done", turbohtml.parse(await response.text())
                status = response.status
                if status not in FAILURES_WORTH_A_RETRY:
                    break
                await asyncio.sleep(float(response.headers.get("Retry-After", 0)))
        except aiohttp.TooManyRedirects:
            return "too_many_redirects", None
    return f"http_{status}", None


async def crawl(
    client: aiohttp.ClientSession, home: str
) -> tuple[dict[str, str], dict[str, turbohtml.Document]]:
    """Follow every link of the same host: what became of each URL, and the pages that ended well."""
    results: dict[str, str] = {}
    pages: dict[str, turbohtml.Document] = {}
    wave = {home}
    while wave:
        found: set[str] = set()
        for url, (result, page) in zip(
            wave, await asyncio.gather(*(visit(client, url) for url in wave)), strict=True
        ):
            results[url] = result
            if page is not None:
                pages[url] = page
                targets = (resolve(url, anchor.attrs["href"]) for anchor in page.select("a[href]"))
                found |= {target for target in targets if target and target.startswith(home)}
        wave = found - results.keys()
    return results, pages


async def test_following_every_link_finds_the_declared_truth(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    truth = server.shop.expected(server.url)
    results, pages = await crawl(client, truth.home)
    assert {url for url, result in results.items() if result == "done"} == truth.done
    assert {url: result for url, result in results.items() if result != "done"} == truth.dead
    assert len(truth.products) == 144
    for url, product in truth.products.items():
        page = pages[url]
        assert page.select_one("h1").text == product.name
        assert page.select_one(".price").text == product.price
        assert page.select_one(".availability").text == product.availability
        assert page.select_one(".sku span").text == product.sku
        assert page.select_one(".description").text == product.description


async def test_the_pagination_shows_every_product_once(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    truth = server.shop.expected(server.url)
    url: str | None = truth.home
    cards = []
    while url:
        result, page = await visit(client, url)
        assert result == "done"
        cards += [
            (
                resolve(url, c.select_one("a").attrs["href"]),
                c.select_one("h2").text,
                c.select_one(".price").text,
            )
            for c in page.select("div.product")
        ]
        following = page.select_one("a.next")
        url = resolve(url, following.attrs["href"]) if following else None
    assert sorted(cards) == sorted((url, p.name, p.price) for url, p in truth.products.items())


async def test_redirects_end_where_the_truth_says(server: DemoServer, client: aiohttp.ClientSession) -> None:
    truth = server.shop.expected(server.url)
    assert len(truth.redirects) == 4
    assert truth.redirects.keys() <= truth.done
    for url, destination in truth.redirects.items():
        async with client.get(url) as response:
            assert str(response.url) == destination
    async with client.get(f"{server.url}/sale") as response:
        assert [step.status for step in response.history] == [301, 301, 301]


async def test_a_failing_page_works_after_its_failures_and_then_fails_again(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    statuses = []
    for _ in range(6):
        async with client.get(f"{server.url}/reviews/march") as response:
            statuses.append(response.status)
    assert statuses == [500, 503, 200] * 2


async def test_too_many_limited_requests_get_429_until_the_second_is_over(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    async def status(number: int) -> tuple[int, str | None]:
        async with client.get(f"{server.url}/limited/no-{number}") as response:
            return response.status, response.headers.get("Retry-After")

    began = time.monotonic()
    answers = [await status(number) for number in range(1, LIMITED_PER_SECOND + 1)]
    assert answers == [(200, None)] * LIMITED_PER_SECOND
    refused = await status(LIMITED_PER_SECOND + 1)
    if time.monotonic() - began < 1.0:  # else the machine was too slow to break the limit
        assert refused == (429, "1")
        await asyncio.sleep(1)
        assert await status(LIMITED_PER_SECOND + 1) == (200, None)


async def test_slow_pages_take_their_time_and_latency_is_added(client: aiohttp.ClientSession) -> None:
    async with DemoServer(Shop(latency=0.1, slowness=0.2)) as server:
        for path, least in (("/", 0.1), ("/stores/keswick", 0.5)):
            began = time.monotonic()
            async with client.get(server.url + path) as response:
                assert response.status == 200
            assert time.monotonic() - began >= least


async def test_the_hanging_page_does_not_answer(server: DemoServer, client: aiohttp.ClientSession) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await client.get(server.url + HANGING_PATH, timeout=aiohttp.ClientTimeout(total=0.3))


async def test_bodies_come_in_the_declared_forms(server: DemoServer, client: aiohttp.ClientSession) -> None:
    async with client.get(f"{server.url}/about/history") as response:
        assert response.charset == "iso-8859-1"
        assert "Zoë and Søren Ångström" in (await response.read()).decode("latin-1")
    for accepted, encoding in (("gzip", "gzip"), ("identity", None)):
        headers = {"Accept-Encoding": accepted}
        async with client.get(f"{server.url}/guides/care", headers=headers) as response:
            assert response.headers.get("Content-Encoding") == encoding
            assert "washing machine" in await response.text()
    async with client.get(f"{server.url}/delivery/zones") as response:
        assert 1_048_576 <= len(await response.read()) < 1_100_000


async def test_the_machine_readable_pages_list_the_products(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    truth = server.shop.expected(server.url)
    async with client.get(f"{server.url}/api/products.json") as response:
        listed = (await response.json())["products"]
    assert {(p["sku"], p["name"], round(p["price"] * 100)) for p in listed} == {
        (p.sku, p.name, p.pence) for p in truth.products.values()
    }
    async with client.get(f"{server.url}/robots.txt") as response:
        assert f"Sitemap: {server.url}/sitemap.xml" in await response.text()
    async with client.get(f"{server.url}/sitemap.xml") as response:
        sitemap = await response.text()
    assert all(f"<loc>{url}</loc>" in sitemap for url in truth.products)
    url, product = next(iter(truth.products.items()))
    async with client.get(url) as response:
        page = turbohtml.parse(await response.text())
    facts = json.loads(page.select_one("script[type='application/ld+json']").text)
    assert (facts["name"], facts["sku"]) == (product.name, product.sku)
    assert facts["offers"]["price"] == product.price.removeprefix("£")
    async with client.get(server.url + facts["image"]) as response:
        assert response.content_type == "image/svg+xml"


async def test_nothing_can_be_posted_and_unknown_paths_are_404(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    async with client.post(server.url) as response:
        assert response.status == 405
    async with client.get(f"{server.url}/nowhere") as response:
        assert response.status == 404


async def test_hits_count_the_requests_of_each_path(
    server: DemoServer, client: aiohttp.ClientSession
) -> None:
    for path in ("/", "/?ref=mail", "/about"):
        async with client.get(server.url + path):
            pass
    assert server.shop.hits == {"/": 2, "/about": 1}


def test_a_seed_makes_the_same_shop_and_another_seed_another_one() -> None:
    assert Shop(30, seed=5).products == Shop(30, seed=5).products
    assert Shop(30, seed=5).products != Shop(30, seed=6).products


@pytest.mark.parametrize("count", [1, 5, 6_000])
def test_a_shop_of_any_size_has_products_of_their_own(count: int) -> None:
    products = Shop(count).expected("http://shop.example").products
    assert len(products) == count
    assert len({product.name for product in products.values()}) == count
    assert len({product.sku for product in products.values()}) == count


@pytest.mark.parametrize(
    "settings", [{"products": 0}, {"per_page": 0}, {"latency": -1.0}, {"slowness": -0.1}], ids=str
)
def test_an_impossible_shop_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="at least"):
        Shop(**settings)
