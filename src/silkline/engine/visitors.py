"""The visitors: as many visits at once as the settings say, and one more for each that is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from silkline.engine.commit import Committer
from silkline.engine.leases import Held
from silkline.engine.visit import Tools, visit
from silkline.errors import Postponed
from silkline.events import Visited
from silkline.outcome import Dead, Lease, Outcome

SLOW = 1.0
"""Seconds after which a running visit no longer counts against the concurrency."""

PERIOD = 0.25


class Visitors:
    """Tasks that take ready leases and visit them.

    A host that hangs would hold its slots for the whole timeout and take them from the others. So a visit
    that runs for more than a second gets a stand-in, at most as many as there are visitors. The host
    itself gets no more requests for it: its cap is kept by the frontier. A visit that runs for longer than
    `limit` seconds, in a handler that waits for ever, is given up; one that fetches a file may take
    `save_limit` seconds more.
    """

    def __init__(
        self,
        tools: Tools,
        held: Held,
        committer: Committer,
        wake_leaser: Callable[[], None],
        tasks: asyncio.TaskGroup,
        limit: float,
        save_limit: float,
    ) -> None:
        self._tools = tools
        self._held = held
        self._committer = committer
        self._wake_leaser = wake_leaser
        self._tasks = tasks
        self._limit = limit
        self._save_limit = save_limit
        self._saving: set[asyncio.Task[None]] = set()
        self._given_up: set[asyncio.Task[None]] = set()
        self._working: set[asyncio.Task[None]] = set()
        self._wanted = held.concurrency
        self._ending = False
        self._hire()

    async def relieve(self) -> None:
        """Watch for slow visits, for ever."""
        while True:
            await asyncio.sleep(PERIOD)
            slow = len(self._held.running_for(SLOW))
            self._wanted = self._held.concurrency + min(slow, self._held.concurrency)
            self._hire()
            overdue = set(self._held.running_for(self._limit)) - self._saving
            overdue.update(self._held.running_for(self._limit + self._save_limit))
            for task in overdue:
                if task not in self._given_up:
                    self._given_up.add(task)
                    task.cancel()

    async def end(self) -> None:
        """Cancel what still runs."""
        self._ending = True
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _hire(self) -> None:
        for number in range(len(self._working), 0 if self._ending else self._wanted):
            task = self._tasks.create_task(self._work(), name=f"visitor-{number}")
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _work(self) -> None:
        held, ready, committer = self._held, self._held.ready, self._committer
        task = asyncio.current_task()
        assert task is not None
        while len(self._working) <= self._wanted:
            if not ready:
                committer.hurry()
            lease = ready.popleft() if ready else await ready.get()
            if len(self._working) > self._wanted:
                ready.put(lease)
                break
            if not held.begin(lease, task):
                continue
            limit = self._limit
            if lease.request.save_to is not None:
                self._saving.add(task)
                limit += self._save_limit
            if not held.asking and held.wanted:
                self._wake_leaser()
            visited: Visited | None
            try:
                visited = await visit(lease, self._tools)
            except Postponed:
                visited = None
            except asyncio.CancelledError:
                if self._ending or task not in self._given_up:
                    raise
                visited = given_up(lease, limit)
            finally:
                held.ended(lease)
                self._saving.discard(task)
                if task in self._given_up:
                    self._given_up.discard(task)
                    task.uncancel()
            if visited is not None:
                committer.put(visited)
                del visited  # or each visitor would keep a body while it fetches the next one
            else:
                held.forget((lease.token,))
                committer.give_back((lease.token,))
        self._working.discard(task)  # at once: others that look must not leave for the same reason


def given_up(lease: Lease, seconds: float) -> Visited:
    """What comes of a visit that ran out of its time."""
    error = f"the visit did not end within {seconds:g} s (visit_timeout); what does its handler wait for?"
    return Visited(Outcome(lease, Dead("visit_timeout", error)), None, seconds)
