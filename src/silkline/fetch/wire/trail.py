"""Keeps each exchange of a fetch with its response, for those who archive pages."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from silkline.fetch.wire.exchange import Exchange
from silkline.fetch.wire.redact import redacted_fields, redacted_url
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Hop, Response


class Trail:
    """Two halves: `watch` sees the exchanges on the wire, `around` the whole fetch that they belong to.

    secrets: whether credentials that were sent are kept.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self._hops: ContextVar[list[Hop] | None] = ContextVar("hops", default=None)

    async def around(self, request: Request, call_next: CallNext) -> Response:
        """Middleware; the outermost one. Of a fetch that was tried several times the last try counts."""
        hops: list[Hop] = []
        before = self._hops.set(hops)
        try:
            response = await call_next(request)
        finally:
            self._hops.reset(before)
        led = 0 if request.onward is None else len(request.onward.via)
        count = len(response.history) + 1 - led
        return msgspec.structs.replace(response, trail=tuple(hops[-count:]))

    def watch(self, exchange: Exchange) -> None:
        """A `Watcher`. Tasks of the fetch have a copy of its context, with the same list."""
        hops, response = self._hops.get(), exchange.response
        if hops is None or response is None:
            return
        hops.append(
            Hop(
                url=exchange.url if self._secrets else redacted_url(exchange.url),
                method=exchange.request.method,
                sent=exchange.sent if self._secrets else redacted_fields(exchange.sent),
                sent_body=exchange.request.body,
                started=exchange.started,
                status=response.status,
                headers=response.headers,
                body=response.body,
                http_version=response.http_version,
                peer="" if exchange.request.proxy else response.peer,
                saved_to=response.saved_to,
            )
        )
