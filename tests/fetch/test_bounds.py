"""No answer costs more than a bounded amount of memory and time, over every engine."""

from __future__ import annotations

import gc
import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import pytest
from coders import CODERS
from raw_server import Script, Serve, answer_of, drip, then_close, then_reset, then_stall
from site_of_pages import Engine

from silkline.errors import DecodeError, FetchError, FetchTimeout, ProtocolError, TooLargeError
from silkline.fetch.decode import MAX_LAYERS
from silkline.request import Request

MB = 1_000_000
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


ENDLESS: dict[str, Callable[[], Script]] = {
    "interim answers": lambda: drip(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100, 0),
    "a status line": lambda: drip(b"HTTP/1.1 200 ", b"O" * 5_000, 0),
    "one header": lambda: drip(HEAD + b"X: ", b"y" * 5_000, 0),
    "headers": lambda: drip(HEAD, b"X: y\r\n" * 1_000, 0),
    "trailers": lambda: drip(CHUNKED + b"1\r\nx\r\n0\r\n", b"X: y\r\n" * 1_000, 0),
    "a body": lambda: drip(HEAD + b"\r\n", b"x" * 50_000, 0),
    "chunks": lambda: drip(CHUNKED, b"1\r\nx\r\n" * 5_000, 0),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_never_ends_is_refused_before_it_fills_the_memory(
    serve: Serve, engine: Engine, what: str
) -> None:
    server = await serve({"/": ENDLESS[what]()})
    fetcher = engine(timeout=60, read_timeout=60, max_body=100_000)
    with memory_below(12 * MB), pytest.raises((TooLargeError, ProtocolError)):
        await fetcher.fetch(Request(server.url()))


BROKEN: dict[str, Callable[[], Script]] = {
    **ENDLESS,
    "no HTTP": lambda: then_close(b"no HTTP" * 20_000),
    "a header that is cut": lambda: then_close(HEAD + b"X: " + b"y" * 100_000),
    "a body that is cut": lambda: then_close(HEAD + b"Content-Length: 100001\r\n\r\n" + b"x" * 100_000),
    "a body that is reset": lambda: then_reset(CHUNKED + b"1ffff\r\n" + b"x" * 100_000),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_what_came_of_a_broken_answer_is_given_back_without_the_garbage_collector(
    serve: Serve, engine: Engine, what: str
) -> None:
    """A crawl lets it run once in 50,000 objects, and so much would wait for it."""
    server = await serve({"/": BROKEN[what]()})
    fetcher = engine(timeout=60, read_timeout=60, max_body=200_000)

    async def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(FetchError):
                await fetcher.fetch(Request(server.url()))

    await fail(2)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await fail(5)
        gc.collect()
        left = [str(thing.tb_frame) for thing in gc.garbage if isinstance(thing, TracebackType)]
        assert not [frame for frame in left if "/silkline/" in frame]  # the server's own may be there
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(
    "start",
    [
        CHUNKED + b"5;ext=",
        CHUNKED + b"1\r\nx\r\n0\r\nX: ",
        HEAD + b"Content-Length: 9\r\n\r\nx",
        HEAD + b"X: y\r\n",
    ],
    ids=["a chunk's extension", "a trailer", "a body", "the headers"],
)
async def test_what_stops_in_the_middle_is_given_up_at_the_read_limit(
    serve: Serve, engine: Engine, start: bytes
) -> None:
    server = await serve({"/": then_stall(start)})
    with pytest.raises(FetchTimeout):
        await engine(timeout=30, read_timeout=0.5).fetch(Request(server.url()))


async def test_an_endless_chunk_extension_does_not_hold_off_the_read_limit(
    serve: Serve, engine: Engine
) -> None:
    server = await serve({"/": drip(CHUNKED + b"5;ext=", b"a" * 1_000, 0.01)})
    with memory_below(12 * MB), pytest.raises(FetchError):
        await engine(timeout=30, read_timeout=0.5).fetch(Request(server.url()))


@pytest.mark.parametrize("codings", [*CODERS, "gzip, gzip", "br, gzip", "zstd, zstd, deflate"])
async def test_a_bomb_stops_at_the_limit_of_a_body(serve: Serve, engine: Engine, codings: str) -> None:
    bomb = b"\0" * 50 * MB
    for coding in codings.split(", "):
        bomb = CODERS[coding](bomb)
    server = await serve({"/": answer_of(200, {"Content-Encoding": codings}, bomb)})
    with memory_below(4 * MB), pytest.raises(TooLargeError):
        await engine(max_body=MB).fetch(Request(server.url()))


async def test_more_bytes_on_the_wire_than_may_be_decoded_are_refused(serve: Serve, engine: Engine) -> None:
    """Junk behind the coded data is ignored, but not for ever."""
    head = HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"small")
    server = await serve({"/": drip(head, b"\0" * 50_000, 0)})
    with memory_below(8 * MB), pytest.raises(TooLargeError):
        await engine(max_body=MB).fetch(Request(server.url()))


@pytest.mark.parametrize(
    ("codings", "body"),
    [
        (", ".join(["gzip"] * (MAX_LAYERS + 1)), b"x"),
        ("gzip", gzip.compress(b"") * 2_000),
    ],
    ids=["layers", "members"],
)
async def test_layers_and_members_of_codings_are_counted(
    serve: Serve, engine: Engine, codings: str, body: bytes
) -> None:
    server = await serve({"/": answer_of(200, {"Content-Encoding": codings}, body)})
    with pytest.raises(DecodeError):
        await engine().fetch(Request(server.url()))


async def test_the_limit_of_headers_is_a_setting(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {"X": "y" * 9_000, "Y": "z" * 9_000}, b"large")})
    assert (await engine().fetch(Request(server.url()))).body == b"large"
    with pytest.raises(TooLargeError, match="headers"):
        await engine(max_headers=16_384).fetch(Request(server.url()))
