"""Serves the demo shop on this machine, beside a crawl or alone."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType

import uvloop
from aiohttp import web

from silkline.demo.shop import Shop
from silkline.errors import ConfigError

SHUTDOWN_SECONDS = 0.5
"""Running answers get so long to end."""


class DemoServer:
    """`async with DemoServer() as server:` serves a shop at `server.url` until the block is left.

    port: 0 takes a free one.

    Raises ConfigError on entry where the address cannot be used.
    """

    def __init__(self, shop: Shop | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.shop = Shop() if shop is None else shop
        self.url = ""
        self._host = host
        self._port = port
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> DemoServer:
        if not 0 <= self._port <= 65_535:
            raise ConfigError(f"{self._port} is not a port: choose one up to 65535, or 0 for any free port")
        server = web.Server(self.shop.handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, backlog=1_024).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(_explain(self._host, self._port, error)) from error
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


def _explain(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; choose another one, or 0 for any free port"
    return f"the demo shop cannot listen on {host}, port {port}: {error.strerror or error}"


@contextmanager
def serve_in_thread(shop: Shop | None = None, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """`with serve_in_thread() as url:` serves a shop from a thread of its own, with its own event loop.

    Raises ConfigError where the address cannot be used.
    """
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        left = asyncio.Event()
        async with DemoServer(shop, host=host, port=port) as server:
            started.set_result((server.url, asyncio.get_running_loop(), left))
            await left.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="silkline-demo", daemon=True)
    thread.start()
    try:
        url, loop, left = started.result()
    except BaseException:
        thread.join()
        raise
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(left.set)
        thread.join()
