"""Middleware: the first one is the outermost, and each may answer itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from silkline import Crawler
from silkline.events import Event, Visited
from silkline.fetch.middleware import compose
from silkline.fetch.mock import MockFetcher
from silkline.outcome import Dead
from silkline.protocols import CallNext, Middleware
from silkline.request import Request
from silkline.response import Response


def tagging(tag: str) -> Middleware:
    async def middleware(request: Request, call_next: CallNext) -> Response:
        path = request.headers.get("Path", "") + tag
        response = await call_next(msgspec.structs.replace(request, headers={"Path": path}))
        return msgspec.structs.replace(response, body=response.body + tag.encode())

    return middleware


async def test_the_first_middleware_is_the_outermost() -> None:
    fetcher = MockFetcher({"http://h.test/": b"page "})
    fetch = compose([tagging("a"), tagging("b")], fetcher.fetch)
    response = await fetch(Request("http://h.test/"))
    assert response.body == b"page ba"
    assert fetcher.requests[0].headers == {"Path": "ab"}


async def test_a_middleware_may_answer_without_a_fetch() -> None:
    async def cached(request: Request, call_next: CallNext) -> Response:
        return Response(request.url, 200, (), b"cached", request)

    fetcher = MockFetcher({})
    assert (await compose([cached], fetcher.fetch)(Request("http://h.test/"))).body == b"cached"
    assert fetcher.requests == []


def test_without_middleware_nothing_stands_between() -> None:
    fetch = MockFetcher({}).fetch
    assert compose([], fetch) is fetch


REQUEST = Request("http://h.test/")


def response(status: Any = 200, headers: Any = (), body: Any = b"", url: str = REQUEST.url) -> Response:
    return Response(url, status, headers, body, REQUEST)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ({"status": 200}, "a dict, not a Response"),
        (None, "None, not a Response"),
        (response("200"), "a Response whose status is a str, not an int"),
        (response(body="x"), "a Response whose body is a str, not bytes"),
        (
            Response(REQUEST.url, 200, {"a": "b"}, b"", REQUEST),
            "a Response whose headers are no tuple of pairs of bytes",
        ),
        (
            Response(REQUEST.url, 200, (("a", "b"),), b"", REQUEST),
            "a Response whose headers are no tuple of pairs of bytes",
        ),
        (response(url="/x"), "a Response whose url is no absolute http(s) URL"),
    ],
)
async def test_what_is_no_response_costs_its_page_alone_and_names_who_gave_it(
    answer: Any, wrong: str
) -> None:
    async def broken(request: Request, call_next: CallNext) -> Response:
        return answer if request.url.endswith("/bad") else await call_next(request)

    class Broken(MockFetcher):
        async def fetch(self, request: Request) -> Response:
            return answer if request.url.endswith("/bad") else await super().fetch(request)

    pages = {"http://h.test/bad": b"", "http://h.test/good": b""}
    for fetcher, middleware, name in (
        (MockFetcher(pages), [broken], "the middleware broken gave"),
        (Broken(pages), [], "the fetcher Broken gave"),
    ):
        events: list[Event] = []
        crawler = Crawler(
            "job",
            frontier="memory:",
            fetcher=fetcher,
            middleware=middleware,
            hooks=[events.append],
            quiet=True,
            robots=False,
        )
        crawler.handler(lambda page: None)
        report = await crawler.run_async(*pages)
        assert (report.pages, report.dead) == (1, {"internal": 1})
        verdicts = [event.outcome.verdict for event in events if isinstance(event, Visited)]
        (error,) = [verdict.error for verdict in verdicts if isinstance(verdict, Dead)]
        assert error.startswith(name)
        assert error.endswith(wrong)
        assert "\n" not in error
