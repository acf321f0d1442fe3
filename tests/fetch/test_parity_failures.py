"""One error tree for every engine: each way to fail is one class."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import tracemalloc
from typing import Any

import msgspec
import pytest
from coders import CODERS
from raw_server import Script, Serve, answer_of, drip, then_close, then_reset, then_stall
from site_of_pages import Engine, OpenSite

from silkline.errors import (
    BadUrlError,
    BlockedError,
    ConnectError,
    DecodeError,
    DnsError,
    FetchError,
    FetchTimeout,
    ProtocolError,
    TlsError,
    TooLargeError,
)
from silkline.header import FRAMING
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response


async def test_a_refused_connection_is_a_connect_error(engine: Engine) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(ConnectError) as caught:
            await engine().fetch(Request(f"http://127.0.0.1:{port}/"))
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert caught.value.__cause__ is not None


async def test_what_the_guard_refuses_is_never_connected_to(serve: Serve, engine: Engine) -> None:
    def refuse(host: str, ip: str, port: int) -> None:
        raise BlockedError(f"{host} is {ip}: no")

    server = await serve({"/": answer_of(200, {}, b"")})
    fetcher = engine(guard=refuse)
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(BlockedError, match=f"{host} is (127.0.0.1|::1): no"):
            await fetcher.fetch(Request(f"http://{host}:{server.port}/"))
    assert server.connections == 0


async def test_an_unknown_name_is_a_dns_error(engine: Engine) -> None:
    with pytest.raises(DnsError):
        await engine().fetch(Request("http://no-such-host.invalid/"))


async def test_names_of_the_hosts_file_resolve(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"here")})
    response = await engine().fetch(Request(f"http://localhost:{server.port}/"))
    assert response.body == b"here"


async def test_an_untrusted_certificate_is_a_tls_error(
    serve: Serve, engine: Engine, tls_context: ssl.SSLContext
) -> None:
    server = await serve({"/": answer_of(200, {}, b"secret")}, tls=tls_context)
    with pytest.raises(TlsError):
        await engine().fetch(Request(server.url()))
    assert server.heads == []
    assert (await engine(verify=False).fetch(Request(server.url()))).body == b"secret"


async def test_tls_spoken_to_a_plain_server_is_a_tls_error(engine: Engine) -> None:
    async def complain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsError):
            await engine().fetch(Request(f"https://127.0.0.1:{port}/"))


async def test_every_slowness_ends_in_a_timeout_with_its_phase(serve: Serve, engine: Engine) -> None:
    slow: dict[str, tuple[Script, str]] = {
        "/no-answer": (then_stall(), "first_byte"),
        "/half-a-body": (then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), "read"),
        "/dripping-headers": (drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05), "first_byte"),
        "/dripping-body": (drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x", 0.05), "total"),
    }
    server = await serve({target: script for target, (script, _) in slow.items()})
    fetcher = engine(timeout=2.0, read_timeout=1.0)
    fetches = (fetcher.fetch(Request(server.url(target))) for target in slow)
    errors = await asyncio.gather(*fetches, return_exceptions=True)
    assert all(isinstance(error, FetchTimeout) for error in errors)
    phases = [error.phase for error in errors if isinstance(error, FetchTimeout)]
    assert phases == [phase for _, phase in slow.values()]


async def test_a_body_that_drips_is_given_up(serve: Serve, engine: Engine) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
    server = await serve({"/slow": drip(head, b"x", 0.1), "/steady": drip(head, b"x" * 500, 0.1)})
    fetcher = engine(min_speed=1_000, min_speed_window=1.0)
    slow, steady = await asyncio.gather(
        fetcher.fetch(Request(server.url("/slow"))),
        fetcher.fetch(Request(server.url("/steady"))),
        return_exceptions=True,
    )
    assert isinstance(slow, FetchTimeout)
    assert slow.phase == "speed"
    assert isinstance(steady, Response)
    assert len(steady.body) == 9999


async def test_a_server_that_does_not_speak_tls_is_a_timeout_of_tls(engine: Engine) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(FetchTimeout) as caught:
        await engine(connect_timeout=0.5).fetch(Request(f"https://127.0.0.1:{port}/"))
    assert caught.value.phase == "tls"
    server.close()


async def test_waiting_for_a_free_connection_is_not_connecting(serve: Serve, engine: Engine) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.4)
        writer.write(answer_of(200, {}, b"at last"))

    server = await serve({"/": slow})
    fetcher = engine(limit=1, connect_timeout=0.5, timeout=30)
    fetches = (fetcher.fetch(Request(server.url(f"/?{n}"))) for n in range(4))
    server.routes |= {f"/?{n}": slow for n in range(4)}
    assert [response.body for response in await asyncio.gather(*fetches)] == [b"at last"] * 4


async def test_a_server_that_never_accepts_is_a_connect_timeout(engine: Engine) -> None:
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
            await engine(connect_timeout=0.5).fetch(Request(f"http://127.0.0.1:{address[1]}/"))
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
        then_reset(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        then_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        then_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"),
        then_close(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello!!"),
        then_close(b"HTTP/1.1 2x0 OK\r\n\r\n"),
        then_close(b"SSH-2.0-OpenSSH_9.6\r\n"),
        then_stall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nxyz"),
    ],
    ids=[
        "closed without an answer",
        "reset without an answer",
        "closed inside the headers",
        "body shorter than its length",
        "reset inside the body",
        "reset inside a body without a length",
        "chunks without an end",
        "chunk size that is no number",
        "two different lengths",
        "broken status line",
        "another protocol",
        "a switch of protocols",
    ],
)
async def test_what_is_no_complete_http_message_is_a_protocol_error(
    serve: Serve, engine: Engine, script: Script
) -> None:
    server = await serve({"/": script})
    with pytest.raises(ProtocolError) as caught:
        await engine(timeout=10).fetch(Request(server.url()))
    assert "\n" not in str(caught.value)


async def test_a_body_over_the_limit_is_refused(serve: Serve, engine: Engine) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = await serve(
        {
            "/exact": answer_of(200, {}, b"x" * 1000),
            "/long": answer_of(200, {}, b"x" * 1001),
            "/chunked": b"%s3e9\r\n%s\r\n0\r\n\r\n" % (chunked, b"x" * 1001),
            "/promised": then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"),
            "/endless": drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5000, 0),
        }
    )
    fetcher = engine(max_body=1000, timeout=10)
    assert len((await fetcher.fetch(Request(server.url("/exact")))).body) == 1000
    for target in ("/long", "/chunked", "/promised", "/endless"):
        with pytest.raises(TooLargeError, match="1000"):
            await fetcher.fetch(Request(server.url(target)))


async def test_large_headers_pass_and_huge_ones_are_refused(serve: Serve, engine: Engine) -> None:
    many = {f"X-{number}": "y" for number in range(200)}
    server = await serve(
        {
            "/large": answer_of(200, {"X": "y" * 20_000}, b"large"),
            "/many": answer_of(200, many, b"many"),
            "/huge": answer_of(200, {"X": "y" * 100_000}, b"huge"),
            "/endless": drip(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 5000 + b"\r\n", 0),
        }
    )
    fetcher = engine(timeout=10)
    assert (await fetcher.fetch(Request(server.url("/large")))).body == b"large"
    assert (await fetcher.fetch(Request(server.url("/many")))).body == b"many"
    for target in ("/huge", "/endless"):
        with pytest.raises(TooLargeError):
            await fetcher.fetch(Request(server.url(target)))


async def test_a_cancelled_fetch_is_cancelled_and_nothing_else(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": then_stall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")})
    task = asyncio.create_task(engine().fetch(Request(server.url())))
    await server.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("url", ["http://", "no scheme", "http://[::1/", "http://h:99999/"])
async def test_what_is_no_url_is_a_bad_url(engine: Engine, url: str) -> None:
    with pytest.raises(BadUrlError):
        await engine().fetch(Request(url))


async def test_other_schemes_are_blocked(engine: Engine) -> None:
    with pytest.raises(BlockedError):
        await engine().fetch(Request("ftp://127.0.0.1/"))


@pytest.mark.parametrize(
    "fields",
    [{"method": "GE T\r\nX: y"}, {"headers": {"X": "a\r\nInjected: b"}}, {"headers": {"X\r\nY": "z"}}],
)
async def test_a_request_cannot_smuggle_lines(serve: Serve, engine: Engine, fields: dict[str, Any]) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    with pytest.raises(BadUrlError):
        await engine().fetch(Request(server.url(), **fields))
    assert server.heads == []


@pytest.mark.parametrize(
    "headers",
    [*({name.title(): "5"} for name in FRAMING), {"Host": "a.test", "HOST": "b.test"}],
    ids=lambda headers: min(headers),
)
async def test_nobody_frames_a_message_or_steers_its_connection_but_the_engine(
    open_site: OpenSite, headers: dict[str, str]
) -> None:
    """Else the server would read the next request on the connection as the rest of this one, or wait."""

    async def meddle(request: Request, call_next: CallNext) -> Response:
        meant = request.headers.get("X-Meddle")
        return await call_next(msgspec.structs.replace(request, headers=headers) if meant else request)

    pages = {"/": (200, {}, b"fine"), "/own": (200, {}, b"own"), "/hop": (200, {}, b"hop")}
    site = await open_site(pages, hops=[meddle])
    for target, given, body in (("/own", headers, None), ("/hop", {"X-Meddle": "1"}, b"12345")):
        with pytest.raises(BadUrlError, match=r"^header '.*' (must not be given: |is there twice)"):
            await site.fetch(target, headers=given, method="POST" if body else "GET", body=body)
        assert (await site.fetch("/")).body == b"fine"
    assert site.targets == ["/", "/"]


async def test_another_host_may_be_named(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    await engine().fetch(Request(server.url(), headers={"Host": "shop.example"}))
    assert [line.lower() for line in server.heads[0].split("\r\n")].count("host: shop.example") == 1
    assert server.heads[0].lower().count("\r\nhost:") == 1


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_a_bomb_is_refused_and_never_held_in_memory(serve: Serve, engine: Engine, coding: str) -> None:
    bomb = CODERS[coding](b"\0" * 50_000_000)
    server = await serve({"/": answer_of(200, {"Content-Encoding": coding}, bomb)})
    fetcher = engine(max_body=1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            await fetcher.fetch(Request(server.url()))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", ["gzip", "nonsense"])
async def test_a_body_that_cannot_be_decoded_is_a_decode_error(
    serve: Serve, engine: Engine, coding: str
) -> None:
    server = await serve({"/": answer_of(200, {"Content-Encoding": coding}, b"plain after all")})
    with pytest.raises(DecodeError):
        await engine().fetch(Request(server.url()))


async def test_a_failed_body_costs_its_connection_only(serve: Serve, engine: Engine) -> None:
    server = await serve(
        {
            "/bad": answer_of(200, {"Content-Encoding": "x"}, b"x" * 500_000),
            "/good": answer_of(200, {}, b"good"),
        }
    )
    fetcher = engine(timeout=10)
    for _ in range(3):
        with pytest.raises(DecodeError):
            await fetcher.fetch(Request(server.url("/bad")))
        assert (await fetcher.fetch(Request(server.url("/good")))).body == b"good"


async def test_idle_connections_that_all_turn_out_to_be_closed_fail_no_page(engine: Engine) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    together = asyncio.Barrier(8)
    connections = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if connections <= 8:
            await together.wait()
        writer.write(answer)
        await reader.read(1)  # a second request, which gets no answer
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        fetcher = engine(timeout=10)
        await asyncio.gather(*(fetcher.fetch(Request(url)) for _ in range(8)))
        assert (await fetcher.fetch(Request(url))).body == b"ok"
        assert connections == 9
        await fetcher.close()


async def hint_for_ever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


NO_HTTP = "the answer is not valid HTTP: .* [(]"
LONG_HEADER = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 3_000 + b"\r\nContent-Length: 0\r\n\r\n"
MANY_FIELDS = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5_500 + b"Content-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "cause", "said"),
    [
        (hint_for_ever, "protocol", f"{NO_HTTP}more than 64 interim answers[)]"),
        (then_close(b"SSH-2.0-OpenSSH\r\n"), "protocol", f"{NO_HTTP}it does not begin like HTTP"),
        (then_close(b"<h1>HTTP/0.9</h1>"), "protocol", f"{NO_HTTP}it does not begin like HTTP"),
        (b"HTTP/1.1 -1 x\r\n\r\n", "protocol", f"{NO_HTTP}its status line is none"),
        (LONG_HEADER, "too_large", "the headers are over the limit of 2000 bytes [(]max_headers[)]"),
        (
            answer_of(200, {}, b"x" * 2_000),
            "too_large",
            "the body is over the limit of 1000 bytes [(]max_body[)]",
        ),
        (
            answer_of(200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 2_000, mtime=0)),
            "too_large",
            "the body is over the limit of 1000 bytes [(]max_body[)]",
        ),
    ],
)
async def test_what_is_wrong_with_an_answer_is_said_in_the_same_words(
    serve: Serve, engine: Engine, answer: Any, cause: str, said: str
) -> None:
    server = await serve({"/": answer})
    fetcher = engine(max_headers=2_000, max_body=1_000, read_timeout=5.0)
    with pytest.raises(FetchError, match=said) as error:
        await fetcher.fetch(Request(server.url()))
    assert error.value.cause == cause


async def test_too_many_fields_are_said_to_be_so(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": MANY_FIELDS})
    with pytest.raises(TooLargeError, match="the header has more than 5000 fields"):
        await engine().fetch(Request(server.url()))


async def test_an_untrusted_certificate_comes_with_what_to_do(
    serve: Serve, engine: Engine, tls_context: ssl.SSLContext
) -> None:
    server = await serve({"/": b""}, tls=tls_context)
    with pytest.raises(TlsError, match=r"[(]self-signed .*; trust its .* --ca-file FILE, or .* --insecure"):
        await engine().fetch(Request(server.url()))
