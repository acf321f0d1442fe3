"""The line of leases that may be visited now."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from silkline.outcome import Lease


class Ready(deque[Lease]):
    """First come, first served. What asyncio.Queue does besides would cost each page a dozen calls."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def put(self, lease: Lease) -> None:
        self.append(lease)
        self._wake()

    async def get(self) -> Lease:
        """The first one; where there is none, the next that comes."""
        while not self:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                with suppress(ValueError):
                    self._waiting.remove(turn)
                if self and turn.done() and not turn.cancelled():
                    self._wake()  # it was woken and leaves: what woke it is there for the next
                raise
        return self.popleft()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
