"""Files in a crawl: a request that names one, the time it may take, and its failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from tests.site import Site

from silkline import Crawler, Page, Request
from silkline.errors import SaveError


async def slowly(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "5"})
    await response.prepare(request)
    for letter in b"slowly"[:5]:
        await asyncio.sleep(0.3)
        await response.write(bytes([letter]))
    return response


def test_a_request_that_names_a_file_may_take_its_time_and_its_failure_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    crawler = Crawler("files", frontier="memory:", quiet=True, timeout=0.5, visit_timeout=0.5)
    saved: list[tuple[str, bytes]] = []

    @crawler.handler
    def start(page: Page) -> object:
        names = ["files/f", "../f"]
        return [Request("/slow", label="file", key=name, save_to=name) for name in names]

    @crawler.handler("file")
    def file(page: Page) -> None:
        assert page.response.saved_to is not None
        saved.append((page.response.saved_to, page.body))

    with Site({"/": "<p>x", "/slow": slowly}) as site:
        report = crawler.run(site.url)
    assert report.dead == {"save": 1}
    assert saved == [(str(tmp_path / "files/f"), b"")]
    assert (tmp_path / "files/f").read_bytes() == b"slowl"
    assert site.hits["/slow"] == 1


def test_what_a_page_saves_is_put_into_the_folder_of_files(tmp_path: Path) -> None:
    crawler = Crawler("saved", frontier="memory:", quiet=True, files_dir=str(tmp_path / "files"))

    @crawler.handler
    def save(page: Page) -> None:
        assert page.save("a/page.html") == tmp_path / "files/a/page.html"
        assert page.save("page.html", folder=tmp_path) == tmp_path / "page.html"
        with pytest.raises(SaveError, match="leads out of the folder"):
            page.save(tmp_path / "elsewhere.html")

    with Site({"/": "<p>x"}) as site:
        assert crawler.run(site.url).dead == {}
    assert (tmp_path / "files/a/page.html").read_bytes() == b"<p>x"
