"""Sessions that take turns, over every engine: each with its cookies, until it is blocked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from raw_server import RawServer, Serve, answer_of
from site_of_pages import Engine

from silkline.errors import BannedError, FetchError
from silkline.fetch.bans import MARKERS, MAX_MARKED, Bans
from silkline.fetch.cookies.hop import cookie_hop
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.middleware import compose
from silkline.fetch.session_pool import STRIKES, SessionPool
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response

FORBIDDEN = answer_of(403, {}, b"go away")


def pooled(engine: Engine, size: int, sessions: Sessions) -> CallNext:
    return compose([SessionPool(size, sessions)], engine(hops=[cookie_hop(sessions)]).fetch)


def counting(server: RawServer, blocked: set[str]) -> None:
    """Gives each visitor without a cookie a number, and refuses the blocked ones."""
    numbers = iter(range(1, 1_000))

    async def script(writer: Any) -> None:
        cookie = (server.header("cookie") or "").removeprefix("n=")
        if cookie in blocked:
            writer.write(FORBIDDEN)
        else:
            number = cookie or str(next(numbers))
            writer.write(answer_of(200, {"Set-Cookie": f"n={number}"}, number.encode()))

    server.routes["/"] = script


async def visit(fetch: CallNext, server: RawServer, times: int) -> Counter[bytes]:
    request = Request(server.url())
    bodies = Counter[bytes]()
    for _ in range(times):
        response = await fetch(request)
        assert response.request is request
        bodies[response.body] += 1
    return bodies


async def test_sessions_take_turns_and_each_keeps_its_cookies(serve: Serve, engine: Engine) -> None:
    server = await serve()
    counting(server, set())
    seen = await visit(pooled(engine, 3, Sessions()), server, 60)
    assert set(seen) == {b"1", b"2", b"3"}
    assert min(seen.values()) > 5


async def test_a_blocked_session_is_replaced_and_no_page_is_lost(serve: Serve, engine: Engine) -> None:
    server, blocked, sessions = await serve(), set[str](), Sessions()
    counting(server, blocked)
    fetch = pooled(engine, 3, sessions)
    await visit(fetch, server, 40)
    blocked.add("2")
    seen = await visit(fetch, server, 60)
    assert set(seen) == {b"1", b"3", b"4"}
    assert server.targets.count("/") == 101  # the one that was refused was tried again at once
    assert sorted(sessions.get(f"pool-{n}").generation for n in (1, 2, 3)) == [0, 0, 1]


async def test_a_page_that_is_forbidden_to_all_retires_a_session_only_after_several(
    serve: Serve, engine: Engine
) -> None:
    server, sessions = await serve({"/": FORBIDDEN}), Sessions()
    fetch = pooled(engine, 2, sessions)
    for _ in range(STRIKES - 1):
        assert (await fetch(Request(server.url()))).status == 403
    assert [sessions.get(name).generation for name in ("pool-1", "pool-2")] == [0, 0]
    await fetch(Request(server.url()))
    assert [sessions.get(name).generation for name in ("pool-1", "pool-2")] == [1, 1]


async def test_a_captcha_for_every_session_is_a_failure(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"<title>Pardon Our Interruption</title>")})
    with pytest.raises(BannedError, match="'Pardon Our Interruption' in place of the page"):
        await pooled(engine, 2, Sessions())(Request(server.url()))


async def test_a_named_session_is_left_alone(serve: Serve, engine: Engine) -> None:
    server, sessions = await serve({"/": FORBIDDEN}), Sessions()
    fetch = pooled(engine, 2, sessions)
    assert (await fetch(Request(server.url(), session="ann"))).status == 403
    assert len(server.heads) == 1


async def test_failures_in_a_row_retire_a_session(serve: Serve, engine: Engine) -> None:
    server, sessions = await serve(), Sessions()
    await server.stop()
    fetch = pooled(engine, 2, sessions)
    for _ in range(2 * STRIKES):
        with pytest.raises(FetchError):
            await fetch(Request(server.url()))
    assert sum(sessions.get(name).generation for name in ("pool-1", "pool-2")) >= 1


def response(status: int = 200, body: bytes = b"", **headers: str) -> Response:
    pairs = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return Response("http://h.test/", status, pairs, body, Request("http://h.test/"))


def test_what_is_a_ban_and_what_is_none() -> None:
    bans = Bans(markers=(*MARKERS, "Zugang gesperrt"))
    assert bans.reason(response(429)) == "status 429"
    assert bans.reason(response(cf_mitigated="challenge")) == "a challenge page"
    assert bans.reason(response(body=b"<h1>Zugang gesperrt")) == "a page with 'Zugang gesperrt'"
    assert bans.reason(response(404)) is None
    assert bans.reason(response(body=b'<div class="g-recaptcha">Contact us</div>')) is None
    assert bans.reason(response(body=b"px-captcha" + b" " * MAX_MARKED)) is None
    assert Bans([503], []).reason(response(403, b"px-captcha")) is None
    assert Bans([503], []).reason(response(503)) == "status 503"
