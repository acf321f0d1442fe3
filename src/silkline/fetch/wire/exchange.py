"""One exchange as it was on the wire, and the middleware that shows it to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import msgspec

from silkline.errors import FetchError
from silkline.fetch.options import with_defaults
from silkline.fetch.target import split_credentials, wire_url
from silkline.protocols import CallNext, Middleware
from silkline.request import Request
from silkline.response import Response

Fields = tuple[tuple[str, str], ...]
"""Header fields in their order, duplicates kept."""


class Exchange(msgspec.Struct, frozen=True):
    """One request and what came of it.

    url: as on the wire. sent: the header fields of the request. started: Unix seconds. seconds: of all of it.
    response: None where there was none; then `error` says why.
    """

    request: Request
    url: str
    sent: Fields
    started: float
    seconds: float
    response: Response | None = None
    error: FetchError | None = None

    @property
    def received(self) -> Fields:
        """The header fields of the response."""
        if self.response is None:
            return ()
        return tuple((name.decode("latin-1"), _text(value)) for name, value in self.response.headers)


Watcher = Callable[[Exchange], None]
"""Must not raise."""


def wire_hop(watchers: Sequence[Watcher], defaults: Mapping[str, str]) -> Middleware:
    """Middleware that has to be the innermost one: it sees what the others have made of the request.

    defaults: the header fields that the engine adds where they are missing.
    """

    async def hop(request: Request, call_next: CallNext) -> Response:
        started, clock = time.time(), perf_counter()
        response: Response | None = None
        failure: FetchError | None = None
        try:
            response = await call_next(request)
            return response
        except FetchError as error:
            failure = error
            raise
        finally:
            seconds = perf_counter() - clock
            url, sent = _sent(request, defaults)
            exchange = Exchange(request, url, sent, started, seconds, response, failure)
            for watcher in watchers:
                watcher(exchange)

    return hop


def _sent(request: Request, defaults: Mapping[str, str]) -> tuple[str, Fields]:
    try:
        url, authorization = split_credentials(wire_url(request.url))
    except FetchError:
        return request.url, tuple(request.headers.items())
    headers = with_defaults(request.headers, defaults)
    given = {name.lower() for name in headers}
    first = [] if "host" in given else [("Host", url.partition("://")[2].partition("/")[0])]
    last = [("Authorization", authorization)] if authorization and "authorization" not in given else []
    if request.body is not None and "content-length" not in given:
        last.append(("Content-Length", str(len(request.body))))
    return url, (*first, *headers.items(), *last)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
