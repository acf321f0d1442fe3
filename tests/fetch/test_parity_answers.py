"""Answers that break the standard: each is read, or refused for the same reason, by every engine."""

from __future__ import annotations

import asyncio

import pytest
from raw_server import Script, Serve, answer_of, then_close
from site_of_pages import Engine

from silkline.errors import FetchError, ProtocolError, ProxyError, TooLargeError
from silkline.request import Request

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = b"2\r\nok\r\n0\r\n\r\n"

READ: dict[str, tuple[bytes, int, bytes]] = {
    # RFC 9112, section 6.3: what follows the body is discarded, and the connection with it.
    "more than its length": (OK + b"Content-Length: 2\r\n\r\nok and more", 200, b"ok"),
    "more, and the end": (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok and more", 200, b"ok"),
    "a second answer": (OK + b"Content-Length: 2\r\n\r\nok" + answer_of(200, {}, b"evil"), 200, b"ok"),
    "204 with a body": (b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok", 204, b""),
    "204 with chunks": (b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS, 204, b""),
    "304 with a body": (b"HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\nok", 304, b""),
    # RFC 9110, section 8.6: the same length twice is that length.
    "a length twice": (OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "a list of lengths": (OK + b"Content-Length: 2, 2\r\n\r\nok", 200, b"ok"),
    # Fields whose names are none are left out; the answer does not depend on them.
    "a name with a space": (OK + b"X y: z\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "space behind a name": (OK + b"X-y : z\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "a name in UTF-8": (OK + "X-é: z\r\nContent-Length: 2\r\n\r\nok".encode(), 200, b"ok"),
    "no name": (OK + b": z\r\n goes on\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    # RFC 9112, section 2.2: and lines that begin with white space before the first one are not read.
    "space before the first field": (
        OK + b" Content-Encoding: br\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
    "space before two lines": (OK + b"\tLocation: /\r\n X: y\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "a bad name after an interim answer": (
        b"HTTP/1.1 103 Early\r\nX y: z\r\n\r\n" + OK + b"X y: z\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
    "many fields": (OK + b"X: y\r\n" * 4_000 + b"Content-Length: 2\r\n\r\nok", 200, b"ok"),
    # A program behind a server that speaks HTTP/2 may write that into a line which HTTP/2 does not have.
    "a version of the server in front": (b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "a status beyond all classes": (b"HTTP/1.1 999 No\r\nContent-Length: 2\r\n\r\nok", 999, b"ok"),
}

REFUSED: dict[str, tuple[bytes, type[FetchError]]] = {
    "two different lengths": (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!", ProtocolError),
    "a list of different lengths": (OK + b"Content-Length: 2, 3\r\n\r\nok!", ProtocolError),
    "a length and chunks": (  # RFC 9112, section 6.3: ought to be handled as an error
        OK + b"Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
        ProtocolError,
    ),
    "a length that is too large": (OK + b"Content-Length: 9223372036854775806\r\n\r\nok", TooLargeError),
    "a length beyond 64 bits": (OK + b"Content-Length: " + b"9" * 26 + b"\r\n\r\nok", TooLargeError),
    "a length that is no number": (OK + b"Content-Length: many\r\n\r\nok", ProtocolError),
    "a coding that was not asked for": (
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
        ProtocolError,
    ),
    "two different locations": (
        b"HTTP/1.1 302 F\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
        ProtocolError,
    ),
    "status 000": (b"HTTP/1.1 000 X\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "status 099": (b"HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a status of four digits": (b"HTTP/1.1 2000 X\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "HTTP/2 in a line of HTTP/1": (b"HTTP/2 200\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "HTTP/3 in a line of HTTP/1": (b"HTTP/3 200 \r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a version that does not exist": (b"HTTP/2.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "version 0.9": (b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a version in lower case": (b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "an empty line first": (b"\r\n" + OK + b"Content-Length: 2\r\n\r\nok", ProtocolError),
    "NUL in a name": (OK + b"X\0y: z\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "NUL in a value": (OK + b"X: y\0z\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a bare CR in a name": (OK + b"X y\rz: a\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a bare CR in a value": (OK + b"X: y\rz\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a line without a colon": (OK + b"garbage\r\nContent-Length: 2\r\n\r\nok", ProtocolError),
    "a header without an end": (OK + b"X: y\r\n" * 40_000, TooLargeError),
}


def byte_by_byte(data: bytes) -> Script:
    """Each byte by itself, as far as the network lets it be."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for byte in data:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    return script


@pytest.mark.parametrize("case", READ)
async def test_what_can_be_read_is_read(serve: Serve, engine: Engine, case: str) -> None:
    answer, status, body = READ[case]
    server = await serve({"/": answer, "/end": then_close(answer), "/next": answer_of(200, {}, b"next")})
    fetcher = engine(timeout=10)
    for target in ("/", "/end"):
        response = await fetcher.fetch(Request(server.url(target)))
        assert (response.status, response.body) == (status, body)
        assert b"X y" not in dict(response.headers)
        # Nothing of what came too much is taken for the next answer.
        assert (await fetcher.fetch(Request(server.url("/next")))).body == b"next"


@pytest.mark.parametrize("case", ["a name with a space", "a length twice", "204 with a body"])
async def test_it_is_read_in_whatever_pieces_it_comes(serve: Serve, engine: Engine, case: str) -> None:
    answer, status, body = READ[case]
    server = await serve({"/": byte_by_byte(answer)})
    response = await engine(timeout=10).fetch(Request(server.url()))
    assert (response.status, response.body) == (status, body)


async def test_a_long_body_follows_a_header_that_had_to_be_mended(serve: Serve, engine: Engine) -> None:
    body = b"0123456789" * 200_000
    head = OK + b"X y: z\r\nContent-Length: %d\r\n\r\n" % len(body)
    server = await serve({"/": head + body, "/more": then_close(head + body + b"more")})
    fetcher = engine(timeout=20)
    for target in ("/", "/more"):
        assert (await fetcher.fetch(Request(server.url(target)))).body == body


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_is_refused_for_the_same_reason(serve: Serve, engine: Engine, case: str) -> None:
    answer, kind = REFUSED[case]
    server = await serve({"/": then_close(answer)})
    with pytest.raises(kind) as caught:
        await engine(timeout=10).fetch(Request(server.url()))
    assert type(caught.value) is kind
    assert "<" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://a.example/", "https://a.example/"])
@pytest.mark.parametrize("garbage", [b"SSH-2.0-x\r\n", b"\x05\xff", b"<html>no</html>", b"HTTP/1.1 20"])
async def test_a_proxy_that_does_not_speak_http_is_a_proxy_error(
    engine: Engine, url: str, garbage: bytes
) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(garbage)
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ProxyError) as caught:
            await engine(timeout=10).fetch(Request(url, proxy=f"http://127.0.0.1:{port}"))
    assert not caught.value.refused
    assert "RawResponseMessage" not in str(caught.value)


async def test_the_version_is_the_one_that_is_spoken(serve: Serve, engine: Engine) -> None:
    head = b" 200 OK\r\nContent-Length: 0\r\n\r\n"
    server = await serve(
        {f"/{version}": f"HTTP/{version}".encode() + head for version in ("1.0", "1.1", "2.0")}
    )
    fetcher = engine()
    versions = [
        (await fetcher.fetch(Request(server.url(f"/{said}")))).http_version for said in ("1.0", "1.1", "2.0")
    ]
    assert versions == ["1.0", "1.1", "1.1"]
