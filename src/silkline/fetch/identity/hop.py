"""Identity around each hop: the headers that say who asks, chosen anew for every URL of a redirect."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from silkline.fetch.cookies.cookie import place_of
from silkline.fetch.cookies.sessions import DEFAULT_SESSION, Sessions
from silkline.fetch.identity.browser import Browsers
from silkline.fetch.identity.referer import Referer
from silkline.fetch.target import origin, wire_url
from silkline.protocols import CallNext, Middleware
from silkline.request import Request
from silkline.response import Response


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent with every request; what a request says itself wins.

    headers: to everybody. auth: Authorization by origin. browsers: header sets of browsers, None for the
    engine's honest ones. referer: the policy, None for no Referer of our own.
    """

    headers: Mapping[str, str] = {}
    auth: Mapping[str, str] = {}
    browsers: Browsers | None = None
    referer: Referer | None = None

    def __bool__(self) -> bool:
        return bool(self.headers or self.auth or self.browsers or self.referer)


def identity_hop(identity: Identity, sessions: Sessions) -> Middleware:
    """A middleware around each hop that adds the headers of `identity`."""

    async def hop(request: Request, call_next: CallNext) -> Response:
        url = wire_url(request.url)
        headers = _headers(identity, request, url)
        if identity.browsers is not None:
            session = request.session or DEFAULT_SESSION
            generation = sessions.get(session).generation
            browser = identity.browsers.of(session, generation, place_of(url).host)
            headers = browser.request_headers(url, _given(headers, "referer"), headers)
        return await call_next(msgspec.structs.replace(request, headers=headers))

    return hop


def _headers(identity: Identity, request: Request, url: str) -> dict[str, str]:
    own = {name.lower() for name in request.headers}
    headers = {name: value for name, value in identity.headers.items() if name.lower() not in own}
    headers |= request.headers
    if identity.auth and "authorization" not in own and (value := identity.auth.get(origin(url))):
        headers["Authorization"] = value
    if identity.referer is not None and (page := _given(headers, "referer")):
        headers = {name: value for name, value in headers.items() if name.lower() != "referer"}
        if (value := identity.referer(page, url)) is not None:
            headers["Referer"] = value
    return headers


def _given(headers: Mapping[str, str], wanted: str) -> str | None:
    return next((value for name, value in headers.items() if name.lower() == wanted), None)
