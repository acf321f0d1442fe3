"""WARC files: what other programs read in them, whatever instant the crawl died at."""

from __future__ import annotations

import gzip
import io
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fastwarc.warc as fast
import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from silkline import Crawler, Page
from silkline.errors import ConfigError
from silkline.outcome import Item
from silkline.request import Request as Asked
from silkline.response import Hop, Response
from silkline.sinks.choose import sink_for
from silkline.sinks.warc import WarcSink
from tests.crash.launcher import Launcher
from tests.site import Site

MOMENT = 1_900_000_000.25


def page(body: bytes = b"<p>hello</p>", **changes: Any) -> Response:
    hop = Hop(
        **{
            "url": "https://shop.example/a?b=1",
            "method": "GET",
            "sent": (("Host", "shop.example"), ("User-Agent", "silkline")),
            "sent_body": None,
            "started": MOMENT,
            "status": 200,
            "headers": (
                (b"Content-Type", b"text/html"),
                (b"Content-Encoding", b"gzip"),
                (b"Content-Length", b"99"),
                (b"X-Raw", b"caf\xe9"),
                (b"Set-Cookie", b"a=1"),
                (b"Set-Cookie", b"b=2"),
            ),
            "body": body,
            "http_version": "2",
            "peer": "[::1]:443",
            **changes,
        }
    )
    request = Asked("https://shop.example/a?b=1")
    return Response(hop.url, hop.status, hop.headers, hop.body, request, trail=(hop,))


def write(path: Path, *pages: Response) -> str:
    sink = WarcSink(path)
    sink.open(None)
    position: str | None = sink.write((), None)
    for number, response in enumerate(pages):
        position = sink.write([Item(number, -1, {sink.name: sink.record(response)})], position)
    sink.finish(position)
    sink.close()
    return position or ""


