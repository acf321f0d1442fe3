"""Time limits of all running fetches, kept by one timer.

A timer per fetch and one per read cost a tenth of the CPU of a small page. Here a fetch only writes down when
it is due; the one timer wakes at the earliest of these times, which is rarely: nearly all fetches end long
before they are due.
"""

from __future__ import annotations

import asyncio
import math

from silkline.errors import FetchTimeout


class Deadline:
    """When one fetch is due. It belongs to the task that made it."""

    __slots__ = ("cancelling", "due", "ends", "expired", "phase", "task", "total")

    def __init__(self, task: asyncio.Task[object], now: float, total: float) -> None:
        self.task = task
        self.cancelling = task.cancelling()
        self.total = total
        self.due = self.ends = now + total
        self.expired = False
        self.phase = "total"


class Deadlines:
    """Ends fetches that take longer than `total` seconds, or wait longer than `read` seconds for data.

    A task fetches one thing at a time: `start`, then `waiting` whenever it begins to wait for the server's
    headers ("first_byte") or next data ("read") and `connecting` whenever it waits for something else, then
    `stop`. An overdue task is
    cancelled, as `asyncio.timeout` does it; `stop` tells that cancellation from one that came from elsewhere.
    """

    def __init__(self, total: float, read: float) -> None:
        self.total = total
        self._read = read
        self._loop = asyncio.get_running_loop()
        self._running: dict[asyncio.Task[object], Deadline] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakes = math.inf

    def start(self, total: float | None = None) -> Deadline:
        """The current task begins a fetch: from now on the total limit runs, or one of its own."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        deadline = self._running[task] = Deadline(task, self._loop.time(), total or self.total)
        if deadline.due < self._wakes:
            self._wake_at(deadline.due)
        return deadline

    def waiting(self, phase: str = "read") -> None:
        """The current task waits for the server: from now on the read limit runs."""
        task = asyncio.current_task()
        if task is not None and (deadline := self._running.get(task)) is not None:
            deadline.phase = phase
            deadline.due = min(deadline.ends, self._loop.time() + self._read)
            if deadline.due < self._wakes:
                self._wake_at(deadline.due)

    def connecting(self) -> None:
        """The current task waits for no data; only the total limit runs."""
        task = asyncio.current_task()
        if task is not None and (deadline := self._running.get(task)) is not None:
            deadline.due = deadline.ends

    def stop(self, deadline: Deadline, error: BaseException | None) -> None:
        """The fetch has ended, with `error` where it failed. Raises FetchTimeout if it was overdue."""
        del self._running[deadline.task]
        if not deadline.expired:
            return
        # Someone else may have cancelled the task at the same time; that cancellation is not ours to eat.
        ours_alone = deadline.task.uncancel() <= deadline.cancelling
        if isinstance(error, Exception) or (ours_alone and isinstance(error, asyncio.CancelledError)):
            if deadline.due < deadline.ends:
                what = "data" if deadline.phase == "read" else "answer"
                raise FetchTimeout(
                    f"no {what} from the server for {self._read:g} s", deadline.phase
                ) from error
            raise FetchTimeout(f"no complete answer within {deadline.total:g} s", "total") from error

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._wakes = math.inf

    def _wake_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = due
        self._timer = self._loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for deadline in self._running.values():
            if deadline.due <= now and not deadline.expired:
                deadline.expired = True
                deadline.task.cancel()
        earliest = min((d.due for d in self._running.values() if not d.expired), default=math.inf)
        self._wakes = math.inf
        if earliest < math.inf:
            self._wake_at(earliest)
