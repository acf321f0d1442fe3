"""RFC 9111 for a private cache, as pure functions; stale-if-error as RFC 5861 has it.

Nothing here asks for the time or touches a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from silkline.fetch.cache.entry import Meta
from silkline.fetch.cache.fields import (
    MAX_DELTA,
    Directives,
    Headers,
    age_value,
    directives,
    first,
    seconds,
    tokens,
    values,
)
from silkline.fetch.http_date import http_date

RequestFields = Mapping[str, str]
"""A request's header fields, names in lower case, those included that the engine adds by itself."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
HEURISTIC = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
"""Statuses that may be reused without an explicit lifetime (RFC 9110, section 15.1); 206 is left out."""
UNDERSTOOD = HEURISTIC | {201, 202, 205, 302, 303, 307, 400, 401, 402, 403, 406, 407, 408, 409, 411, 412}
UNDERSTOOD |= {413, 415, 416, 417, 421, 422, 425, 426, 428, 429, 431, 451, 500, 502, 503, 505, 504}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ERRORS = frozenset({500, 502, 503, 504})
"""What stale-if-error covers (RFC 5861, section 4)."""

HEURISTIC_FRACTION = 0.1
HEURISTIC_LIMIT = 86_400.0
"""A response without a lifetime is fresh for a tenth of the time since it changed, at most a day (4.2.2)."""

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_OF_THE_BODY = frozenset({"content-encoding", "content-length", "content-range", "content-type"})
"""Fields of a 304 that say nothing about the stored body (RFC 9111, section 3.2)."""
_CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range")


class Use(Enum):
    """What may be done with a stored response."""

    SERVE = "serve"
    ASK = "ask"


def is_conditional(fields: RequestFields) -> bool:
    """The caller asks a condition or for a range himself: none of the cache's business."""
    return any(name in fields for name in _CONDITIONS)


def request_directives(fields: RequestFields) -> Directives:
    """Pragma: no-cache counts where there is no Cache-Control (RFC 9111, section 5.4)."""
    control = fields.get("cache-control")
    if control is None and "no-cache" in tokens([fields.get("pragma", "")]):
        return {"no-cache": None}
    return directives([control or ""])


def response_directives(headers: Headers) -> Directives:
    return directives(values(headers, b"cache-control"))


def may_store(method: str, asked: Directives, status: int, headers: Headers) -> bool:
    """RFC 9111, section 3. Of GET alone: a HEAD has no body to store, and other methods are not reused."""
    control = response_directives(headers)
    understood = "must-understand" in control and status in UNDERSTOOD
    if method != "GET" or not 200 <= status <= 599 or status in (206, 304):
        return False
    if "no-store" in asked or ("no-store" in control and not understood):
        return False
    if "must-understand" in control and not understood:
        return False
    explicit = "max-age" in control or "public" in control or "private" in control
    return explicit or first(headers, b"expires") is not None or status in HEURISTIC


def may_replay(method: str, asked: Directives, status: int, headers: Headers) -> bool:
    """A redirect that may not be reused is still kept, to be shown again as it was (RFC 9111, section 6)."""
    no_store = "no-store" in asked or "no-store" in response_directives(headers)
    return method == "GET" and status in REDIRECTS and not no_store


def storable_headers(headers: Headers) -> Headers:
    """Without what belongs to one connection (RFC 9111, section 3.1)."""
    left_out = _HOP_BY_HOP | set(tokens(values(headers, b"connection")))
    return tuple(pair for pair in headers if pair[0].decode("latin-1").lower() not in left_out)


def varied_fields(headers: Headers, fields: RequestFields) -> tuple[tuple[str, str | None], ...]:
    """The fields that Vary names, with their values in this request; "*" stands for itself."""
    return tuple((name, _plain(fields.get(name))) for name in sorted(set(tokens(values(headers, b"vary")))))


def selects(meta: Meta, fields: RequestFields) -> bool:
    """Whether a stored response is one for this request (RFC 9111, section 4.1)."""
    return all(name != "*" and _plain(fields.get(name)) == value for name, value in meta.varied)


def _plain(value: str | None) -> str | None:
    """White space around the members of a list means nothing."""
    return None if value is None else ",".join(part.strip() for part in value.split(","))


def date_of(meta: Meta) -> float:
    """When the response was made; when it was received, where it does not say."""
    date = first(meta.headers, b"date")
    moment = http_date(date, meta.received_at) if date else None
    return meta.received_at if moment is None else moment


