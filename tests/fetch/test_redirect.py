"""Redirects, over every fetcher: where they lead, what goes along, and where they end."""

from __future__ import annotations

import asyncio
import base64

import pytest
from raw_server import Serve, answer_of, drip, then_reset, then_stall
from site_of_pages import Engine, OpenSite

from silkline.errors import BadUrlError, BlockedError, FetchTimeout, TooManyRedirects
from silkline.request import Request

HOME = (200, {}, b"home")


def to(location: str, status: int = 302) -> tuple[int, dict[str, str], bytes]:
    return status, {"Location": location}, b"moved"


async def test_each_redirect_code_is_followed_and_remembered(open_site: OpenSite) -> None:
    codes = (301, 302, 303, 307, 308)
    pages = {
        f"/{code}": to(f"/{after}", code) for code, after in zip(codes, [*codes[1:], "end"], strict=True)
    }
    site = await open_site(pages | {"/end": HOME})
    request = Request(site.url("/301"))
    response = await site.fetcher.fetch(request)
    assert (response.status, response.body, response.url) == (200, b"home", site.url("/end"))
    assert response.history == tuple(site.url(f"/{code}") for code in codes)
    assert response.request == request
    assert response.timings.total >= response.timings.first_byte >= 0


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 306, 404])
async def test_other_statuses_are_answers_even_with_a_location(open_site: OpenSite, status: int) -> None:
    body = b"" if status == 304 else b"stay"
    site = await open_site({"/": (status, {"Location": "/away"}, body)})
    response = await site.fetch()
    assert (response.status, response.body, response.history) == (status, body, ())
    assert site.targets == ["/"]


@pytest.mark.parametrize("headers", [{}, {"Location": ""}, {"Location": "  "}])
async def test_a_redirect_to_nowhere_is_an_answer_with_its_body(
    open_site: OpenSite, headers: dict[str, str]
) -> None:
    site = await open_site({"/": (302, headers, b"hi there")})
    response = await site.fetch()
    assert (response.status, response.body, response.history) == (302, b"hi there", ())


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("page", "/dir/page"),
        ("?q=1", "/dir/start?q=1"),
        ("../up", "/up"),
        ("/a/./b/../c", "/a/c"),
        ("/a b/c?d=e f", "/a%20b/c?d=e%20f"),
        ("/fa/\u0627\u0639", "/fa/%D8%A7%D8%B9"),
        ("/q?Signature=q%2BP%2Fw%3D", "/q?Signature=q%2BP%2Fw%3D"),
        ("\\back\\slash", "/back/slash"),
        ("/tab\tbed ", "/tabbed"),
    ],
)
async def test_odd_locations_lead_where_a_browser_would_go(
    open_site: OpenSite, location: str, target: str
) -> None:
    site = await open_site({"/dir/start": to(location), target: HOME})
    response = await site.fetch("/dir/start")
    assert (response.status, response.url, site.targets[-1]) == (200, site.url(target), target)


@pytest.mark.parametrize("slashes", ["//", "///", "HTTP://"])
async def test_a_location_may_lead_to_another_host(open_site: OpenSite, slashes: str) -> None:
    site = await open_site({"/": to(slashes + "{other}/end"), "/end": HOME})
    assert (await site.fetch()).url == f"http://{site.other_host}/end"


async def test_a_location_that_is_no_utf8_is_latin1(serve: Serve, engine: Engine) -> None:
    server = await serve(
        {
            "/": b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n",
            "/caf%C3%A9": answer_of(200, {}, b"coffee"),
        }
    )
    assert (await engine().fetch(Request(server.url()))).body == b"coffee"


@pytest.mark.parametrize(
    "location", ["data:text/html,x", "ftp://h.test/", "javascript:x()", "file:///etc/passwd"]
)
async def test_other_schemes_are_blocked(open_site: OpenSite, location: str) -> None:
    site = await open_site({"/": to(location)})
    with pytest.raises(BlockedError, match="redirect from"):
        await site.fetch()


@pytest.mark.parametrize("location", ["http://", "http://[::1/", "http://a b/", "/" + "x" * 9000])
async def test_a_location_that_is_no_url_is_a_bad_url(open_site: OpenSite, location: str) -> None:
    site = await open_site({"/": to(location)})
    with pytest.raises(BadUrlError, match="redirect from"):
        await site.fetch()


async def test_the_limit_counts_redirects(open_site: OpenSite) -> None:
    site = await open_site({f"/{n}": to(f"/{n + 1}") for n in range(5)} | {"/5": HOME}, max_redirects=4)
    assert (await site.fetch("/1")).body == b"home"
    with pytest.raises(TooManyRedirects, match="4"):
        await site.fetch("/0")


async def test_a_loop_ends_before_the_limit(open_site: OpenSite) -> None:
    site = await open_site({"/a": to("/b"), "/b": to("/a")}, max_redirects=1000)
    with pytest.raises(TooManyRedirects, match="loop"):
        await site.fetch("/a")
    assert len(site.targets) < 6


