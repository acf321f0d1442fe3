"""Middleware: the first one is the outermost, and each may answer itself."""

from __future__ import annotations

import msgspec

from silkline.fetch.middleware import compose
from silkline.fetch.mock import MockFetcher
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
