"""HttpFetcher against servers that behave and misbehave."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

import pytest
from conftest import Serve
from raw_server import answer_of, drip, then_close, then_reset, then_stall

from silkline.errors import (
    ConnectError,
    DnsError,
    FetchTimeout,
    ProtocolError,
    TlsError,
    TooLargeError,
)
from silkline.fetch.http import HttpFetcher
from silkline.request import Request

Http = Callable[..., HttpFetcher]


async def test_a_page_comes_back_with_its_bytes_and_headers(serve: Serve, http: Http) -> None:
    server = await serve({"/": answer_of(200, {"X-One": "1", "Content-Type": "text/html"}, b"<p>\xff")})
    request = Request(server.url())
    response = await http().fetch(request)
    assert (response.status, response.body, response.wire_bytes) == (200, b"<p>\xff", 4)
    assert response.headers[:2] == ((b"X-One", b"1"), (b"Content-Type", b"text/html"))
    assert (response.url, response.request, response.history) == (request.url, request, ())
    assert 0 < response.timings.first_byte <= response.timings.total < 30
    assert response.http_version == "1.1"


async def test_connections_are_kept_and_reused(serve: Serve, http: Http) -> None:
    server = await serve({"/": answer_of(200, {}, b"x" * 300_000)})
    fetcher = http()
    for _ in range(3):
        await fetcher.fetch(Request(server.url()))
    assert server.connections == 1


async def test_a_refused_connection_is_a_connect_error(http: Http) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(ConnectError) as caught:
            await http().fetch(Request(f"http://127.0.0.1:{port}/"))
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert caught.value.__cause__ is not None


async def test_an_unknown_name_is_a_dns_error(http: Http) -> None:
    with pytest.raises(DnsError):
        await http().fetch(Request("http://no-such-host.invalid/"))


async def test_names_of_the_hosts_file_resolve(serve: Serve, http: Http) -> None:
    server = await serve({"/": answer_of(200, {}, b"here")})
    response = await http().fetch(Request(f"http://localhost:{server.port}/"))
    assert response.body == b"here"


async def test_an_untrusted_certificate_is_a_tls_error(
    serve: Serve, http: Http, tls_context: ssl.SSLContext
) -> None:
    server = await serve({"/": answer_of(200, {}, b"secret")}, tls=tls_context)
    with pytest.raises(TlsError):
        await http().fetch(Request(server.url()))
    assert server.heads == []
    assert (await http(verify=False).fetch(Request(server.url()))).body == b"secret"


async def test_tls_spoken_to_a_plain_server_is_a_tls_error(http: Http) -> None:
    async def complain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsError):
            await http().fetch(Request(f"https://127.0.0.1:{port}/"))


@pytest.mark.parametrize(
    ("script", "phase"),
    [
        (then_stall(), "read"),
        (then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), "read"),
        (drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x", 0.05), "total"),
        (drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05), "total"),
    ],
    ids=["no answer", "half a body", "dripping body", "dripping headers"],
)
async def test_every_slowness_ends_in_a_timeout_with_its_phase(
    serve: Serve, http: Http, script: object, phase: str
) -> None:
    server = await serve({"/": script})
    fetcher = http(timeout=0.9, read_timeout=0.4)
    with pytest.raises(FetchTimeout) as caught:
        await fetcher.fetch(Request(server.url()))
    assert caught.value.phase == phase


async def test_a_server_that_never_accepts_is_a_connect_timeout(http: Http) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        await asyncio.sleep(0.1)
        with pytest.raises(FetchTimeout) as caught:
            await http(connect_timeout=0.5).fetch(Request(f"http://127.0.0.1:{address[1]}/"))
        for filler in fillers:
            filler.close()
    assert caught.value.phase == "connect"


@pytest.mark.parametrize(
    "script",
    [
        then_close(b""),
        then_reset(b""),
        then_close(b"HTTP/1.1 200 OK\r\nContent-Le"),
        then_close(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"),
        then_reset(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"),
        then_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        then_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"),
        then_close(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello!!"),
        then_close(b"HTTP/1.1 2x0 OK\r\n\r\n"),
        then_close(b"SSH-2.0-OpenSSH_9.6\r\n"),
    ],
    ids=[
        "closed without an answer",
        "reset without an answer",
        "closed inside the headers",
        "body shorter than its length",
        "reset inside the body",
        "chunks without an end",
        "chunk size that is no number",
        "two different lengths",
        "broken status line",
        "another protocol",
    ],
)
async def test_what_is_no_complete_http_message_is_a_protocol_error(
    serve: Serve, http: Http, script: object
) -> None:
    server = await serve({"/": script})
    with pytest.raises(ProtocolError) as caught:
        await http(timeout=10).fetch(Request(server.url()))
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


async def test_a_body_over_the_limit_is_refused(serve: Serve, http: Http) -> None:
    server = await serve(
        {
            "/exact": answer_of(200, {}, b"x" * 1000),
            "/long": answer_of(200, {}, b"x" * 1001),
            "/promised": then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"),
            "/endless": drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5000, 0),
        }
    )
    fetcher = http(max_body=1000, timeout=10)
    assert len((await fetcher.fetch(Request(server.url("/exact")))).body) == 1000
    for target in ("/long", "/promised", "/endless"):
        with pytest.raises(TooLargeError, match="1000"):
            await fetcher.fetch(Request(server.url(target)))


async def test_large_headers_pass_and_huge_ones_are_refused(serve: Serve, http: Http) -> None:
    many = {f"X-{number}": "y" for number in range(200)}
    server = await serve(
        {
            "/large": answer_of(200, {"X": "y" * 20_000}, b"large"),
            "/many": answer_of(200, many, b"many"),
            "/huge": answer_of(200, {"X": "y" * 100_000}, b"huge"),
            "/endless": drip(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 5000 + b"\r\n", 0),
        }
    )
    fetcher = http(timeout=10)
    assert (await fetcher.fetch(Request(server.url("/large")))).body == b"large"
    assert (await fetcher.fetch(Request(server.url("/many")))).body == b"many"
    for target in ("/huge", "/endless"):
        with pytest.raises(TooLargeError):
            await fetcher.fetch(Request(server.url(target)))


async def test_a_cancelled_fetch_is_cancelled_and_nothing_else(serve: Serve, http: Http) -> None:
    server = await serve({"/": then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")})
    task = asyncio.create_task(http().fetch(Request(server.url())))
    await server.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