async def test_a_page_may_redirect_to_itself_once(serve: Serve, engine: Engine) -> None:
    server = await serve()

    async def gate(writer: asyncio.StreamWriter) -> None:
        first = len(server.heads) == 1
        writer.write(
            answer_of(302, {"Location": "/", "Set-Cookie": "seen=1"}, b"") if first else answer_of(*HOME)
        )

    server.routes["/"] = gate
    response = await engine().fetch(Request(server.url()))
    assert (response.body, response.history) == (b"home", (server.url(),))


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (302, "HEAD", "HEAD"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (308, "PUT", "PUT"),
    ],
)
async def test_the_method_changes_as_the_fetch_standard_says(
    open_site: OpenSite, status: int, method: str, then: str
) -> None:
    site = await open_site({"/": (status, {"Location": "/end"}, b""), "/end": (200, {}, b"")})
    body = None if method == "HEAD" else b"payload"
    await site.fetch(method=method, body=body, headers={"content-type": "text/x", "X-Other": "kept"})
    kept = then == method
    assert site.sent_line() == (then, b"payload" if kept and body else b"")
    assert site.sent("Content-Type") == ("text/x" if kept else None)
    assert site.sent("X-Other") == "kept"


async def test_credentials_stay_at_their_origin(open_site: OpenSite) -> None:
    secret = {"Authorization": "Basic dTpw", "Cookie": "a=b"}
    site = await open_site({"/same": to("/end"), "/end": HOME})
    await site.fetch("/same", headers=secret)
    assert (site.sent("Authorization"), site.sent("Cookie")) == ("Basic dTpw", "a=b")


async def test_credentials_do_not_go_to_another_origin_nor_come_back(open_site: OpenSite) -> None:
    secret = {"AUTHORIZATION": "Basic dTpw", "authorization": "Bearer x", "Cookie": "a=b", "X-Other": "kept"}
    pages = {"/": to("http://{other}/away"), "/away": to("http://{host}/back"), "/back": HOME}
    site = await open_site(pages)
    await site.fetch(headers=secret)
    assert site.sent("Cookie", 0) == "a=b"
    for hop in (1, 2):
        assert (site.sent("Authorization", hop), site.sent("Cookie", hop)) == (None, None)
        assert site.sent("X-Other", hop) == "kept"


async def test_a_password_in_the_url_stays_at_its_origin(serve: Serve, engine: Engine) -> None:
    server = await serve({"/end": answer_of(*HOME)})
    server.routes["/"] = answer_of(302, {"Location": "/same"}, b"")
    server.routes["/same"] = answer_of(302, {"Location": f"http://localhost:{server.port}/end"}, b"")
    await engine().fetch(Request(server.url().replace("://", "://us%40er:p%3Aw@")))
    basic = "Basic dXNAZXI6cDp3"
    assert [server.header("authorization", hop) for hop in range(3)] == [basic, basic, None]


async def test_a_redirect_keeps_the_fragment_unless_it_has_its_own(open_site: OpenSite) -> None:
    site = await open_site({"/plain": to("/end"), "/own": to("/end#mine"), "/end": HOME})
    assert (await site.fetch("/plain#top")).url == site.url("/end#top")
    assert (await site.fetch("/own#top")).url == site.url("/end#mine")
    assert site.targets == ["/plain", "/end", "/own", "/end"]


@pytest.mark.parametrize(
    "script",
    [
        then_stall(b"HTTP/1.1 302 Found\r\nLocation: /end\r\nContent-Length: 99\r\n\r\nhalf"),
        then_reset(b"HTTP/1.1 302 Found\r\nLocation: /end\r\nContent-Length: 99\r\n\r\nhalf"),
        drip(b"HTTP/1.1 302 Found\r\nLocation: /end\r\n\r\n", b"x" * 50_000, 0.001),
        answer_of(302, {"Location": "/end", "Content-Encoding": "gzip"}, b"this is no gzip"),
    ],
    ids=["stalled", "reset", "endless", "wrongly coded"],
)
async def test_a_redirect_needs_no_body(serve: Serve, engine: Engine, script: object) -> None:
    server = await serve({"/": script, "/end": answer_of(*HOME)})
    assert (await engine(timeout=10).fetch(Request(server.url()))).body == b"home"


async def test_the_time_limit_is_for_all_hops_together(serve: Serve, engine: Engine) -> None:
    server = await serve()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer_of(302, {"Location": f"/{len(server.heads)}"}, b""))

    for number in range(20):
        server.routes[f"/{number}"] = slowly
    with pytest.raises(FetchTimeout) as caught:
        await engine(timeout=1.2, max_redirects=100).fetch(Request(server.url("/0")))
    assert caught.value.phase == "total"
    assert len(server.heads) > 1


async def test_credentials_in_a_location_are_sent_and_seen_nowhere(serve: Serve, engine: Engine) -> None:
    server = await serve({"/a": b"", "/b": b"", "/c": answer_of(200, {}, b"in")})
    with_password = server.url("/b").replace("://", "://me:s3cret@")
    server.routes["/a"] = answer_of(302, {"Location": with_password}, b"")
    server.routes["/b"] = answer_of(302, {"Location": "/c"}, b"")
    response = await engine().fetch(Request(server.url("/a")))
    basic = "Basic " + base64.b64encode(b"me:s3cret").decode()
    assert [server.header("authorization", n) for n in range(3)] == [None, basic, basic]
    assert "s3cret" not in "".join([response.url, *response.history])
    assert response.url == server.url("/c")


@pytest.mark.parametrize("location", ["ftp://me:s3cret@h/", "http://me:s3cret@/"])
async def test_a_location_that_is_refused_shows_no_password(
    serve: Serve, engine: Engine, location: str
) -> None:
    server = await serve({"/": answer_of(302, {"Location": location}, b"")})
    with pytest.raises((BlockedError, BadUrlError)) as caught:
        await engine().fetch(Request(server.url()))
    assert "s3cret" not in str(caught.value)
