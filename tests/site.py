"""A real HTTP server on 127.0.0.1 for tests, in a thread of its own, with a log of what it was asked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from types import TracebackType

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """`pages`: path -> HTML, or an async function of the request. `other` answers the other paths, or 404.

    `held`: while it is set no page is answered.
    `hits` counts requests by path, but not those for a robots.txt that is not there."""

    def __init__(
        self, pages: dict[str, str | Answer], *, delay: float = 0.0, other: Answer | None = None
    ) -> None:
        self.pages = pages
        self._other = other
        self.delay = delay
        self.hits: Counter[str] = Counter()
        self.in_flight = 0
        self.most_in_flight = 0
        self.held = False
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Site:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        server = web.TCPSite(self._runner, "127.0.0.1", 0)
        await server.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path_qs
        if path == "/robots.txt" and path not in self.pages:
            return web.Response(status=404, text="no robots.txt")
        self.hits[path] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            while self.held:  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)
            if self.delay:
                await asyncio.sleep(self.delay)
            page = self.pages.get(path, self._other)
            if page is None:
                return web.Response(status=404, text="nothing here")
            if isinstance(page, str):
                return web.Response(text=page, content_type="text/html")
            return await page(request)
        finally:
            self.in_flight -= 1


class Endless(Site):
    """Every page links to one more until `ended` is set: a crawl of it is never over before its time, however
    fast the machine is. `seeds` begin chains side by side, so that many pages may be fetched at once."""

    CHAINS = 20

    def __init__(self, *, delay: float = 0.0) -> None:
        super().__init__({}, delay=delay, other=self._next)
        self.ended = False

    @property
    def seeds(self) -> list[str]:
        return [f"{self.url}/{n}" for n in range(self.CHAINS)]

    async def _next(self, request: web.Request) -> web.StreamResponse:
        link = "" if self.ended else f'<a href="/{int(request.path[1:]) + self.CHAINS}">on</a>'
        return web.Response(text=f"<p>{link}", content_type="text/html")


def linked_site(count: int, links: int = 3) -> dict[str, str | Answer]:
    """`count` pages, all reachable from "/": page n links to its children in a tree and to the start."""
    pages: dict[str, str | Answer] = {}
    for number in range(count):
        children = [number * links + k for k in range(1, links + 1)]
        anchors = "".join(f'<a href="/p/{child}">{child}</a>' for child in children if child < count)
        path = "/" if number == 0 else f"/p/{number}"
        pages[path] = (
            f'<html><title>Page {number}</title><h1>{number}</h1>{anchors}<a href="/">home</a></html>'
        )
    return pages


async def plain(request: web.Request) -> web.Response:
    """A page with nothing on it."""
    return web.Response(text="x", content_type="text/html")


def noting(times: list[float], answer: Answer = plain) -> Answer:
    """The answer, and when each was asked for."""

    async def noted(request: web.Request) -> web.StreamResponse:
        times.append(time.monotonic())
        return await answer(request)

    return noted


def redirect(to: str) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": to})

    return answer


def check_spacing(starts: Sequence[float], delay: float) -> None:
    """What the server sees of a start comes late on a busy machine, which makes one gap longer and the next
    one shorter, or only shorter where it is the first start; a burst would make several short."""
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert starts[-1] - starts[0] >= (len(gaps) - 1) * delay, gaps
    assert sum(gap < 0.6 * delay for gap in gaps) <= 1, gaps