def lifetime(meta: Meta) -> float:
    """Seconds that it is fresh from its making on (RFC 9111, section 4.2.1); 0 where that is not clear."""
    control = response_directives(meta.headers)
    if "max-age" in control:
        return float(seconds(control["max-age"]) or 0)
    if expires := values(meta.headers, b"expires"):
        moment = http_date(expires[0], meta.received_at) if len(set(expires)) == 1 else None
        return 0.0 if moment is None else max(0.0, moment - date_of(meta))
    modified = first(meta.headers, b"last-modified")
    if modified and (meta.status in HEURISTIC or "public" in control):
        moment = http_date(modified, meta.received_at)
        if moment is not None:
            return min(max(0.0, date_of(meta) - moment) * HEURISTIC_FRACTION, HEURISTIC_LIMIT)
    return 0.0


def age(meta: Meta, now: float) -> float:
    """Seconds since it was made (RFC 9111, section 4.2.3)."""
    apparent = max(0.0, meta.received_at - date_of(meta))
    corrected = age_value(meta.headers) + (meta.received_at - meta.asked_at)
    return max(apparent, corrected) + max(0.0, now - meta.received_at)


def use_of(meta: Meta, asked: Directives, now: float) -> Use:
    """Whether it may be served without asking the origin (RFC 9111, sections 4.2 and 5.2)."""
    control = response_directives(meta.headers)
    fresh_for, old = lifetime(meta), age(meta, now)
    if "no-cache" in control or "no-cache" in asked:
        return Use.ASK
    if "max-age" in asked and old >= (seconds(asked["max-age"]) or 0):
        return Use.ASK
    if "min-fresh" in asked and fresh_for - old < (seconds(asked["min-fresh"]) or 0):
        return Use.ASK
    if old < fresh_for:
        return Use.SERVE
    if "max-stale" in asked and not _must_ask_when_stale(control):
        most = asked["max-stale"]
        if most is None or old - fresh_for <= (seconds(most) or 0):
            return Use.SERVE
    return Use.ASK


def may_serve_on_error(meta: Meta, asked: Directives, now: float) -> bool:
    """Whether it stands in for an origin that fails (RFC 5861, section 4; RFC 9111, section 4.2.4)."""
    control = response_directives(meta.headers)
    if _must_ask_when_stale(control) or "no-cache" in control or "no-cache" in asked:
        return False
    allowed = [seconds(found["stale-if-error"]) for found in (control, asked) if "stale-if-error" in found]
    return any(most is not None and age(meta, now) - lifetime(meta) <= most for most in allowed)


def _must_ask_when_stale(control: Directives) -> bool:
    return "must-revalidate" in control


def conditions(stored: Sequence[Meta]) -> dict[str, str]:
    """The header fields that ask whether one of these is still current (RFC 9111, section 4.3.1).

    Validators go as they came. A Last-Modified is only asked about where it can mean one response alone.
    """
    asked = {}
    tags = dict.fromkeys(etag for meta in stored if (etag := first(meta.headers, b"etag")))
    if tags:
        asked["If-None-Match"] = ", ".join(tags)
    if len(stored) == 1 and (modified := first(stored[0].headers, b"last-modified")):
        asked["If-Modified-Since"] = modified
    return asked


def freshens(meta: Meta, headers: Headers, *, alone: bool = True) -> bool:
    """Whether a 304 with these fields is about the stored response (RFC 9111, section 4.3.4).

    alone: whether it was the only one that was asked about.
    """
    etag = first(headers, b"etag")
    if etag is None:
        return alone
    stored = first(meta.headers, b"etag") or ""
    return stored.removeprefix("W/") == etag.removeprefix("W/") if etag.startswith("W/") else stored == etag


def freshened(meta: Meta, headers: Headers, asked_at: float, received_at: float) -> Meta:
    """The stored response with what a 304 said of it (RFC 9111, sections 3.2 and 4.3.4)."""
    new = tuple(
        pair for pair in storable_headers(headers) if pair[0].decode("latin-1").lower() not in _OF_THE_BODY
    )
    replaced = {name.lower() for name, _ in new} | {b"age"}
    kept = tuple(pair for pair in meta.headers if pair[0].lower() not in replaced)
    return msgspec.structs.replace(meta, headers=kept + new, asked_at=asked_at, received_at=received_at)


def with_age(headers: Headers, old: float) -> Headers:
    """As they are served: with the current Age (RFC 9111, section 5.1)."""
    kept = tuple(pair for pair in headers if pair[0].lower() != b"age")
    return (*kept, (b"Age", b"%d" % min(int(old), MAX_DELTA)))
