"""One behaviour for every engine, against servers that behave and misbehave."""

from __future__ import annotations

import asyncio
import gzip
import ssl

import brotli
import msgspec
import pytest
from coders import CODERS
from raw_server import RawServer, Script, Serve, answer_of, then_close
from site_of_pages import Engine, OpenSite

from silkline.fetch.http import HttpFetcher
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response


async def test_a_page_comes_back_with_its_bytes_and_headers(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {"X-One": "1", "Content-Type": "text/html"}, b"<p>\xff")})
    request = Request(server.url())
    response = await engine().fetch(request)
    assert (response.status, response.body, response.wire_bytes) == (200, b"<p>\xff", 4)
    assert response.headers[:2] == ((b"X-One", b"1"), (b"Content-Type", b"text/html"))
    assert (response.url, response.request, response.history) == (request.url, request, ())
    assert 0 < response.timings.first_byte <= response.timings.total < 30
    assert response.http_version == "1.1"


async def test_the_steps_of_a_new_connection_are_timed_and_a_reused_one_has_none(
    serve: Serve, engine: Engine, tls_context: ssl.SSLContext
) -> None:
    server = await serve({"/": answer_of(200, {}, b"x")}, tls=tls_context)
    fetcher = engine(verify=False)
    url = f"https://localhost:{server.port}/"
    first, second = [(await fetcher.fetch(Request(url))).timings for _ in range(2)]
    assert min(first.dns, first.connect, first.tls) > 0
    assert first.dns + first.connect + first.tls < first.first_byte <= first.total
    assert (second.dns, second.connect, second.tls) == (0, 0, 0)


async def test_without_tls_its_time_is_zero(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"x")})
    timings = (await engine().fetch(Request(server.url()))).timings
    assert timings.connect > 0
    assert timings.tls == 0


async def test_the_peer_is_the_address_that_answered(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"x")})
    fetcher = engine()
    for _ in range(2):
        response = await fetcher.fetch(Request(f"http://localhost:{server.port}/"))
        assert response.peer == f"127.0.0.1:{server.port}"


async def test_middleware_of_hops_sees_each_hop_and_what_it_changes_is_sent(open_site: OpenSite) -> None:
    seen = []

    async def note(request: Request, call_next: CallNext) -> Response:
        seen.append(request.url)
        response = await call_next(msgspec.structs.replace(request, headers={"X-Hop": str(len(seen))}))
        assert response.history == ()
        return response

    pages = {"/": (302, {"Location": "/end"}, b""), "/end": (200, {}, b"end")}
    site = await open_site(pages, hops=[note])
    response = await site.fetch()
    assert seen == [site.url("/"), site.url("/end")]
    assert (site.sent("X-Hop", 0), site.sent("X-Hop", 1)) == ("1", "2")
    assert (response.body, response.history) == (b"end", (site.url("/"),))


async def test_the_guard_is_asked_before_each_new_connection(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"x")})
    asked = []
    fetcher = engine(guard=lambda *about: asked.append(about))
    for _ in range(2):
        await fetcher.fetch(Request(f"http://localhost:{server.port}/"))
    assert asked.count(("localhost", "127.0.0.1", server.port)) == 1
    assert set(asked) <= {("localhost", ip, server.port) for ip in ("127.0.0.1", "::1")}


async def test_connections_are_kept_and_reused(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"x" * 300_000)})
    fetcher = engine()
    for _ in range(3):
        await fetcher.fetch(Request(server.url()))
    assert server.connections == 1


async def test_requests_carry_method_headers_and_body_as_given(open_site: OpenSite) -> None:
    site = await open_site({"/": (200, {}, b"")})
    await site.fetch(method="POST", body=b"a=1", headers={"Content-Type": "text/x", "X-Caf\u00e9": "\u00e9"})
    assert site.sent_line() == ("POST", b"a=1")
    assert site.sent("Content-Type") == "text/x"


