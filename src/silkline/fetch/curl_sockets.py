"""libcurl's sockets, watched by the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable
from typing import Protocol

IN, OUT = 1, 2
"""What a socket is watched for, and what has happened to it: pycurl's POLL_IN, CSELECT_IN and so on."""

Ready = Callable[[int, int], None]
"""Told of a socket and what it is ready for."""


class Sockets(Protocol):
    """`ready` is called from the event loop."""

    def watch(self, what: int, fd: int, multi: object, data: object) -> None:
        """From now on watch `fd` for IN, OUT, both (3) or nothing (4).

        libcurl calls it, with two things more. It must not raise: pycurl would print that and lose it."""

    def opened(self, fd: int) -> None:
        """`fd` is a new connection."""

    def close(self) -> None: ...


def sockets_for(loop: asyncio.AbstractEventLoop, ready: Ready) -> Sockets:
    return EpollSockets(loop, ready) if hasattr(select, "epoll") else LoopSockets(loop, ready)


class EpollSockets:
    """Linux: an epoll of our own, of which the loop watches one descriptor.

    A kept connection stays in it between two transfers; to take it out and in each time would cost as much
    as the transfer does. libcurl does not say when it closes such a connection, but the kernel notices,
    which the loop's own watching would not survive.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}
        self._connections: set[int] = set()
        self._idle: set[int] = set()
        loop.add_reader(self._epoll.fileno(), self._poll)

    def watch(self, what: int, fd: int, multi: object = None, data: object = None) -> None:
        events = what & (IN | OUT)
        have = self._watched.get(fd, 0)
        if have == events:
            self._idle.discard(fd)
        elif not events:
            if have == IN and fd in self._connections:
                self._idle.add(fd)
            else:
                self._forget(fd)
        else:
            self._idle.discard(fd)
            mask = (select.EPOLLIN if events & IN else 0) | (select.EPOLLOUT if events & OUT else 0)
            if have:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
            self._watched[fd] = events

    def opened(self, fd: int) -> None:
        # The number may be that of a connection that is closed since.
        self._watched.pop(fd, None)
        self._idle.discard(fd)
        self._connections.add(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _forget(self, fd: int) -> None:
        if self._watched.pop(fd, 0):
            with contextlib.suppress(OSError):  # it may be closed already
                self._epoll.unregister(fd)
        self._idle.discard(fd)

    def _poll(self) -> None:
        for fd, mask in self._epoll.poll(0, 256):
            if fd in self._idle:
                # The server closed an idle connection, or says something that nobody asked for.
                self._forget(fd)
                continue
            events = 0
            if mask & ~select.EPOLLOUT:
                events = IN
            if mask & ~select.EPOLLIN:
                events |= OUT
            self._ready(fd, events)


class LoopSockets:
    """Elsewhere: each socket is watched by the loop, as long as a transfer uses it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._watched: dict[int, int] = {}

    def watch(self, what: int, fd: int, multi: object = None, data: object = None) -> None:
        events = what & (IN | OUT)
        have = self._watched.get(fd, 0)
        if events & IN and not have & IN:
            self._loop.add_reader(fd, self._ready, fd, IN)
        elif have & IN and not events & IN:
            self._loop.remove_reader(fd)
        if events & OUT and not have & OUT:
            self._loop.add_writer(fd, self._ready, fd, OUT)
        elif have & OUT and not events & OUT:
            self._loop.remove_writer(fd)
        if events:
            self._watched[fd] = events
        else:
            self._watched.pop(fd, None)

    def opened(self, fd: int) -> None:
        pass

    def close(self) -> None:
        for fd in list(self._watched):
            self.watch(0, fd)
