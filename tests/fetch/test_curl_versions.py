"""HTTP/2 with nginx, and HTTP/3: what the engine curl speaks besides HTTP/1.1."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from certificates import Authority
from http3_server import Http3Server
from raw_server import Serve, answer_of
from tests.nginx import nginx
from tests.waiting import until

from silkline.config import Settings
from silkline.engine.around import around_of
from silkline.errors import BlockedError, DecodeError, TooLargeError
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.curl import CurlFetcher
from silkline.fetch.http import HttpFetcher
from silkline.fetch.middleware import compose
from silkline.fetch.options import FetchOptions
from silkline.protocols import Hook
from silkline.request import Request

PAGE = b"<p>" + b"page " * 2_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def site(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """nginx with TLS and HTTP/2; gives the URL without its last slash."""
    root, scratch = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("nginx")
    (root / "page.html").write_bytes(PAGE)
    (root / "page.html.gz").write_bytes(gzip.compress(PAGE))
    (root / "broken.html").write_bytes(b"not coded")
    (root / "large.bin").write_bytes(b"x" * 20_000_000)
    pair, port = authority.issue("localhost"), free_port()
    directives = f"""
        listen 127.0.0.1:{port} ssl http2; ssl_certificate "{pair.certificate}";
        ssl_certificate_key "{pair.key}"; gzip_static on; client_max_body_size 50m;
        location /moved {{ return 302 /page.html; }}
        location /broken.html {{ add_header Content-Encoding gzip; }}
        location /twice {{ add_header X-One 1; add_header X-One 2; return 200 ok; }}
        location /slow.bin {{ alias "{root}/large.bin"; limit_rate 100k; }}
    """
    with nginx(root, scratch, directives):
        yield f"https://localhost:{port}"


@pytest.fixture
async def fetchers(authority: Authority) -> AsyncIterator[Any]:
    opened: list[Any] = []

    def make(kind: Any = CurlFetcher, **options: Any) -> Any:
        opened.append(kind(FetchOptions(ca_file=str(authority.ca_file), **options)))
        return opened[-1]

    yield make
    for fetcher in opened:
        await fetcher.close()


async def test_http2_is_used_where_the_server_has_it(site: str, fetchers: Any) -> None:
    for options, version in (({}, "2"), ({"http_version": "2"}, "2"), ({"http_version": "1.1"}, "1.1")):
        response = await fetchers(**options).fetch(Request(f"{site}/page.html"))
        assert (response.http_version, response.status, response.body) == (version, 200, PAGE)
        assert response.wire_bytes < 1_000
    response = await fetchers(HttpFetcher).fetch(Request(f"{site}/page.html"))
    assert (response.http_version, response.body) == ("1.1", PAGE)


async def test_http2_answers_as_http1_does(site: str, fetchers: Any) -> None:
    fetcher = fetchers()
    moved = await fetcher.fetch(Request(f"{site}/moved#top"))
    assert (moved.url, moved.history, moved.body) == (f"{site}/page.html#top", (f"{site}/moved#top",), PAGE)
    twice = await fetcher.fetch(Request(f"{site}/twice"))
    assert [value for name, value in twice.headers if name == b"x-one"] == [b"1", b"2"]
    assert (await fetcher.fetch(Request(f"{site}/none"))).status == 404
    head = await fetcher.fetch(Request(f"{site}/page.html", method="HEAD"))
    assert (head.status, head.body) == (200, b"")
    with pytest.raises(DecodeError):
        await fetcher.fetch(Request(f"{site}/broken.html"))
    with pytest.raises(TooLargeError):
        await fetchers(max_body=1_000_000).fetch(Request(f"{site}/large.bin"))


async def test_all_requests_to_a_host_share_a_connection_from_the_start(site: str, fetchers: Any) -> None:
    fetcher = fetchers()
    requests = [Request(f"{site}/page.html?{n}") for n in range(60)]
    responses = await asyncio.gather(*map(fetcher.fetch, requests))
    assert {response.http_version for response in responses} == {"2"}
    assert sum(response.timings.tls > 0 for response in responses) == 1
    assert all(response.peer == responses[0].peer for response in responses)


async def test_a_stream_that_is_cancelled_leaves_its_connection_to_the_others(
    site: str, fetchers: Any
) -> None:
    fetcher = fetchers()
    await fetcher.fetch(Request(f"{site}/page.html"))
    slow = asyncio.create_task(fetcher.fetch(Request(f"{site}/slow.bin")))
    await until(lambda: any(transfer.size for transfer in fetcher._client._transfers))
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    response = await fetcher.fetch(Request(f"{site}/page.html"))
    assert (response.body, response.timings.connect) == (PAGE, 0.0)


async def test_http3_is_spoken_on_request(authority: Authority, fetchers: Any, serve: Serve) -> None:
    pair = authority.issue("localhost")
    tcp = await serve({"/": answer_of(200, {}, b"tcp")}, tls=pair.server_context())
    fields = [(b"content-type", b"text/html"), (b"x-one", b"1"), (b"x-one", b"2")]
    server = await Http3Server(
        {
            "/": (200, fields, PAGE),
            "/moved": (302, [(b"location", b"/")], b""),
            "/coded": (200, [(b"content-encoding", b"gzip")], gzip.compress(PAGE)),
        }
    ).start(pair, tcp.port)
    url = f"https://localhost:{tcp.port}"
    fetcher = fetchers(http_version="3")
    response = await fetcher.fetch(Request(f"{url}/moved", headers={"X-Mine": "\u00fc"}))
    assert (response.http_version, response.status, response.body) == ("3", 200, PAGE)
    assert response.headers == tuple(fields)
    assert response.peer == f"127.0.0.1:{tcp.port}"
    assert server.requests[-1][b"x-mine"] == "\u00fc".encode()
    assert (await fetcher.fetch(Request(f"{url}/coded"))).body == PAGE
    assert (await fetchers().fetch(Request(url))).body == b"tcp"
    await server.stop()


async def test_a_server_without_http3_is_spoken_to_in_http1(
    authority: Authority, fetchers: Any, serve: Serve
) -> None:
    tcp = await serve({"/": answer_of(200, {}, b"tcp")}, tls=authority.issue("localhost").server_context())
    started = time.monotonic()
    response = await fetchers(http_version="3").fetch(Request(f"https://localhost:{tcp.port}/"))
    assert (response.http_version, response.body) == ("1.1", b"tcp")
    assert time.monotonic() - started < 5


async def test_that_a_server_has_not_the_version_that_is_asked_for_is_told_once(
    authority: Authority, fetchers: Any, serve: Serve, site: str
) -> None:
    tls = authority.issue("localhost").server_context()
    plain, secure = (
        await serve({"/": answer_of(200, {}, b"x")}),
        await serve({"/": answer_of(200, {}, b"x")}, tls=tls),
    )
    told: list[str] = []
    hook = cast(Hook, lambda event: told.append(event.message))
    old = f"https://localhost:{secure.port}/"
    for wanted, asked, answered in (
        ("2", [plain.url(), f"{site}/page.html", old, old], "1.1: the host does not speak it, or a proxy"),
        ("3", [plain.url(), f"{site}/page.html", old], "2: the host does not speak it, or UDP does not"),
    ):
        told.clear()
        settings = Settings(fetcher="curl", http_version=wanted)
        fetch = compose(around_of(settings, Sessions(), hook), fetchers(http_version=wanted).fetch)
        for url in asked:
            await fetch(Request(url))
        assert len(told) == 1
        assert told[0].startswith(f"HTTP/{wanted} was asked for, and https://localhost:")
        assert f"answered in HTTP/{answered}" in told[0]


async def test_the_guard_is_asked_about_quic_too(authority: Authority) -> None:
    asked = []

    def refuse(host: str, ip: str, port: int) -> None:
        asked.append((host, port))
        raise BlockedError("no")

    port = free_port()
    fetcher = CurlFetcher(FetchOptions(http_version="3", ca_file=str(authority.ca_file)), guard=refuse)
    with pytest.raises(BlockedError):
        await fetcher.fetch(Request(f"https://localhost:{port}/"))
    assert set(asked) == {("localhost", port)}
    await fetcher.close()
