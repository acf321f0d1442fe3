"""Wait for what another task, thread or process does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds."""


async def until(reached: Callable[[], object]) -> None:
    """Let the event loop go on until it is so. Raises TimeoutError when that takes too long."""
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)


def until_true(reached: Callable[[], object]) -> None:
    """The same without an event loop."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.005)
