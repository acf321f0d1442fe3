"""When the worker that a fetch is for is about to stop: what only waits need not be waited for."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from silkline.errors import Postponed

leaving: ContextVar[asyncio.Event] = ContextVar("leaving")
"""Set when the worker is about to stop. The tasks that a worker starts see its own."""


async def wait(seconds: float) -> None:
    """Wait so long. Raises Postponed, so that the page is given back at once, when the worker is to stop."""
    event = leaving.get(None)
    if event is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    raise Postponed("the worker is about to stop")


async def wait_for(future: asyncio.Future[None]) -> None:
    """Wait until the future is done. Raises Postponed as `wait` does."""
    event = leaving.get(None)
    if event is None:
        await future
        return
    stopping = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((future, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if not future.done():
        raise Postponed("the worker is about to stop")