async def test_nothing_is_added_to_a_body(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    await engine().fetch(Request(server.url(), method="POST", body=b"a=1"))
    assert (server.header("content-type"), server.header("content-length")) == (None, "3")


async def test_the_usual_headers_are_there_and_can_be_replaced(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    fetcher = engine(user_agent="test/1")
    await fetcher.fetch(Request(server.url()))
    assert server.header("user-agent") == "test/1"
    assert server.header("accept-encoding") == "gzip, deflate, br, zstd"
    assert "text/html" in (server.header("accept") or "")
    await fetcher.fetch(Request(server.url(), headers={"ACCEPT": "x/y", "user-agent": "mine"}))
    assert (server.header("accept"), server.header("user-agent")) == ("x/y", "mine")
    assert server.heads[-1].lower().count("user-agent:") == 1


async def test_by_default_the_user_agent_is_honest(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    await engine().fetch(Request(server.url()))
    assert (server.header("user-agent") or "").startswith("silkline/")


@pytest.mark.parametrize(
    "target",
    [
        "/a%2Fb%25/%7efoo?q=%C3%A9+%20&&x=",
        "//a///b",
        "/p?",
        "/?",
        "/a;b=c,d!$&'()*+?e?f",
        "/a|b[1]?x=a|b{}[1]^`",
    ],
)
async def test_the_url_on_the_wire_is_the_one_that_was_written(
    serve: Serve, engine: Engine, target: str
) -> None:
    server = await serve({target: answer_of(200, {}, b"here")})
    response = await engine().fetch(Request(server.url(target + "#part")))
    assert server.targets == [target]
    assert (response.body, response.url) == (b"here", server.url(target + "#part"))


async def test_what_cannot_be_sent_raw_is_escaped_as_in_browsers(open_site: OpenSite) -> None:
    site = await open_site({"/caf%C3%A9%20au?q=%C3%A9": (200, {}, b"here")})
    assert (await site.fetch("/caf\u00e9 au?q=\u00e9")).body == b"here"


async def test_headers_come_in_order_with_duplicates_and_raw_bytes(serve: Serve, engine: Engine) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nB: 1\r\nset-cookie: a=\xe9\r\nA: 2\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"
    )
    server = await serve({"/": head})
    response = await engine().fetch(Request(server.url()))
    assert response.headers == (
        (b"B", b"1"),
        (b"set-cookie", b"a=\xe9"),
        (b"A", b"2"),
        (b"Set-Cookie", b"b"),
        (b"Content-Length", b"0"),
    )


@pytest.mark.parametrize("status", [200, 203, 404, 410, 429, 500, 503, 999])
async def test_every_status_is_a_response(open_site: OpenSite, status: int) -> None:
    site = await open_site({"/": (status, {"Retry-After": "7"}, b"body")})
    response = await site.fetch()
    assert (response.status, response.body, response.header("retry-after")) == (status, b"body", "7")


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 204 No", b"HTTP/1.1 304 Not", b"HTTP/1.1 200 OK\r\nContent-Length: 0"]
)
async def test_responses_without_a_body_leave_the_connection_usable(
    serve: Serve, engine: Engine, head: bytes
) -> None:
    server = await serve(
        {"/": head + b"\r\nContent-Encoding: gzip\r\n\r\n", "/next": answer_of(200, {}, b"next")}
    )
    fetcher = engine(timeout=10)
    assert (await fetcher.fetch(Request(server.url()))).body == b""
    assert (await fetcher.fetch(Request(server.url("/next")))).body == b"next"
    assert server.connections == 1


async def test_head_has_headers_and_no_body(serve: Serve, engine: Engine) -> None:
    server = await serve(
        {"/": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 900000\r\n\r\n"}
    )
    response = await engine(timeout=10, max_body=100).fetch(Request(server.url(), method="HEAD"))
    assert (response.status, response.body, response.header("content-length")) == (200, b"", "900000")


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (then_close(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"), b"until the end"),
        (then_close(b"HTTP/1.0 200 OK\r\n\r\nold"), b"old"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfinal", b"final"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n",
            b"hello",
        ),
    ],
    ids=["until the connection ends", "HTTP/1.0", "no reason", "early hints", "chunked"],
)
async def test_every_framing_gives_the_whole_body(
    serve: Serve, engine: Engine, answer: bytes | Script, body: bytes
) -> None:
    server = await serve({"/": answer})
    assert (await engine(timeout=10).fetch(Request(server.url()))).body == body


async def test_idle_connections_to_many_hosts_are_limited(serve: Serve, engine: Engine) -> None:
    servers = [await serve({"/": answer_of(200, {}, b"one of many")}) for _ in range(20)]
    fetcher = engine(limit=2)
    for server in servers:
        await fetcher.fetch(Request(server.url()))
    assert sum(server.open for server in servers) <= 5


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(
    serve: Serve, engine: Engine
) -> None:
    server = await serve({"/": then_close(answer_of(200, {}, b"bye"))})
    fetcher = engine(timeout=10)
    for _ in range(5):
        assert (await fetcher.fetch(Request(server.url()))).body == b"bye"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_codings_are_decoded_and_the_wire_size_is_kept(
    serve: Serve, engine: Engine, coding: str
) -> None:
    packed = CODERS[coding](b"page " * 1000)
    server = await serve({"/": answer_of(200, {"Content-Encoding": coding}, packed)})
    response = await engine().fetch(Request(server.url()))
    assert (response.body, response.wire_bytes) == (b"page " * 1000, len(packed))
    assert response.header("content-encoding") == coding


async def test_several_content_encoding_headers_are_one_list(serve: Serve, engine: Engine) -> None:
    packed = brotli.compress(gzip.compress(b"page"))
    answer = answer_of(200, {"Content-Encoding": "gzip", "content-encoding": "br"}, packed)
    server = await serve({"/": answer})
    assert (await engine().fetch(Request(server.url()))).body == b"page"


async def test_cookies_do_not_leak_from_page_to_page(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {"Set-Cookie": "a=b"}, b"")})
    fetcher = engine()
    for _ in range(2):
        await fetcher.fetch(Request(server.url()))
    assert server.header("cookie") is None


async def test_a_fetcher_can_be_closed_twice_and_unused(engine: Engine) -> None:
    fetcher = engine()
    await fetcher.close()
    await fetcher.close()


def test_a_fetcher_can_be_made_before_the_event_loop_runs() -> None:
    fetcher = HttpFetcher()

    async def crawl() -> None:
        server = await RawServer({"/": answer_of(200, {}, b"late")}).start()
        assert (await fetcher.fetch(Request(server.url()))).body == b"late"
        await fetcher.close()
        await server.stop()

    asyncio.run(crawl())
