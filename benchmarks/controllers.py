"""Rules that set the pace of one host: silkline's own, and those that others document."""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec

from silkline.politeness.busy import BusyHosts
from silkline.politeness.limiter import ALARMS, advance
from silkline.politeness.pace import LimiterRules, Pace, Sample, fresh, log_seconds


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
            sample.limited += status == 429
        else:
            sample.failed += 1
        self._in_a_row += 1
        if self._in_a_row in ALARMS:
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
    """Scrapy's AutoThrottle with its default settings, by the rules that its documentation gives
    (https://docs.scrapy.org/en/latest/topics/autothrottle.html, "Throttling algorithm", read 2026-11-30):

    1. the delay starts at AUTOTHROTTLE_START_DELAY, 5 s;
    2. each response has a target delay, its latency by AUTOTHROTTLE_TARGET_CONCURRENCY, 1.0;
    3. the delay becomes the mean of the delay before and the target;
    4. a response other than 200 cannot shorten it;
    5. it is never below DOWNLOAD_DELAY, 0 s, nor above AUTOTHROTTLE_MAX_DELAY, 60 s.

    CONCURRENT_REQUESTS_PER_DOMAIN, 8, still holds, and so does RANDOMIZE_DOWNLOAD_DELAY, by which each delay
    is 0.5 to 1.5 of what it is.
    """

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
        new = min(60.0, (self._delay + latency / self._target) / 2.0)
        if status == 200 or new > self._delay:
            self._delay = new

    def tick(self, now: float) -> None: ...


class AutoscaledPool:
    """Crawlee's autoscaled pool with its default settings, by what its documentation says
    (https://crawlee.dev/js/docs/guides/scaling-crawlers and the API pages of AutoscaledPoolOptions and
    Snapshotter, read 2026-11-30): it starts with one request at a time and goes up to 200 (maxConcurrency).
    Every 10 s (autoscaleIntervalSecs) the concurrency goes up by 5 % (scaleUpStepRatio), rounded up, where
    90 % of it are in use (desiredConcurrencyRatio) and the machine is not overloaded, and down by 5 %
    (scaleDownStepRatio) where it is. Overloaded are memory, CPU, the event loop, or the client of its
    storage, all of which are fine here: what the crawled server answers is no input.
    """

    offset = delay = blocked_until = 0.0

    def __init__(self, start: int = 1, most: int = 200) -> None:
        self.cap = start
        self._most = most
        self._ticks = 0

    def ended(self, began: float, now: float, status: int, latency: float) -> None: ...

    def tick(self, now: float) -> None:
        self._ticks += 1
        if self._ticks % 10 == 0:
            self.cap = min(self._most, self.cap - (-self.cap * 5 // 100))
