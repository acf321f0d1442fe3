"""The private HTTP cache, as middleware around each hop.

Around each hop, and not around the whole fetch, because RFC 9111 speaks of single exchanges: a redirect is
stored as a redirect, and what it leads to as itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import ada_url
import msgspec

from silkline.errors import BadUrlError, BlockedError, FetchError, NotCachedError
from silkline.fetch.cache import rules
from silkline.fetch.cache.entry import Key, Meta, Stored
from silkline.fetch.cache.fields import Directives, Headers, first
from silkline.fetch.cache.store import CacheStore
from silkline.fetch.target import origin, wire_url
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response, Timings

Mode = Literal["on", "revalidate", "offline"]

UNREACHABLE = frozenset({"dns", "connect", "timeout", "protocol", "proxy"})
"""Causes that stale-if-error covers: the origin could not be asked."""

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Stored answers that a second visit does not want to see again."""


class HttpCache:
    """Middleware: answers from `store` where RFC 9111 allows it, asks with validators, stores what it may.

    mode: "on": what is fresh is served without asking. "revalidate": the server is always asked, with
        validators where there are some. "offline": what is stored is served whatever its age, and nothing is
        fetched: a request that is not in the store raises NotCachedError.
    sent: header fields that the engine adds to every request, for Vary.
    clock: Unix seconds.
    """

    def __init__(
        self,
        store: CacheStore,
        mode: Mode,
        clock: Callable[[], float],
        *,
        sent: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._mode = mode
        self._clock = clock
        self._sent = {name.lower(): value for name, value in (sent or {}).items()}

    async def __call__(self, request: Request, call_next: CallNext) -> Response:
        """Raises NotCachedError, CacheError, and what `call_next` raises."""
        fields = {**self._sent, **{name.lower(): value for name, value in request.headers.items()}}
        url = wire_url(request.url)
        if request.method not in ("GET", "HEAD") or rules.is_conditional(fields) or request.save_to:
            if self._mode == "offline":
                raise _not_cached(request, "is no plain GET")
            response = await call_next(request)
            if request.method not in rules.SAFE_METHODS and 200 <= response.status < 400:
                await self._invalidate(url, response)
            return response
        key = Key(_hash(url), _hash(request.session or "", fields.get("authorization", "")))
        found = [stored for stored in await self._store.find(key.url, key.owner) if self._is_usable(stored)]
        if self._mode == "offline":
            return self._replayed(request, found, fields)
        stored = _chosen(found, fields)
        asked = rules.request_directives(fields)
        if stored is not None and self._may_serve(request, stored.meta, asked):
            served = self._served(request, stored)
            if served is not None:
                return served
        if "only-if-cached" in asked:
            return Response(request.url, 504, (), b"", request)
        exchange = Exchange(request, key, fields, asked)
        if request.method == "HEAD":
            return await call_next(request)
        return await self._asked(exchange, stored, found, call_next)

    def _is_usable(self, stored: Stored) -> bool:
        return self._mode == "offline" or not stored.meta.replay_only

    def _may_serve(self, request: Request, meta: Meta, asked: Directives) -> bool:
        if self._mode == "revalidate" or ((request.retry_count or request.spared) and meta.status in RETRIED):
            return False
        return rules.use_of(meta, asked, self._clock()) is rules.Use.SERVE

    def _served(self, request: Request, stored: Stored) -> Response | None:
        """From the store alone; None where its body is damaged."""
        body = stored.body()
        if body is None:
            return None
        meta = stored.meta
        return Response(
            request.url,
            meta.status,
            rules.with_age(meta.headers, rules.age(meta, self._clock())),
            b"" if request.method == "HEAD" else body,
            request,
            timings=Timings(),
            http_version=meta.http_version,
            from_cache=True,
        )

    def _replayed(self, request: Request, found: Sequence[Stored], fields: rules.RequestFields) -> Response:
        stored = _chosen(found, fields)
        if stored is None and found:
            stored = found[0]
        response = self._served(request, stored) if stored is not None else None
        if response is None:
            raise _not_cached(request, "was not stored")
        return response

    async def _asked(
        self, exchange: Exchange, stored: Stored | None, found: Sequence[Stored], call_next: CallNext
    ) -> Response:
        """Ask the origin, with conditions where there is something to validate.

        stored: what is stored for this request; if nothing is, the origin may know another one of `found`,
        which Vary did not select, for the right one (RFC 9111, section 4.3.1).
        """
        request = exchange.request
        candidates = [stored] if stored is not None else found
        conditions = rules.conditions([candidate.meta for candidate in candidates])
        asked_at = self._clock()
        try:
            response = await call_next(_with_headers(request, conditions))
        except FetchError as error:
            if error.cause in UNREACHABLE and (stale := self._instead(exchange, stored)) is not None:
                return stale
            raise
        if response.status == 304 and conditions:
            validated = await self._validated(exchange, candidates, response, asked_at)
            if validated is not None:
                return validated
            asked_at = self._clock()
            response = await call_next(request)
        if response.status in rules.ERRORS and (stale := self._instead(exchange, stored)) is not None:
            return stale
        response = msgspec.structs.replace(response, request=request) if conditions else response
        await self._keep(exchange, response, asked_at)
        return response

    def _instead(self, exchange: Exchange, stored: Stored | None) -> Response | None:
        """The stored response in place of a failure, where it may be."""
        if stored is None or not rules.may_serve_on_error(stored.meta, exchange.asked, self._clock()):
            return None
        return self._served(exchange.request, stored)

    async def _validated(
        self, exchange: Exchange, candidates: Sequence[Stored], response: Response, asked_at: float
    ) -> Response | None:
        """The stored response that a 304 speaks of; None if there is none, or its body is damaged."""
        alone = len(candidates) == 1
        for stored in candidates:
            if rules.freshens(stored.meta, response.headers, alone=alone):
                break
        else:
            return None
        body = stored.body()
        if body is None:
            return None
        meta = rules.freshened(stored.meta, response.headers, asked_at, self._clock())
        if "no-store" in rules.response_directives(response.headers):
            await self._store.forget(stored)
        elif rules.selects(stored.meta, exchange.fields):
            await self._store.refresh(stored, meta)
        else:
            await self._put(exchange, meta, body)
        return msgspec.structs.replace(
            response,
            url=exchange.request.url,
            status=meta.status,
            headers=_without_old_cookies(meta.headers, response.headers),
            body=body,
            request=exchange.request,
            not_modified=True,
            from_cache=True,
        )

    async def _keep(self, exchange: Exchange, response: Response, asked_at: float) -> None:
        method, asked = exchange.request.method, exchange.asked
        may_store = rules.may_store(method, asked, response.status, response.headers)
        if not may_store and not rules.may_replay(method, asked, response.status, response.headers):
            return
        headers = rules.storable_headers(response.headers)
        meta = Meta(
            response.status,
            headers,
            asked_at,
            self._clock(),
            replay_only=not may_store,
            http_version=response.http_version,
        )
        await self._put(exchange, meta, response.body)

    async def _put(self, exchange: Exchange, meta: Meta, body: bytes) -> None:
        """Store it for requests like this one."""
        varied = rules.varied_fields(meta.headers, exchange.fields)
        variant = _hash(*(f"{name}:{value}" for name, value in varied)) if varied else b""
        key = msgspec.structs.replace(exchange.key, variant=variant)
        await self._store.put(key, msgspec.structs.replace(meta, varied=varied), body)

    async def _invalidate(self, url: str, response: Response) -> None:
        """RFC 9111, section 4.4; Location and Content-Location of the same origin too."""
        outdated = {url}
        for name in (b"location", b"content-location"):
            if reference := first(response.headers, name):
                try:
                    named = wire_url(ada_url.join_url(url, reference))
                except (ValueError, BadUrlError, BlockedError):
                    continue
                if origin(named) == origin(url):
                    outdated.add(named)
        for one in sorted(outdated):
            await self._store.invalidate(_hash(one))


class Exchange(msgspec.Struct, frozen=True):
    """What one request means to the cache."""

    request: Request
    key: Key
    fields: rules.RequestFields
    asked: Directives


def _chosen(found: Sequence[Stored], fields: rules.RequestFields) -> Stored | None:
    """The stored response for this request; of several the latest (RFC 9111, section 4.1)."""
    latest_first = sorted(found, key=lambda stored: rules.date_of(stored.meta), reverse=True)
    return next((stored for stored in latest_first if rules.selects(stored.meta, fields)), None)


def _without_old_cookies(headers: Headers, of_the_304: Headers) -> Headers:
    """Cookies that were set when the response was stored are not set again by a 304 that sets none."""
    if first(of_the_304, b"set-cookie") is not None:
        return headers
    return tuple(pair for pair in headers if pair[0].lower() != b"set-cookie")


def _with_headers(request: Request, headers: Mapping[str, str]) -> Request:
    if not headers:
        return request
    return msgspec.structs.replace(request, headers={**request.headers, **headers})


def _hash(*parts: str) -> bytes:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def _not_cached(request: Request, why: str) -> NotCachedError:
    return NotCachedError(f"{request.url[:200]} {why}, and `cache = offline` fetches nothing")
