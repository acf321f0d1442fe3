"""How fast a crawl goes, and when it will be through."""

from __future__ import annotations

from collections import deque

import msgspec

from silkline.observe.snapshot import Snapshot

WINDOW = 10.0
"""Seconds over which a rate is taken."""
ENOUGH = 3.0
"""Seconds of crawling before a time left is told."""
DELAYS = 4
"""Delays of a host that the window holds at least, and half of it must be over: pages that come in between
two starts of a host say nothing of the next one."""
SAMPLES = 200
"""Of a window, at most about."""
HISTORY = 60
"""Seconds that the history reaches back."""


class _Sample(msgspec.Struct, frozen=True):
    at: float
    pages: int
    settled: int


class Ahead(msgspec.Struct, frozen=True):
    """What is known of the end. settled: requests done or dead in the whole job, of `known` ones.

    certain: `known` is where the crawl ends, not just what was discovered so far.
    seconds: time left; None where it cannot be known.
    """

    settled: int
    known: int
    certain: bool
    seconds: float | None


class Trend:
    """Feed it every snapshot, in order.

    delay: seconds between two pages of a host.
    history: pages per second in each of the last seconds, oldest first.
    """

    def __init__(self, max_pages: int | None = None, delay: float = 0.0) -> None:
        self.history: deque[float] = deque(maxlen=HISTORY)
        self._max_pages = max_pages
        self._window = max(WINDOW, DELAYS * delay)
        self._enough = max(ENOUGH, 0.5 * DELAYS * delay)
        self._gap = self._window / SAMPLES
        self._samples: deque[_Sample] = deque()
        self._mark: _Sample | None = None

    def add(self, snapshot: Snapshot) -> None:
        tally = snapshot.tally
        sample = _Sample(snapshot.at, tally.pages, tally.pages + sum(tally.dead.values()))
        # The last one is replaced until the gap is over, so that a long window holds no more of them.
        if len(self._samples) > 1 and self._samples[-1].at - self._samples[-2].at < self._gap:
            self._samples.pop()
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].at <= sample.at - self._window:
            self._samples.popleft()
        if self._mark is None:
            self._mark = sample
        elif (passed := sample.at - self._mark.at) >= 1.0:
            self.history.append(max(0, sample.pages - self._mark.pages) / passed)
            self._mark = sample

    @property
    def rate(self) -> float:
        """Pages per second, over the last few seconds."""
        return self._per_second(self._samples[-1].pages - self._samples[0].pages) if self._samples else 0.0

    def ahead(self, snapshot: Snapshot) -> Ahead | None:
        """How far the crawl is. None while the frontier's sizes are not known.

        The end is certain where nothing new turns up (all seeds are read and no page brought a new link),
        and where there is a page budget, which ends the crawl at the latest.
        """
        stats = snapshot.stats
        if stats is None:
            return None
        settled = stats.done + stats.dead
        known = settled + stats.open
        certain = not snapshot.seeding and snapshot.tally.links_added == 0 and snapshot.tally.pages > 0
        if self._max_pages is not None and (not certain or self._max_pages < known):
            known, certain = max(settled, self._max_pages), True
        return Ahead(settled, known, certain, self._seconds_for(known - settled) if certain else None)

    def _seconds_for(self, requests: int) -> float | None:
        if not self._samples or self._samples[-1].at - self._samples[0].at < self._enough:
            return None
        rate = self._per_second(self._samples[-1].settled - self._samples[0].settled)
        return requests / rate if rate else None

    def _per_second(self, number: int) -> float:
        passed = self._samples[-1].at - self._samples[0].at
        return max(0, number) / passed if passed > 0 else 0.0
