"""SIGTERM and SIGINT before a crawl has its own handlers for them, and after."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HELD = frozenset({signal.SIGINT, signal.SIGTERM})


@contextmanager
def sigterm_like_sigint() -> Iterator[None]:
    """While inside, SIGTERM does what Ctrl-C would do at that moment: raise KeyboardInterrupt, mostly.

    Worker processes are forked in here: there it ends the process at once, until they have handlers of
    their own, since nobody would catch the exception.
    """
    parent = os.getpid()

    def act(number: int, frame: FrameType | None) -> None:
        if os.getpid() != parent:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # ignored, as for a job in the background of a script
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, act)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_held() -> Iterator[None]:
    """What arrives inside is acted on at the end: in the middle of a fork, Python would drop the exception.

    A process that is forked in here begins with the signals held; it lets them go with `let_signals_in`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_signals_in() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
