"""MockFetcher: a crawl without a network."""

from __future__ import annotations

import pytest

from silkline.errors import BadUrlError, ConnectError, TooManyRedirects
from silkline.fetch.mock import MockFetcher
from silkline.request import Request
from silkline.response import Response

URL = "http://shop.test/"


async def fetch(page: object, **fields: object) -> Response:
    return await MockFetcher({URL: page}).fetch(Request(URL, **fields))  # type: ignore[dict-item, arg-type]


async def test_text_is_an_html_page_in_utf8() -> None:
    response = await fetch("<p>\u00e9")
    assert (response.status, response.body, response.wire_bytes) == (200, b"<p>\xc3\xa9", 5)
    assert response.header("content-type") == "text/html; charset=utf-8"


async def test_bytes_are_a_page_whose_charset_is_not_told() -> None:
    response = await fetch(b"<p>\xe9")
    assert (response.body, response.header("content-type")) == (b"<p>\xe9", "text/html")


@pytest.mark.parametrize(
    ("page", "status", "body"),
    [
        (503, 503, b""),
        ((404, "gone"), 404, b"gone"),
        ((200, {"content-type": "application/json"}, b"{}"), 200, b"{}"),
        (lambda request: (200, request.url), 200, URL.encode()),
    ],
)
async def test_statuses_headers_and_functions(page: object, status: int, body: bytes) -> None:
    response = await fetch(page)
    assert (response.status, response.body) == (status, body)
    assert len([name for name, _ in response.headers if name.lower() == b"content-type"]) == 1


async def test_a_function_may_be_async() -> None:
    async def page(request: Request) -> tuple[int, str]:
        return 200, f"hello {request.headers['Name']}"

    assert (await fetch(page, headers={"Name": "you"})).body == b"hello you"


async def test_an_exception_is_raised() -> None:
    with pytest.raises(ConnectError, match="refused"):
        await fetch(ConnectError("refused"))


async def test_a_list_gives_one_answer_per_visit_and_keeps_the_last() -> None:
    fetcher = MockFetcher({URL: [ConnectError("down"), 503, "up"]})
    with pytest.raises(ConnectError):
        await fetcher.fetch(Request(URL))
    statuses = [(await fetcher.fetch(Request(URL))).status for _ in range(3)]
    assert statuses == [503, 200, 200]


async def test_a_whole_response_is_given_for_the_request_that_was_made() -> None:
    recorded = Response(
        "http://elsewhere.test/", 418, ((b"A", b"1"), (b"A", b"2")), b"tea", Request("http://e.test/")
    )
    response = await fetch(recorded, label="tea")
    assert (response.url, response.request.label) == (URL, "tea")
    assert (response.status, response.headers, response.body) == (418, recorded.headers, b"tea")


async def test_an_unknown_url_is_not_found() -> None:
    assert (await MockFetcher({}).fetch(Request(URL))).status == 404


async def test_urls_are_equal_when_they_are_equal_on_the_wire() -> None:
    fetcher = MockFetcher({"http://SHOP.test/a b#x": "here"})
    assert (await fetcher.fetch(Request("http://shop.test/a%20b#y"))).body == b"here"
    assert (await fetcher.fetch(Request("http://shop.test/a%20b?"))).status == 404


async def test_every_hop_is_recorded() -> None:
    fetcher = MockFetcher({URL: (301, {"Location": "/end"}, ""), URL + "end": "end"})
    response = await fetcher.fetch(Request(URL, label="x"))
    assert (response.body, response.history) == (b"end", (URL,))
    assert [request.url for request in fetcher.requests] == [URL, URL + "end"]


async def test_redirects_are_limited() -> None:
    pages = {f"http://h.test/{n}": (302, {"Location": f"/{n + 1}"}, "") for n in range(9)}
    with pytest.raises(TooManyRedirects):
        await MockFetcher(pages, max_redirects=3).fetch(Request("http://h.test/0"))


async def test_a_head_request_gets_no_body() -> None:
    assert (await fetch("page", method="HEAD")).body == b""


def test_a_key_that_is_no_url_is_refused() -> None:
    with pytest.raises(BadUrlError):
        MockFetcher({"/relative": "page"})
