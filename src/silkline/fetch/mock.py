"""A fetcher without a network, for tests of spiders: a whole crawl runs over a dictionary."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from silkline.fetch.middleware import compose
from silkline.fetch.redirect import follow
from silkline.fetch.sent import check_sendable
from silkline.fetch.target import wire_url
from silkline.files import placed, write_whole
from silkline.protocols import Middleware
from silkline.request import Request
from silkline.response import Response

Headers = Mapping[str, str]
Answer = str | bytes | int | tuple[int, str | bytes] | tuple[int, Headers, str | bytes] | Response | Exception
"""Of a page: HTML text (UTF-8) or bytes; a status, alone, with a body, or with headers and a body; a whole
Response; or an exception to raise (a FetchError, to be like a real failure)."""

Page = Answer | list[Answer] | Callable[[Request], Answer | Awaitable[Answer]]
"""One answer; a list of answers, given one per visit, the last one for good; or a function of the request,
which may be async."""


class MockFetcher:
    """Answers from `pages`, by URL; a URL that is not there is a 404.

    Redirects are followed by the same code as in real fetchers. URLs count as equal when they are equal on
    the wire, so fragments do not matter.

    hops: middleware around each hop of a redirect, the first one outermost.
    requests: what was asked for so far, every hop of a redirect included, in order; not the robots.txt of
        sites that have none in `pages`.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        *,
        max_redirects: int = 10,
        follow_refresh: bool = False,
        hops: Sequence[Middleware] = (),
    ) -> None:
        self._pages = {wire_url(url): page for url, page in pages.items()}
        self._max_redirects = max_redirects
        self._follow_refresh = follow_refresh
        self._hop = compose(hops, self._answered)
        self._visits: dict[str, int] = {}
        self.requests: list[Request] = []

    async def fetch(self, request: Request) -> Response:
        """Raises what `pages` holds for the URL, what following redirects raises, and BadUrlError for headers
        that no engine sends."""
        return await follow(self._hop, request, self._max_redirects, refresh=self._follow_refresh)

    async def close(self) -> None:
        """Nothing to close."""

    async def _answered(self, request: Request) -> Response:
        check_sendable(request.method, request.headers)
        if wire_url(request.url) in self._pages or not request.url.endswith("/robots.txt"):
            self.requests.append(request)
        response = _response(request, await self._answer(request))
        if request.save_to is None or request.method == "HEAD" or not 200 <= response.status < 300:
            return response
        path = placed(request.save_to)
        write_whole(path, response.body)
        return msgspec.structs.replace(response, body=b"", saved_to=str(path))

    async def _answer(self, request: Request) -> Answer:
        url = wire_url(request.url)
        page = self._pages.get(url, 404)
        if isinstance(page, list):
            visit = self._visits.get(url, 0)
            self._visits[url] = visit + 1
            return page[min(visit, len(page) - 1)]
        if callable(page):
            answer = page(request)
            return await answer if inspect.isawaitable(answer) else answer
        return page


def _response(request: Request, answer: Answer) -> Response:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Response):
        return msgspec.structs.replace(answer, url=request.url, request=request)
    status, headers, body = _parts(answer)
    data = body.encode() if isinstance(body, str) else body
    if not any(name.lower() == "content-type" for name in headers):
        headers = {
            **headers,
            "Content-Type": "text/html; charset=utf-8" if isinstance(body, str) else "text/html",
        }
    return Response(
        url=request.url,
        status=status,
        headers=tuple((name.encode("latin-1"), value.encode()) for name, value in headers.items()),
        body=b"" if request.method == "HEAD" else data,
        request=request,
        wire_bytes=0 if request.method == "HEAD" else len(data),
    )


def _parts(
    answer: str | bytes | int | tuple[int, str | bytes] | tuple[int, Headers, str | bytes],
) -> tuple[int, Headers, str | bytes]:
    match answer:
        case int():
            return answer, {}, b""
        case str() | bytes():
            return 200, {}, answer
        case (status, body):
            return status, {}, body
        case (status, headers, body):
            return status, headers, body
