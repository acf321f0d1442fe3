"""SIGINT, SIGTERM and SIGHUP while something runs on the event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any


class stop_on_signals:  # noqa: N801 - reads as the with-statement it is for
    """While inside, SIGINT, SIGTERM and SIGHUP (its terminal is gone) call `stop` on the running loop;
    nothing where that cannot be (a thread, a notebook's own handling), or is ignored (nohup).

    A handler that never lets go of the loop keeps it from hearing the first signal; the second one then
    interrupts the handler itself. The third one does so in any case.
    """

    def __init__(self, stop: Callable[[], None], *, wanted: bool) -> None:
        self._stop = stop
        self._numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if wanted else ()
        self._before: dict[int, Any] = {}
        self._count = 0
        self._unheard = 0

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        for number in self._numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                with suppress(ValueError):
                    self._before[number] = signal.signal(number, self._arrived)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._unheard or self._count > 2:
            raise KeyboardInterrupt
        self._unheard += 1
        self._loop.call_soon_threadsafe(self._heard)

    def _heard(self) -> None:
        self._unheard = 0
        self._stop()
