"""A crawl that is answered from WARC files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.site import Site
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from silkline import Request
from silkline.errors import ConfigError, DecodeError, NotCachedError, TooLargeError
from silkline.fetch.warc import WarcFetcher


def archive(path: Path, *records: tuple[str, str, list[tuple[str, str]], bytes]) -> Path:
    """URL, status line, headers and body of each, as another program would write them."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        for url, status, headers, body in records:
            head = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body), length=len(body), http_headers=head
                )
            )
    return path


async def test_bodies_are_decoded_and_the_last_of_a_url_counts(tmp_path: Path) -> None:
    import gzip

    packed = gzip.compress(b"<p>new</p>")
    path = archive(
        tmp_path / "a.warc.gz",
        ("http://h.example/a", "200 OK", [("Content-Type", "text/html")], b"<p>old</p>"),
        (
            "http://h.example/a",
            "200 OK",
            [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")],
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed),
        ),
        ("http://h.example/b", "301 Moved", [("Location", "/a")], b""),
    )
    fetcher = WarcFetcher(path)
    response = await fetcher.fetch(Request("http://h.example/b#top"))
    assert (response.body, response.url) == (b"<p>new</p>", "http://h.example/a#top")
    assert response.history == ("http://h.example/b#top",)
    assert list(fetcher.urls()) == ["http://h.example/a"]
    with pytest.raises(NotCachedError, match="not in the archive"):
        await fetcher.fetch(Request("http://h.example/c"))
    with pytest.raises(TooLargeError):
        await WarcFetcher(path, max_body=5).fetch(Request("http://h.example/a"))
    await fetcher.close()


async def test_an_archive_that_was_cut_since_is_a_failure_of_the_page(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", ("http://h.example/a", "200 OK", [], b"x" * 100))
    fetcher = WarcFetcher(path)
    path.write_bytes(b"")
    with pytest.raises(DecodeError, match="cannot be read"):
        await fetcher.fetch(Request("http://h.example/a"))


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b\x08 broken", b"WARC/1.1\r\nnonsense"])
def test_what_is_no_archive_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.warc\.gz (is no sound|has no pages)[^\n]*$"):
        WarcFetcher(path)


@pytest.mark.parametrize("ending", ["warc", "warc.gz"])
async def test_a_record_that_is_not_all_there_is_left_out_and_said_wherever_it_was_cut(
    tmp_path: Path, ending: str, capfd: pytest.CaptureFixture[str]
) -> None:
    first = ("http://h.example/1", "200 OK", [("Content-Type", "text/html")], b"<p>one</p>" * 20)
    second = ("http://h.example/2", *first[1:3], os.urandom(300))
    path = tmp_path / f"a.{ending}"
    whole = archive(path, first).read_bytes()
    begun = len(whole)
    whole += archive(path, second).read_bytes()
    for cut in range(begun + 1, len(whole) + 1, 3):
        path.write_bytes(whole[:cut])
        fetcher = WarcFetcher(path)
        urls = list(fetcher.urls())
        for url in urls:
            body = (await fetcher.fetch(Request(url))).body
            assert body == (first if url.endswith("1") else second)[3]
        await fetcher.close()
        assert len(urls) == 2 or fetcher.warnings == [
            f"{path} ends in the middle of a record: it is left out"
        ], cut
    path.write_bytes(whole[: begun - 30])
    with pytest.raises(ConfigError, match=r"has no pages in it: .* ends in the middle of a record"):
        WarcFetcher(path)
    path.write_bytes(whole)
    assert (len(list(WarcFetcher(path).urls())), WarcFetcher(path).warnings) == (2, [])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ending", ["warc", "warc.gz"])
def test_damage_in_the_middle_is_one_clear_line_that_names_the_place(
    tmp_path: Path, ending: str, capfd: pytest.CaptureFixture[str]
) -> None:
    records = [(f"http://h.example/{n}", "200 OK", [], os.urandom(90_000)) for n in range(3)]
    path = archive(tmp_path / f"a.{ending}", *records)
    content = path.read_bytes()
    path.write_bytes(content[:120_000] + bytes(5_000) + content[120_500:])
    with pytest.raises(ConfigError, match=r"is no sound WARC file: [ -~]+$"):
        WarcFetcher(path)
    assert capfd.readouterr().err == ""


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        WarcFetcher(tmp_path / "none.warc.gz")


SPIDER = """
from silkline import Crawler
crawler = Crawler("shop")
@crawler.handler
def page(page):
    yield {"title": page.title, "url": page.url}
    yield page.follow("a")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_is_parsed_again_without_its_site(tmp_path: Path, processes: int) -> None:
    pages = {f"/{n}": f'<title>{n}</title><a href="/{n + 1}"></a>' for n in range(20)}
    (tmp_path / "shop.py").write_text(SPIDER)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "NO_COLOR": "1"}
        command = [
            sys.executable,
            "-m",
            "silkline",
            "run",
            "shop.py",
            *options,
            "--processes",
            str(processes),
        ]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)

    with Site(pages) as site:
        first = run(site.url + "/0", "-o", "shop.warc.gz", "-o", "first.jsonl", "--retries", "0")
        assert first.returncode == 0, first.stderr
    again = run("--from-warc", "shop.warc.gz", "-o", "again.jsonl", "--retries", "0")
    assert again.returncode == 0, again.stderr

    def items(name: str) -> list[Any]:
        return sorted(json.loads(line)["title"] for line in (tmp_path / name).read_text().splitlines())

    assert items("again.jsonl") == items("first.jsonl") == sorted(map(str, range(20)))
    content = (tmp_path / "shop.warc.gz").read_bytes()
    (tmp_path / "cut.warc.gz").write_bytes(content[:-20])
    cut = run("--from-warc", "cut.warc.gz", "-o", "cut.jsonl", "--retries", "0")
    assert "warning: cut.warc.gz ends in the middle of a record: it is left out" in cut.stderr
    missing = run("--from-warc", "none.warc.gz", "-o", "third.jsonl")
    assert missing.returncode == 2
    assert "none.warc.gz cannot be read" in missing.stderr
