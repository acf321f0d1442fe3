"""docs/archives.md: its examples run, and the table names what is in the file."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image
from warcio.archiveiterator import ArchiveIterator

from silkline import Crawler, Page
from tests.documents import run, section, snippet
from tests.site import Site

ARCHIVES = "docs/archives.md"


def test_a_folder_keeps_what_is_no_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def picture(request: web.Request) -> web.Response:
        return web.Response(body=b"\x89PNG\r\n\x1a\n...", content_type="image/png")

    with Site(
        {"/": '<h1>Home</h1><img src="/a.png"><a href="/b"></a>', "/a.png": picture, "/b": "<h1>B</h1>"}
    ) as site:
        names: dict[str, Any] = {}
        run(ARCHIVES, "files", names)
        names["crawler"].run(site.url + "/", quiet=True)
    [line] = [json.loads(text) for text in Path("pictures/manifest.jsonl").read_text().splitlines()]
    assert line["type"] == "image/png"
    assert (Path("pictures") / line["path"]).read_bytes().startswith(b"\x89PNG")
    assert len(Path("shop.jsonl").read_text().splitlines()) == 2


def test_a_folder_without_code_keeps_the_pictures_of_all_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [command] = re.findall(r"^silkline crawl .* -o pictures/.*$", section(ARCHIVES, "Files"), re.M)

    async def picture(request: web.Request) -> web.Response:
        return web.Response(body=b"\x89PNG\r\n\x1a\n" + request.path.encode(), content_type="image/png")

    pages = {
        "/": '<img src="/a.png"><a href="/b"></a><a href="/c.png"></a>',
        "/a.png": picture,
        "/c.png": picture,
    }
    with Site({**pages, "/b": "<h1>B</h1>"}) as site:
        words = shlex.split(command.replace("https://shop.example", site.url))[1:]
        done = subprocess.run(
            [sys.executable, "-m", "silkline", *words], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in Path("pictures/manifest.jsonl").read_text().splitlines()]
    assert {line["url"].removeprefix(site.url) for line in lines} == {"/a.png", "/c.png"}


def test_a_folder_makes_thumbnails_as_its_options_say(tmp_path: Path) -> None:
    file = BytesIO()
    Image.new("RGB", (400, 200)).save(file, "PNG")

    async def picture(request: web.Request) -> web.Response:
        return web.Response(body=file.getvalue(), content_type="image/png")

    async def sheet(request: web.Request) -> web.Response:
        return web.Response(text="a {}", content_type="text/css")

    pages = {"/": '<img src="/a.png"><a href="/b.css"></a>', "/a.png": picture, "/b.css": sheet}
    with Site(pages) as site:
        words = shlex.split(snippet(ARCHIVES, "thumbnails").replace("https://shop.example", site.url))[1:]
        done = subprocess.run(
            [sys.executable, "-m", "silkline", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    manifest = tmp_path / "pictures" / "manifest.jsonl"
    [line] = [json.loads(text) for text in manifest.read_text().splitlines()]
    for size, shape in (("256x256", (256, 128)), ("64x64", (64, 32))):
        assert Image.open(tmp_path / "pictures" / line["thumbnails"][size]).size == shape


def test_the_examples_read_an_archive_and_parse_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Site({"/": '<h1>Home</h1><a href="/a"></a>', "/a": "<h1>A</h1>"}) as site:
        crawler = Crawler("shop", outputs=["shop.warc.gz"], quiet=True)

        @crawler.handler
        def follow(page: Page) -> object:
            yield page.follow("a")

        crawler.run(site.url + "/")
    run(ARCHIVES, "read", {})
    assert f"{site.url}/a 10" in capsys.readouterr().out
    run(ARCHIVES, "again", {})
    rows = [json.loads(line) for line in Path("again.jsonl").read_text().splitlines()]
    assert sorted(row["title"] for row in rows) == ["A", "Home"]
    with Path("shop.warc.gz").open("rb") as file:
        kinds = {record.rec_type for record in ArchiveIterator(file)}
    assert kinds < set(re.findall(r"^\| `(\w+)` \|", section(ARCHIVES, "What is in it"), re.M))
