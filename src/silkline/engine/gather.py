"""Batches of a size that suits the frontier, of batches as a source gives them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from silkline.request import Request

LINGER = 0.05
"""Seconds that what was read waits for more to come with it."""


async def gathered(
    batches: AsyncGenerator[list[Request], None], size: int, stopping: asyncio.Event
) -> AsyncGenerator[list[Request], None]:
    """Batches of `size`, and smaller ones where the source pauses, fails or ends. Ends at once when
    `stopping` is set. Raises what the source raises, after what came before it."""
    held: list[Request] = []
    stop = asyncio.ensure_future(stopping.wait())
    reading: asyncio.Future[list[Request] | None] = asyncio.ensure_future(anext(batches, None))
    try:
        while True:
            pause = LINGER if held else None
            await asyncio.wait((reading, stop), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if stopping.is_set():
                return
            # Looked at once: while a part is with the consumer, the next batch may come in.
            done = reading.done()
            got = reading.result() if done and not reading.exception() else None
            held += got or ()
            while len(held) >= size or (held and got is None):
                part, held = held[:size], held[size:]
                yield part
                if stopping.is_set():
                    return
            if done:
                if reading.result() is None:
                    return
                reading = asyncio.ensure_future(anext(batches, None))
    finally:
        stop.cancel()
        reading.cancel()
        await asyncio.wait((reading, stop))
