"""Cookies on the wire of every engine."""

from __future__ import annotations

from raw_server import Serve, answer_of
from site_of_pages import Engine

from silkline.fetch.cookies.hop import cookie_hop
from silkline.fetch.cookies.sessions import Sessions
from silkline.request import Request

OK = answer_of(200, {}, b"ok")


def setting(*cookies: str, status: int = 200, location: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status} Any", *(f"Set-Cookie: {cookie}" for cookie in cookies)]
    lines += [f"Location: {location}"] * bool(location)
    return "\r\n".join([*lines, "Content-Length: 2", "", ""]).encode() + b"ok"


async def test_cookies_come_back_within_their_session_alone(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": setting("a=1", 'odd[name]={"x":1,"y":"z"}', "ü=ö"), "/get": OK})
    sessions = Sessions()
    fetcher = engine(hops=[cookie_hop(sessions)])
    first = await fetcher.fetch(Request(server.url(), session="s"))
    again = await fetcher.fetch(Request(server.url("/get"), session="s"))
    await fetcher.fetch(Request(server.url("/get")))
    assert server.header("cookie", 0) is None
    assert server.header("cookie", 1) == 'a=1; odd[name]={"x":1,"y":"z"}; ü=ö'.encode().decode("latin-1")
    assert server.header("cookie", 2) is None
    assert first.request.headers == again.request.headers == {}


async def test_a_cookie_of_a_redirect_is_there_for_the_next_hop(serve: Serve, engine: Engine) -> None:
    server = await serve({"/a": setting("gate=1", status=302, location="/b"), "/b": OK})
    await engine(hops=[cookie_hop(Sessions())]).fetch(Request(server.url("/a")))
    assert [server.header("cookie", n) for n in (0, 1)] == [None, "gate=1"]


async def test_a_gate_that_redirects_to_itself_until_its_cookie_is_there(
    serve: Serve, engine: Engine
) -> None:
    server = await serve({"/b": OK})
    server.routes["/"] = setting("seen=1", status=302, location="/")
    fetcher = engine(hops=[cookie_hop(Sessions())])

    async def gate(writer: object) -> None:
        body = OK if server.header("cookie") else setting("seen=1", status=302, location="/")
        writer.write(body)  # type: ignore[attr-defined]

    server.routes["/"] = gate
    assert (await fetcher.fetch(Request(server.url()))).status == 200


async def test_cookies_of_one_host_are_not_sent_to_another(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": setting("a=1", "b=1; Domain=localhost", "c=1; Domain=0.0.1"), "/get": OK})
    fetcher = engine(hops=[cookie_hop(Sessions())])
    await fetcher.fetch(Request(server.url()))
    for host in ("localhost", "127.0.0.1"):
        await fetcher.fetch(Request(f"http://{host}:{server.port}/get"))
    assert [server.header("cookie", n) for n in (1, 2)] == [None, "a=1"]


async def test_a_cookie_header_of_the_requests_own_goes_first(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": setting("a=jar", "b=jar"), "/get": OK})
    fetcher = engine(hops=[cookie_hop(Sessions())])
    await fetcher.fetch(Request(server.url()))
    await fetcher.fetch(Request(server.url("/get"), headers={"cookie": "a=own; c=own"}))
    assert server.header("cookie") == "a=own; c=own; b=jar"
