"""Folders of files: content-hash names, types that are looked at, and a manifest that is exact."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from silkline.errors import ConfigError
from silkline.outcome import Item
from silkline.request import Request
from silkline.response import Response
from silkline.sinks.choose import discard_owned, refuse_foreign, sinks_for
from silkline.sinks.filetype import ending_of, file_type
from silkline.sinks.folder import FilesSink
from silkline.sinks.part import part_sinks
from tests.crash.launcher import Launcher
from tests.site import Site

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


def answer(
    body: bytes, kind: str = "image/png", url: str = "https://h.example/a", status: int = 200
) -> Response:
    return Response(url, status, ((b"Content-Type", kind.encode()),), body, Request(url))


def keep(sink: FilesSink, position: str | None, *answers: Response) -> str:
    records = [sink.record(each) for each in answers]
    return sink.write([Item(n, -1, {sink.name: each}) for n, each in enumerate(records) if each], position)


def listed(folder: Path) -> list[dict[str, Any]]:
    """The manifest, after a check that every file is what it says."""
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    for line in lines:
        content = (folder / line["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (line["size"], line["sha256"])
    return lines


def test_content_is_there_once_and_every_url_has_a_line(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path / "files")
    sink.open(None)
    keep(sink, None, answer(PNG), answer(PNG, url="https://h.example/b"), answer(PNG + b"2"))
    assert [line["url"][-1] for line in listed(tmp_path / "files")] == ["a", "b", "a"]
    assert len(list((tmp_path / "files").glob("??/*.png"))) == 2
    assert not list((tmp_path / "files").glob("??/.*"))


@pytest.mark.parametrize(
    ("body", "said", "kind"),
    [
        (PNG, "text/html", "image/png"),
        (PNG, "", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/png", "image/jpeg"),
        (
            b"PK\x03\x04...",
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text",
        ),
        (b"RIFF\x00\x00\x00\x00WEBPVP", "image/webp", "image/webp"),
        (b"\x00\x00\x00\x18ftypmp42", "application/octet-stream", "video/mp4"),
        (b"a,b\n", "text/csv", "text/csv"),
        (b"?", "", "application/octet-stream"),
    ],
)
def test_the_first_bytes_say_what_it_is(body: bytes, said: str, kind: str) -> None:
    assert file_type(body, said) == kind


def test_endings_are_the_usual_ones() -> None:
    kinds = ["image/jpeg", "image/png", "application/pdf", "image/webp", "application/zip", "x/y"]
    assert [ending_of(kind) for kind in kinds] == [".jpg", ".png", ".pdf", ".webp", ".zip", ""]


def test_pages_failures_and_other_types_are_left_out(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path, types=["image/*"])
    html = answer(b"<p>no picture</p>", "image/png; charset=x")
    assert sink.record(html) is not None  # called a picture, and nothing shows that it is none
    assert FilesSink(tmp_path).record(answer(b"<p>", "text/html")) is None
    assert sink.record(answer(b"%PDF-1", "image/png")) is None
    assert sink.record(answer(PNG, status=404)) is None
    assert sink.record(answer(b"")) is None


def test_fresh_removes_the_manifest_of_the_job_alone(tmp_path: Path) -> None:
    output = f"{tmp_path}/files/"
    [sink] = sinks_for([output])
    assert isinstance(sink, FilesSink)
    sink.open(None)
    keep(sink, None, answer(PNG))
    with pytest.raises(ConfigError, match="was not written by this job"):
        refuse_foreign([output], frozenset())
    discard_owned([output], frozenset({sink.name}))
    assert [path.name for path in (tmp_path / "files").iterdir()] == [hashlib.sha256(PNG).hexdigest()[:2]]
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for([output, output])


def test_workers_of_a_server_have_manifests_of_their_own(tmp_path: Path) -> None:
    for worker in ("w1", "w2"):
        [sink] = part_sinks([f"{tmp_path}/files/"], worker)
        assert isinstance(sink, FilesSink)
        sink.open(None)
        keep(sink, None, answer(PNG))
    assert sorted(path.name for path in (tmp_path / "files").glob("*.jsonl")) == [
        "manifest.w1.jsonl",
        "manifest.w2.jsonl",
    ]


SPIDER = """
from silkline import Crawler
crawler = Crawler("job", quiet=True, concurrency=8, adaptive=False, robots=False)
@crawler.handler
def handle(page):
    if page.kind == "html":
        yield page.follow("img")
"""


def test_killed_at_any_instant_every_picture_has_one_line(launcher: Launcher, tmp_path: Path) -> None:
    """20 kills; the last life is left alone."""

    async def picture(request: web.Request) -> web.Response:
        return web.Response(body=PNG + request.path.encode() * 1_000, content_type="image/png")

    numbers, chance = range(200), random.Random(3)
    pages: dict[str, Any] = {f"/{n}.png": picture for n in numbers}
    pages["/"] = "".join(f'<img src="/{n}.png">' for n in numbers)
    spider = tmp_path / "spider.py"
    spider.write_text(SPIDER)
    with Site(pages, delay=0.02) as site:
        command = [site.url + "/", "-o", "files/"]
        for _ in range(20):
            enough = sum(site.hits.values()) + 6
            life = launcher.start(command, folder=tmp_path, spider=spider)
            life.until(lambda enough=enough: sum(site.hits.values()) >= enough, patience=20)
            time.sleep(chance.uniform(0, 0.05))
            life.kill()
        assert launcher.start(command, folder=tmp_path, spider=spider).ended() == 0
        found = Counter(line["url"] for line in listed(tmp_path / "files"))
        assert found == Counter(f"{site.url}/{n}.png" for n in numbers)
