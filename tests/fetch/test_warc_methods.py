"""Which record of an archive answers a request: by URL, method and body."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from silkline import Request
from silkline.errors import NotCachedError
from silkline.fetch.warc import WarcFetcher

URL = "http://h.example/a"


def archive(path: Path, order: str, *exchanges: tuple[str, bytes, bytes]) -> Path:
    """Method, body that was sent and body of the answer of each.

    order: "response" for the response first, which the request names, "request" for the other way round,
    "none" for responses alone.
    """
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number, (method, sent, body) in enumerate(exchanges):
            asked, answered = f"<urn:{path.name}:a-{number}>", f"<urn:{path.name}:b-{number}>"
            names = {
                "request": {"WARC-Record-ID": asked},
                "response": {"WARC-Record-ID": answered},
            }
            first, second = ("request", "response") if order == "request" else ("response", "request")
            names[second]["WARC-Concurrent-To"] = names[first]["WARC-Record-ID"]
            for kind in (first, second) if order != "none" else ("response",):
                request = kind == "request"
                line, protocol = (f"{method} /a HTTP/1.1", "") if request else ("200 OK", "HTTP/1.1")
                payload = sent if request else body
                writer.write_record(
                    writer.create_warc_record(
                        URL,
                        kind,
                        payload=io.BytesIO(payload),
                        length=len(payload),
                        http_headers=StatusAndHeaders(line, [], protocol=protocol, is_http_request=request),
                        warc_headers_dict=names[kind],
                    )
                )
    return path


@pytest.mark.parametrize("order", ["response", "request"])
async def test_an_answer_is_that_to_the_same_method_and_body(tmp_path: Path, order: str) -> None:
    path = archive(
        tmp_path / "a.warc.gz",
        order,
        ("GET", b"", b"old"),
        ("GET", b"", b"form"),
        ("POST", b"user=ann", b"ann"),
        ("POST", b"user=bob", b"bob"),
    )
    fetcher = WarcFetcher(path)
    assert (await fetcher.fetch(Request(URL))).body == b"form"
    assert (await fetcher.fetch(Request(URL, method="HEAD"))).body == b""
    for user in ("ann", "bob"):
        answer = await fetcher.fetch(Request(URL, method="POST", body=f"user={user}".encode()))
        assert answer.body == user.encode()
    with pytest.raises(NotCachedError, match=r"POST http://h\.example/a is not in the archive"):
        await fetcher.fetch(Request(URL, method="POST", body=b"user=eve"))
    with pytest.raises(NotCachedError):
        await fetcher.fetch(Request(URL, method="PUT", body=b"user=ann"))
    assert list(fetcher.urls()) == [URL]
    await fetcher.close()


async def test_what_only_a_post_got_answers_no_get_and_is_no_page_to_start_from(tmp_path: Path) -> None:
    fetcher = WarcFetcher(archive(tmp_path / "a.warc.gz", "response", ("POST", b"q", b"found")))
    assert list(fetcher.urls()) == []
    with pytest.raises(NotCachedError):
        await fetcher.fetch(Request(URL))
    await fetcher.close()


async def test_a_response_that_no_request_tells_of_is_one_to_a_get(tmp_path: Path) -> None:
    fetcher = WarcFetcher(archive(tmp_path / "a.warc.gz", "none", ("?", b"", b"old"), ("?", b"", b"new")))
    assert (await fetcher.fetch(Request(URL))).body == b"new"
    assert list(fetcher.urls()) == [URL]
    with pytest.raises(NotCachedError):
        await fetcher.fetch(Request(URL, method="POST", body=b"q"))
    await fetcher.close()


async def test_of_an_exchange_that_was_cut_the_response_hides_no_other(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", "response", ("GET", b"", b"form"))
    cut = archive(tmp_path / "cut.warc.gz", "none", ("POST", b"", b"account"))
    fetcher = WarcFetcher(path, cut)
    assert (await fetcher.fetch(Request(URL))).body == b"form"
    assert list(fetcher.urls()) == [URL]
    await fetcher.close()


SPIDER = """
from silkline import Crawler
crawler = Crawler("members")
@crawler.handler
def start(page):
    yield page.form("form", {"user": "ann"}, label="inside")
@crawler.handler("inside")
def inside(page):
    yield {"order": page.css("b")[0].text()}
    yield page.follow("a", label="inside")
"""


async def test_a_spider_that_logs_in_is_parsed_again(tmp_path: Path) -> None:
    async def login(request: web.Request) -> web.Response:
        if request.method == "GET":
            return html("<form method=post action=/login><input name=user></form>")
        answer = web.HTTPSeeOther("/account")
        answer.set_cookie("sid", str((await request.post())["user"]))
        raise answer

    async def account(request: web.Request) -> web.Response:
        if request.cookies.get("sid") != "ann":
            raise web.HTTPForbidden
        links = "".join(f"<a href='/account?p={n}'></a>" for n in range(1, 6))
        return html(f"<b>{request.query.get('p', '0')}</b>{links}")

    def html(body: str) -> web.Response:
        return web.Response(text=body, content_type="text/html")

    async def items(name: str, *options: str) -> list[str]:
        command = [sys.executable, "-m", "silkline", "run", "spider.py", url, "-o", name, *options]
        environ = {**os.environ, "NO_COLOR": "1"}
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE
        )
        _, told = await process.communicate()
        assert process.returncode == 0, told.decode()
        lines = (tmp_path / name).read_text().splitlines()
        return sorted(json.loads(line)["order"] for line in lines)

    (tmp_path / "spider.py").write_text(SPIDER)
    app = web.Application()
    app.router.add_route("*", "/login", login)
    app.router.add_get("/account", account)
    async with TestServer(app) as server:
        url = str(server.make_url("/login"))
        first = await items("first.jsonl", "-o", "site.warc.gz")
    assert first == ["0", "1", "2", "3", "4", "5"]
    assert await items("again.jsonl", "--from-warc", "site.warc.gz") == first
