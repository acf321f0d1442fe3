"""Redirects, followed by our own code: the same for every fetcher.

Methods and headers follow the Fetch Standard ("HTTP-redirect fetch"), Location the URL Standard, RFC 9110
section 10.2.2 for fragments. What browsers do decides where these leave room.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from http import HTTPStatus

import ada_url
import msgspec

from silkline.errors import BadUrlError, BlockedError, TooManyRedirects
from silkline.fetch.refresh import refresh_of
from silkline.fetch.target import origin, split_credentials, wire_url
from silkline.fetch.wire.redact import redacted_url
from silkline.protocols import CallNext
from silkline.request import Onward, Request
from silkline.response import Response, Timings
from silkline.url import MAX_URL_LENGTH

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""300, 304, 305 and 306 are answers, not redirects."""

MAX_SAME_URL = 2
"""A site may set a cookie and redirect to the same URL once; a third visit of a URL is a loop."""

Stays = Callable[[Request], Awaitable[bool]]
"""`await stays(request)`: whether the next hop may be asked for at once. Raises where it never may."""

stays_here: ContextVar[Stays | None] = ContextVar("stays_here", default=None)
"""Who is asked about each redirect that the current task follows; by default nobody."""

_BODY_HEADERS = frozenset(
    {"content-encoding", "content-language", "content-length", "content-location", "content-type"}
)
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


def location_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The Location to follow, or None where the response is an answer of its own.

    Without a Location a 3xx is an answer, as in browsers; of several the first that is not empty counts.
    """
    if status not in REDIRECTS:
        return None
    for name, value in headers:
        if name.lower() == b"location" and (location := value.strip(b" \t")):
            return location
    return None


async def follow(hop: CallNext, request: Request, limit: int, *, refresh: bool = False) -> Response:
    """Fetch `request` with `hop`, which fetches one URL, and go where the responses point.

    The response's `url` is the last one with its fragment, `history` the ones before, `request` the first
    request, and `timings` count from the first hop. Where the next hop has to wait for its turn the response
    is the redirect, with `onward`; a request that has waited goes on there, with `timings` from there on.

    limit: redirects followed at most.
    refresh: whether pages are left that refresh to another URL (see `fetch/refresh.py`), as by a 303.

    Raises TooManyRedirects past the limit or in a loop, BlockedError for a Location that is not http(s),
    BadUrlError for one that is no URL, and what `hop` raises.
    """
    current, history = (request, []) if request.onward is None else _begun(request, request.onward)
    response = await hop(current)
    if not history and not refresh and response.status not in REDIRECTS:
        # What middleware around the hop added, such as cookies, is no part of the request.
        return response if response.request is request else msgspec.structs.replace(response, request=request)
    spent: list[Timings] = []
    while (following := _following(current, response, history, refresh)) is not None:
        history.append(current.url)
        spent.append(response.timings)
        if len(history) > limit:
            raise TooManyRedirects(
                f"more than {limit} redirects, the last one from {redacted_url(current.url[:200])}"
            )
        current = following
        if history.count(current.url) >= MAX_SAME_URL:
            raise TooManyRedirects(f"redirect loop through {redacted_url(current.url[:200])}")
        stays = stays_here.get()
        if stays is not None and not await stays(current):
            return _answer(response, request, history[:-1], spent[:-1], _onward(request, current, history))
        response = await hop(current)
    return _answer(response, request, history, spent)


def _answer(
    response: Response,
    request: Request,
    history: Sequence[str],
    spent: Sequence[Timings],
    onward: Onward | None = None,
) -> Response:
    return msgspec.structs.replace(
        response,
        request=request,
        history=tuple(history),
        timings=_sum(spent, response.timings),
        onward=onward,
    )


def _onward(request: Request, following: Request, history: Sequence[str]) -> Onward:
    """Where `request` goes on later."""
    return Onward(
        following.url,
        tuple(history),
        following.method,
        following.headers,
        following.body,
        since=time.time(),
        anew=0 if request.onward is None else request.onward.anew,
    )


def _begun(request: Request, onward: Onward) -> tuple[Request, list[str]]:
    """The first hop, and the URLs that have led there."""
    first = msgspec.structs.replace(
        request,
        url=onward.url,
        method=onward.method,
        headers=onward.headers,
        body=onward.body,
        onward=None,
    )
    return first, list(onward.via)


def _following(request: Request, response: Response, history: Sequence[str], refresh: bool) -> Request | None:
    """The request to go on with; None where the response is the answer."""
    location = location_of(response.status, response.headers)
    if location is not None:
        return _next_request(request, response.status, _target(request.url, location))
    target = refresh_of(response) if refresh else None
    # A page that refreshes to where it comes from shows news, or waits for a script or a cookie: it is read.
    visited = (url.partition("#")[0] for url in (request.url, *history))
    if target is None or target.partition("#")[0] in visited:
        return None
    return _next_request(request, HTTPStatus.SEE_OTHER, target)


def _sum(spent: Sequence[Timings], last: Timings) -> Timings:
    """The timings of a fetch of several hops."""
    before = sum(hop.total for hop in spent)
    return Timings(
        first_byte=before + last.first_byte,
        total=before + last.total,
        dns=sum((hop.dns for hop in spent), last.dns),
        connect=sum((hop.connect for hop in spent), last.connect),
        tls=sum((hop.tls for hop in spent), last.tls),
    )


def _next_request(request: Request, status: int, url: str) -> Request:
    method, body, dropped = request.method.upper(), request.body, frozenset[str]()
    if (status in (301, 302) and method == "POST") or (status == 303 and method not in ("GET", "HEAD")):
        method, body, dropped = "GET", None, _BODY_HEADERS
    if request.headers and origin(wire_url(url)) != origin(wire_url(request.url)):
        dropped |= _PRIVATE_HEADERS
    headers = request.headers
    if dropped:
        headers = {name: value for name, value in headers.items() if name.lower() not in dropped}
    if "@" in url:
        url, headers = _without_credentials(url, request.url, headers)
    return msgspec.structs.replace(request, url=url, method=method, body=body, headers=headers)


def _without_credentials(url: str, base: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What a Location says of user and password becomes a header: in the URL they would come into items and
    logs. Those of the URL that the user wrote stay where they are."""
    clean, authorization = split_credentials(url)
    if authorization is None or split_credentials(base)[1] == authorization:
        return url, headers
    if any(name.lower() == "authorization" for name in headers):
        return clean, headers
    return clean, {**headers, "Authorization": authorization}


def _target(base: str, location: bytes) -> str:
    # Servers send raw UTF-8; bytes that are none can only be Latin-1, which HTTP headers once were.
    try:
        text = location.decode("utf-8")
    except UnicodeDecodeError:
        text = location.decode("latin-1")
    try:
        url = ada_url.join_url(base, text)
    except ValueError as error:
        raise BadUrlError(f"redirect {_shown(base, text)}, not a valid URL") from error
    if not url.startswith(("http://", "https://")):
        raise BlockedError(f"redirect {_shown(base, text)}, not an http or https URL")
    if len(url) > MAX_URL_LENGTH:
        raise BadUrlError(f"redirect from {redacted_url(base[:200])} to a URL of {len(url)} characters")
    _, mark, fragment = base.partition("#")
    return url if "#" in url or not mark else f"{url}#{fragment}"


def _shown(base: str, text: str) -> str:
    return f"from {redacted_url(base[:200])} to {redacted_url(text[:200])!r}"
