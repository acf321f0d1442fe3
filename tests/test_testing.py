"""What `silkline.testing` gives to those who test their spiders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from silkline import Crawler, Page, Request
from silkline.errors import ConfigError, HandlerError, UnknownLabelError
from silkline.testing import page_from, visit


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler("job")

    @crawler.handler
    async def listing(page: Page) -> Any:
        yield {"title": page.text("h1"), "extra": page.request.extra}
        yield page.follow("a")
        yield Request("/later", label="detail", priority=3)

    @crawler.handler("detail")
    def detail(page: Page) -> Any:
        raise ValueError("no price")

    return crawler


async def test_a_visit_gives_items_and_requests(crawler: Crawler) -> None:
    page = page_from("<h1>Hi</h1><a href='/2'>2</a>", url="https://shop.example/1", extra={"k": 1}, depth=4)
    result = await visit(crawler, page)
    assert result.items == ({"title": "Hi", "extra": {"k": 1}},)
    assert result.requests == (
        Request("https://shop.example/2", depth=5),
        Request("https://shop.example/later", label="detail", priority=3, depth=5),
    )


async def test_a_page_comes_from_a_file(crawler: Crawler, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes("<meta charset=latin-1><h1>Größe</h1>".encode("latin-1"))
    page = page_from(tmp_path / "page.html", content_type="text/html")
    assert (await visit(crawler, page)).items[0]["title"] == "Größe"
    assert page_from(str(tmp_path / "page.html"), content_type="text/html").text("h1") == "Größe"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no-such\.html: cannot be read"):
        page_from("no-such.html")


async def test_what_a_handler_raises_comes_out(crawler: Crawler) -> None:
    with pytest.raises(HandlerError, match="ValueError: no price"):
        await visit(crawler, page_from("<p>", label="detail"))
    with pytest.raises(UnknownLabelError, match="'nope'"):
        await visit(crawler, page_from("<p>", label="nope"))
