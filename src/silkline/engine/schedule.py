"""When a producer that repeats runs next."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from cronsim import CronSim, CronSimError

from silkline.errors import ConfigError
from silkline.protocols import Clock
from silkline.resolve import seconds_in

LONGEST_SLEEP = 30.0
"""Seconds: the wall clock may be set, or the machine be suspended, while we sleep."""
CRON_FIELDS = 5


class Schedule(Protocol):
    """Times are Unix seconds."""

    def first(self, now: float) -> float:
        """When the first run is due, for a producer that starts now."""

    def after(self, now: float) -> float:
        """When the next run is due, once one has ended now. What fell due meanwhile is left out."""

    def slot(self, due: float) -> float:
        """The time that the run which is due then stands for: the same for a producer that was started again
        before the next run would have been due."""


class Interval:
    """At once, and then every so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._start = 0.0
        self._turn = 0

    def first(self, now: float) -> float:
        self._start, self._turn = now, 0
        return now

    def after(self, now: float) -> float:
        # Turns are counted, since a due time may be rounded to one that seems not to have come yet.
        self._turn = max(self._turn, math.floor((now - self._start) / self._seconds)) + 1
        return self._start + self._turn * self._seconds

    def slot(self, due: float) -> float:
        turn = round((due - self._start) / self._seconds)
        return (math.floor(self._start / self._seconds) + turn) * self._seconds


class Cron:
    """At the times of a cron expression, in local time, with Debian cron's rules for the hours that a change
    of the clocks leaves out or brings twice."""

    def __init__(self, expression: str) -> None:
        """Raises CronSimError for what is no cron expression, or one that never comes."""
        self._expression = expression
        self.after(time.time())

    def first(self, now: float) -> float:
        return self.after(now)

    def after(self, now: float) -> float:
        for tick in CronSim(self._expression, datetime.fromtimestamp(now, _Local())):
            if (moment := tick.timestamp()) > now:
                return moment
        raise CronSimError("it never comes")

    def slot(self, due: float) -> float:
        return due


class _Local(tzinfo):
    """The time zone of this machine, with its changes: what `datetime.astimezone()` gives has none."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def tzname(self, moment: datetime | None) -> str | None:
        return None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def fromutc(self, moment: datetime) -> datetime:
        local = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())
        return local.replace(tzinfo=self)


def schedule_from(text: str) -> Schedule:
    """A length of time such as 30m, or a cron expression such as "0 */2 * * *". Raises ConfigError."""
    try:
        if len(text.split()) == CRON_FIELDS:
            return Cron(text)
        seconds = seconds_in(text)
        if seconds and 0 < seconds < math.inf:
            return Interval(seconds)
    except CronSimError as error:
        raise ConfigError(f"--every: {text!r} is no cron expression: {error}") from error
    raise ConfigError(
        f"--every: {text!r} is neither a length of time, such as 30m or 2h, nor a cron expression "
        "(minute, hour, day, month, weekday), such as '0 */2 * * *'"
    )


async def repeat(
    schedule: Schedule,
    run: Callable[[float], Awaitable[None]],
    stopping: asyncio.Event,
    *,
    waiting: Callable[[float], None],
    clock: Clock = time.time,
) -> None:
    """Call `run` with its slot each time it is due, one after the other, until `stopping` is set.

    waiting: is told when the next run is due, whenever there is one to wait for.
    """
    due = schedule.first(clock())
    while not stopping.is_set():
        if due > clock():
            waiting(due)
        while (left := due - clock()) > 0:
            try:
                async with asyncio.timeout(min(left, LONGEST_SLEEP)):
                    await stopping.wait()
                return
            except TimeoutError:
                continue
        await run(schedule.slot(due))
        due = schedule.after(clock())
