"""The second engine: HTTP/1.1, HTTP/2 and HTTP/3 over libcurl, at a fraction of the CPU.

libcurl gives connections, framing and TLS. Redirects, content codings, limits, headers and errors are ours,
so that they are the same for every fetcher.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from time import perf_counter
from typing import Any

import pycurl  # type: ignore[import-untyped]

from silkline.errors import FetchError, FetchTimeout
from silkline.fetch.bounds import endless
from silkline.fetch.curl_multi import Multi
from silkline.fetch.curl_request import Setup
from silkline.fetch.curl_transfer import Shared, Transfer
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.download import Download, save
from silkline.fetch.engine import Client, Engine
from silkline.fetch.guard import check_literal
from silkline.fetch.options import FetchOptions
from silkline.fetch.pace import Pace
from silkline.fetch.target import origin, wire_url
from silkline.protocols import Guard
from silkline.request import Request
from silkline.response import Response

_REDIRECT_WAIT = 1.0
"""Seconds that a redirect's body is worth."""


class CurlFetcher(Engine):
    """Request -> Response over libcurl; needs `pip install 'silkline[curl]'`."""

    def _connect(self) -> Client:
        return CurlClient(self._options, self._guard)


class CurlClient:
    """libcurl's connections on the running event loop, with the limits that hold for each hop."""

    def __init__(self, options: FetchOptions, guard: Guard | None) -> None:
        self.deadlines = Deadlines(options.timeout, options.read_timeout)
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._shared = Shared(options, guard)
        self._setup = Setup(options)
        self._multi = Multi(2 * options.limit)  # as many as may be in use may be idle
        self._transfers: list[Transfer] = []
        self._free: list[Transfer] = []
        self._waiting: deque[asyncio.Future[Transfer]] = deque()
        self._interval = min(1.0, options.read_timeout / 4, options.min_speed_window / 4)
        self._timer: asyncio.TimerHandle | None = None

    def hop(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Fetch one URL. The body of a redirect is left out: nobody sees it, so it cannot fail either.

        Raises a FetchError whose `__cause__` is the original error.
        """
        if request.save_to is None or request.method == "HEAD":
            return self._exchange(request)
        return save(request, self._exchange, self._options.files_dir or None, self._options.max_save)

    async def _exchange(self, request: Request, download: Download | None = None) -> Response:
        url = wire_url(request.url)
        if request.proxy:
            check_literal(self._shared.guard, url)
        transfer = self._free.pop() if self._free else await self._another()
        try:
            transfer.begin(request, self._setup.apply(transfer, request, url), download)
            transfer.future = future = self._loop.create_future()
            self._multi.add(transfer.easy, transfer.done)
            if self._timer is None:
                self._timer = self._loop.call_later(self._interval, self._look)
            cause = await future
            if cause is not None and transfer.was_unlucky(cause):
                transfer.forget()
                cause = await self._on_a_new_connection(transfer, request, download)
            return transfer.response(cause)
        except pycurl.error as error:
            raise FetchError(f"libcurl cannot start: {error}") from error
        finally:
            if not transfer.ended:
                self._multi.remove(transfer.easy)
            transfer.forget()
            if self._waiting or len(self._transfers) > self._options.limit:
                self._pass_on(transfer)
            else:
                self._free.append(transfer)

    async def _on_a_new_connection(
        self, transfer: Transfer, request: Request, download: Download | None
    ) -> pycurl.error | None:
        """Once more: connections that were idle were all closed by the server, one after the other."""
        transfer.easy.setopt(pycurl.FRESH_CONNECT, 1)
        try:
            transfer.begin(request, transfer.url, download)
            transfer.future = self._loop.create_future()
            self._multi.add(transfer.easy, transfer.done)
            return await transfer.future
        finally:
            transfer.easy.setopt(pycurl.FRESH_CONNECT, 0)

    def adjust(self, options: FetchOptions) -> None:
        """Take over timeout and limit."""
        self._options = self._shared.options = options
        self.deadlines.total = options.timeout
        self._multi.limit(2 * options.limit)
        while self._free and len(self._transfers) > options.limit:
            self._discard(self._free.pop())

    async def close(self) -> None:
        self.deadlines.close()
        if self._timer is not None:
            self._timer.cancel()
        for transfer in self._transfers:
            if not transfer.ended:
                transfer.error = FetchError("the fetcher was closed")
                self._stop(transfer)
        self._multi.close()
        for transfer in self._transfers:
            transfer.easy.close()
        self._free.clear()

    async def _another(self) -> Transfer:
        """A new one, or when as many connections are in use as may be, the next that is given back.

        libcurl could queue them, too, but would count the time in the queue as that for connecting.
        """
        if len(self._transfers) < self._options.limit:
            transfer = Transfer(self._setup.easy(), self._multi, self._shared)
            self._transfers.append(transfer)
            return transfer
        turn: asyncio.Future[Transfer] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())
            raise

    def _pass_on(self, transfer: Transfer) -> None:
        """To whoever waits for one, if there may still be so many."""
        if len(self._transfers) > self._options.limit:
            self._discard(transfer)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(transfer)
                return
        self._free.append(transfer)

    def _discard(self, transfer: Transfer) -> None:
        self._transfers.remove(transfer)
        transfer.easy.close()

    def _look(self) -> None:
        """End the transfers that are too slow; one look at all of them costs less than a timer for each."""
        self._timer = None
        now = perf_counter()
        busy = False
        for transfer in self._transfers:
            if not transfer.ended:
                busy = True
                if self._is_over(transfer, now):
                    self._stop(transfer)
        if busy:
            self._timer = self._loop.call_later(self._interval, self._look)

    def _is_over(self, transfer: Transfer, now: float) -> bool:
        """Whether there is nothing to wait for; sets the transfer's error where that is a failure."""
        options = self._options
        if not transfer.head_is_complete():
            if transfer.has_no_end():
                transfer.error = endless(origin(transfer.url))
                return True
            sent = transfer.easy.getinfo(pycurl.PRETRANSFER_TIME)
            if not sent or now - transfer.started - sent <= options.read_timeout:
                return False
            transfer.error = FetchTimeout(
                f"no answer from the server for {options.read_timeout:g} s", "first_byte"
            )
            return True
        if transfer.pace is None:
            transfer.pace = Pace(now)
        if transfer.is_redirect():
            return now - transfer.pace.since >= _REDIRECT_WAIT
        if transfer.error is not None or transfer.promises_too_much():
            return True
        try:
            transfer.pace.check(transfer.size, now, options)
        except FetchTimeout as error:
            transfer.error = error
            return True
        return False

    def _stop(self, transfer: Transfer) -> None:
        self._multi.remove(transfer.easy)
        transfer.done(None)
