"""Cookies around each hop, so that those of a redirect count for the next hop (RFC 6265bis section 5.8)."""

from __future__ import annotations

import time

import msgspec

from silkline.fetch.cookies.cookie import place_of
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.target import wire_url
from silkline.protocols import CallNext, Clock, Middleware
from silkline.request import Request
from silkline.response import Response


def cookie_hop(sessions: Sessions, clock: Clock = time.time) -> Middleware:
    """A middleware around each hop that sends and stores the cookies of the request's session.

    A Cookie header of the request's own goes first; cookies of the jar with the same name are left out.
    What a cache gives without asking sets no cookies: it has done so when it came.
    """

    async def hop(request: Request, call_next: CallNext) -> Response:
        jar = sessions.get(request.session).jar
        sent = request
        if jar and (header := jar.header(place_of(wire_url(request.url)), clock())):
            sent = msgspec.structs.replace(request, headers=_with_cookies(request.headers, header))
        response = await call_next(sent)
        lines = [
            value for name, value in response.headers if len(name) == 10 and name.lower() == b"set-cookie"
        ]
        if lines and (response.not_modified or not response.from_cache):
            version = jar.version
            jar.take(lines, place_of(wire_url(response.url)), clock())
            if jar.version != version:
                sessions.on_change()
        return response

    return hop


def _with_cookies(headers: dict[str, str], cookies: str) -> dict[str, str]:
    own = next((name for name in headers if name.lower() == "cookie"), None)
    if own is None:
        return {**headers, "Cookie": cookies}
    given = {pair.partition("=")[0].strip() for pair in headers[own].split(";")}
    more = [pair for pair in cookies.split("; ") if pair.partition("=")[0] not in given]
    return {**headers, own: "; ".join([headers[own], *more])}