@pytest.fixture(params=["a.warc.gz", "a.warc"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / request.param


def test_two_other_readers_find_the_records_and_their_digests_hold(path: Path) -> None:
    write(path, page())
    with path.open("rb") as file:
        records = [
            (r.rec_type, r.rec_headers, r.http_headers, r.content_stream().read())
            for r in ArchiveIterator(file, check_digests="raise")
        ]
    assert [kind for kind, *_ in records] == ["warcinfo", "response", "request"]
    _, rec, http, body = records[1]
    assert body == b"<p>hello</p>"
    assert (rec.get_header("WARC-Target-URI"), rec.get_header("WARC-Date")) == (
        "https://shop.example/a?b=1",
        "2030-03-17T17:46:40.250000Z",
    )
    assert (rec.get_header("WARC-IP-Address"), rec.get_header("WARC-Protocol")) == ("::1", "h2")
    assert rec.protocol == "WARC/1.1"
    assert http.headers == [
        ("Content-Type", "text/html"),
        ("X-Archive-Orig-Content-Encoding", "gzip"),
        ("X-Archive-Orig-Content-Length", "99"),
        ("X-Raw", "caf\xe9"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Content-Length", "12"),
    ]
    _, asked, head, _ = records[2]
    assert asked.get_header("WARC-Concurrent-To") == rec.get_header("WARC-Record-ID")
    assert (head.protocol, head.statusline) == ("GET", "/a?b=1 HTTP/1.1")
    assert b"caf\xe9" in (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    with path.open("rb") as file:
        kinds = [
            (
                record.headers["WARC-Type"],
                record.verify_block_digest() if record.headers.get("WARC-Block-Digest") else True,
            )
            for record in fast.ArchiveIterator(io.BytesIO(file.read()), parse_http=False)
        ]
    assert kinds == [("warcinfo", True), ("response", True), ("request", True)]


def test_each_record_is_a_gzip_member_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    write(path, page(), page(b"x"))
    assert path.read_bytes().count(b"\x1f\x8b\x08") >= 5
    with path.open("rb") as file:
        records = ArchiveIterator(file)
        offsets = [records.get_record_offset() for _ in records]
    with path.open("rb") as file:
        file.seek(offsets[3])
        assert next(iter(ArchiveIterator(file))).content_stream().read() == b"x"


def test_a_page_that_did_not_change_is_a_revisit(path: Path) -> None:
    write(path, page(b"", status=304))
    with path.open("rb") as file:
        [_, revisit, _] = [(r.rec_type, r.rec_headers) for r in ArchiveIterator(file)]
    assert revisit[0] == "revisit"
    assert revisit[1].get_header("WARC-Profile").endswith("revisit/server-not-modified")


def test_a_body_that_is_elsewhere_is_marked_as_cut(path: Path) -> None:
    write(path, page(b"", saved_to="files/a.pdf"))
    with path.open("rb") as file:
        records = [(r.rec_type, r.rec_headers, r.content_stream().read()) for r in ArchiveIterator(file)]
    assert records[1][1].get_header("WARC-Truncated") == "length"
    assert (records[3][0], records[3][2]) == ("metadata", b"savedTo: files/a.pdf\r\n")


def test_an_archive_takes_no_items() -> None:
    with pytest.raises(ConfigError, match="is an archive of pages, and holds no items"):
        sink_for("a.warc.gz")


def archived(path: Path) -> list[tuple[str, str, int]]:
    with path.open("rb") as file:
        return [
            (
                r.rec_type,
                r.rec_headers.get_header("WARC-Target-URI") or "",
                int(r.http_headers.get_statuscode()),
            )
            for r in ArchiveIterator(file, check_digests="raise")
            if r.rec_type == "response"
        ]


@pytest.mark.parametrize("fetcher", ["http", "curl"])
def test_a_crawl_archives_every_hop_and_failures_and_counts_no_items(tmp_path: Path, fetcher: Any) -> None:
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound("/new")

    path, pages = (
        tmp_path / "a.warc.gz",
        {"/": '<a href="/old"></a><a href="/gone"></a>', "/new": "<p>new</p>"},
    )
    with Site({**pages, "/old": moved}) as site:
        crawler = Crawler(
            "job",
            fetcher=fetcher,
            frontier=f"sqlite:///{tmp_path}/job.db",
            outputs=[str(path), str(tmp_path / "a.jsonl")],
            auth=[f"{site.url} bearer hush"],
            retries=0,
            quiet=True,
        )

        @crawler.handler
        def handle(page: Page) -> Any:
            yield {"url": page.url}
            yield page.follow("a")

        report = crawler.run(site.url + "/")
        assert report.items == 2
        assert Counter(archived(path)) == Counter(
            {
                ("response", f"{site.url}/", 200): 1,
                ("response", f"{site.url}/old", 302): 1,
                ("response", f"{site.url}/new", 200): 1,
                ("response", f"{site.url}/gone", 404): 1,
            }
        )
        text = gzip.decompress(path.read_bytes())
        assert b"Authorization: " in text
        assert b"hush" not in text
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2


SPIDER = """
from silkline import Crawler
crawler = Crawler("job", quiet=True, concurrency=8, per_host=8, adaptive=False, robots=False)
@crawler.handler
def handle(page):
    yield page.follow("a")
"""


def test_killed_at_any_instant_it_has_every_page_once(launcher: Launcher, tmp_path: Path) -> None:
    """20 kills; the last life is left alone."""
    links = "".join(f'<a href="/{n}"></a>' for n in range(300))
    pages = {"/": links, **{f"/{n}": f"<p>{n}</p>" * 50 for n in range(300)}}
    path, chance = tmp_path / "a.warc.gz", random.Random(7)
    spider = tmp_path / "spider.py"
    spider.write_text(SPIDER)

    def size() -> int:
        return path.stat().st_size if path.exists() else 0

    with Site(pages, delay=0.02) as site:
        command = [site.url + "/", "-o", path.name]
        for _ in range(20):
            before = size()
            life = launcher.start(command, folder=tmp_path, spider=spider)
            life.until(lambda before=before: size() > before, patience=20)
            time.sleep(chance.uniform(0, 0.05))
            life.kill()
        assert launcher.start(command, folder=tmp_path, spider=spider).ended() == 0
        assert Counter(url for _, url, _ in archived(path)) == Counter(site.url + path for path in pages)


def test_killed_workers_of_a_server_leave_parts_that_count(tmp_path: Path) -> None:
    """A part is read as the file it is; see tests/sinks/test_part.py for what counts in it."""
    from silkline.sinks.part import PartArchive, part_at, part_sinks

    [part] = part_sinks([str(tmp_path / "a.warc.gz")], "w1")
    assert isinstance(part, PartArchive)
    part.open(None)
    position = part.write([Item(1, -1, {part.name: part.record(page())})], None)
    part.write([Item(2, -1, {part.name: part.record(page())})], position)
    part.close()
    [again] = part_sinks([str(tmp_path / "a.warc.gz")], "w1")
    position = again.finish(position)
    mark = part_at(position or "")
    assert mark is not None
    assert mark.items == 1
    assert len(archived(tmp_path / "a.w1.warc.gz")) == 1
