"""Rules that set the pace of one host: silkline's own, and those that others document."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import msgspec

from silkline.politeness.busy import BusyHosts
from silkline.politeness.limiter import ALARM, LimiterRules, Pace, Sample, advance, fresh, log_seconds


@dataclass
class Shared:
    """What all workers know of the host: the frontier's part."""

    cap: int
    delay: float = 0.0
    blocked_until: float = 0.0
    pace: Pace | None = None


class Silkline:
    """What a worker does with `politeness/limiter.py`: a sample a second, at once after failures only."""

    def __init__(self, rules: LimiterRules, shared: Shared | None = None, offset: float = 0.0) -> None:
        self.rules = rules
        self.shared = shared or Shared(rules.start)
        self.offset = offset
        self._own = fresh(0.0, rules)
        self._busy = BusyHosts()
        self._sample = Sample()
        self._ignore = self._told = 0.0
        self._in_a_row = 0
        self._blocked = (0.0, 0.0)

    @property
    def cap(self) -> int:
        return self.shared.cap

    @property
    def delay(self) -> float:
        return self.shared.delay

    @property
    def blocked_until(self) -> float:
        return self.shared.blocked_until

    def ended(self, began: float, now: float, status: int, latency: float) -> None:
        sample = self._sample
        if status == 429 and (block := self._busy.busy("host", began, now)):
            self._blocked = (now, now + block)
            self._block(now + block)
        if began < self._ignore:
            return
        if status == 200:
            self._busy.answered("host", began)
            sample.answered += 1
            sample.log_latency += log_seconds(latency)
            self._in_a_row = 0
            return
        if status in (429, 503):
            sample.busy += 1
        else:
            sample.failed += 1
        self._in_a_row += 1
        if self._in_a_row == ALARM:
            self.tick(now)

    def tick(self, now: float) -> None:
        sample, self._sample = self._sample, Sample()
        if self._blocked[1] > self._told:
            sample.block_from, sample.block_until = self._blocked[0] - now, self._blocked[1] - now
        sample.span = now - self._told
        self._told = now
        if not sample.answered + sample.busy + sample.failed:
            return
        pace = self.shared.pace or self._own
        advance(pace, sample, now, self.rules)
        if self.shared.pace is None and pace.free:
            return
        self.shared.pace, self.shared.cap, self.shared.delay = pace, pace.cap, pace.delay
        self._own = msgspec.structs.replace(pace)
        if pace.pause:
            self._block(now + pace.pause)
        if pace.since > now:
            self._ignore, self._in_a_row = now, 0

    def _block(self, until: float) -> None:
        self.shared.blocked_until = max(self.shared.blocked_until, until)


class Fixed:
    """So many requests at once, whatever comes of it."""

    offset = delay = blocked_until = 0.0

    def __init__(self, cap: int) -> None:
        self.cap = cap

    def ended(self, began: float, now: float, status: int, latency: float) -> None: ...

    def tick(self, now: float) -> None: ...


class AutoThrottle:
    """Scrapy's AutoThrottle as its documentation tells it, with its default settings: the delay becomes the
    mean of itself and latency / target after each response; a response other than 200 cannot shorten it. It
    begins with 5 s and is 60 s at most; 8 requests at once; delays vary by half."""

    offset = blocked_until = 0.0

    def __init__(self, target: float = 1.0, cap: int = 8, seed: int = 1) -> None:
        self.cap = cap
        self._target = target
        self._delay = 5.0
        self._random = random.Random(seed)

    @property
    def delay(self) -> float:
        return self._delay * self._random.uniform(0.5, 1.5)

    def ended(self, began: float, now: float, status: int, latency: float) -> None:
        wanted = latency / self._target
        new = min(60.0, max(wanted, (self._delay + wanted) / 2.0))
        if status == 200 or new > self._delay:
            self._delay = new

    def tick(self, now: float) -> None: ...


class AutoscaledPool:
    """Crawlee's autoscaled pool as its documentation tells it, with its default settings. It looks at the
    crawling machine, which is idle here, and at 429s that were retried: every 10 s the concurrency, 10 at
    first, goes up by 5 % where 90 % of it was used and the system was not overloaded lately, or down by 5 %
    where it was. A second with more than one 429 counts as overloaded, the system does when 30 % of the
    last 5 s are."""

    offset = delay = blocked_until = 0.0

    def __init__(self, start: int = 10, most: int = 200) -> None:
        self.cap = start
        self._most = most
        self._errors = 0
        self._seconds: deque[bool] = deque(maxlen=5)
        self._ticks = 0

    def ended(self, began: float, now: float, status: int, latency: float) -> None:
        self._errors += status == 429

    def tick(self, now: float) -> None:
        self._seconds.append(self._errors > 1)
        self._errors = 0
        self._ticks += 1
        if self._ticks % 10:
            return
        step = -(-self.cap * 5 // 100)
        if sum(self._seconds) > 0.3 * len(self._seconds):
            self.cap = max(1, self.cap - step)
        else:
            self.cap = min(self._most, self.cap + step)
