"""libcurl's transfers on the running event loop: the multi interface, its sockets and its timer.

libcurl says which sockets it wants watched and when it wants to be woken; the loop does both, and nothing
here ever waits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pycurl  # type: ignore[import-untyped]

from silkline.fetch.curl_sockets import sockets_for

Done = Callable[["pycurl.error | None"], object]
"""Told that a transfer has ended, and how it failed."""

_CLOCK = 0.0005
"""Seconds by which the loop's and libcurl's clock may differ; libcurl counts milliseconds."""


class Multi:
    """Runs easy handles.

    limit: connections open at once, idle ones included.
    """

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: dict[Any, Done] = {}
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._wakes = self._due = math.inf
        self._sockets = sockets_for(self._loop, self._act)
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._wake_in)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self.limit(limit)

    def limit(self, connections: int) -> None:
        """So many may be open at once, idle ones included."""
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    def add(self, easy: Any, done: Done) -> None:
        """Start the transfer; `done` is called when it has ended, outside of libcurl's callbacks.

        Raises pycurl.error.
        """
        self._multi.add_handle(easy)
        self._running[easy] = done

    def remove(self, easy: Any) -> None:
        """Stop a transfer if it has not ended; its connection goes, or with HTTP/2 its stream."""
        if self._running.pop(easy, None) is not None:
            self._multi.remove_handle(easy)

    def opened(self, fd: int) -> None:
        """A transfer has made this socket for its connection."""
        self._sockets.opened(fd)

    def close(self) -> None:
        """Close all connections; no transfer may be running."""
        if self._timer is not None:
            self._timer.cancel()
        self._multi.close()
        self._sockets.close()

    # Called by libcurl. pycurl would print an exception and lose it, so nothing here may raise.

    def _wake_in(self, milliseconds: int) -> None:
        if milliseconds < 0:
            self._due = math.inf
            return
        self._due = self._loop.time() + milliseconds / 1000
        if self._due < self._wakes:
            self._sleep_until(self._due, milliseconds == 0)

    # Called by the event loop.

    def _sleep_until(self, due: float, now: bool = False) -> None:
        """One timer is enough, and it is only set anew for an earlier time."""
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = due
        self._timer = self._loop.call_soon(self._expire) if now else self._loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._wakes = math.inf
        if self._due <= self._loop.time() + _CLOCK:
            self._due = math.inf
            self._act(pycurl.SOCKET_TIMEOUT, 0)
        elif self._due < math.inf:
            self._sleep_until(self._due)

    def _act(self, fd: int, event: int) -> None:
        _, running = self._multi.socket_action(fd, event)
        if running < len(self._running):
            self._collect()

    def _collect(self) -> None:
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            for easy in good:
                self._multi.remove_handle(easy)
                self._running.pop(easy)(None)
            for easy, code, message in bad:
                self._multi.remove_handle(easy)
                self._running.pop(easy)(pycurl.error(code, message))
