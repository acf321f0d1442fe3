"""A latency histogram of fixed size, whose buckets grow by a constant factor."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log2

import msgspec

LOWEST = 0.001
"""Seconds; what is faster shares one bucket."""
HIGHEST = 300.0
"""Seconds; what is slower shares one bucket."""
PER_DOUBLING = 24
"""Buckets per factor of two: each is 2.9 % wide, so its middle is within 1.5 % of any value in it."""

_TOP = ceil(log2(HIGHEST / LOWEST) * PER_DOUBLING) + 1
_PER_SECOND = 1.0 / LOWEST


class Histogram(msgspec.Struct):
    """Counts of durations. Bucket 0 is below 1 ms, the last one from 300 s on, and
    bucket i covers 1 ms * 2**((i - 1) / 24) up to 1 ms * 2**(i / 24).

    total: sum of all durations, in seconds.
    """

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (_TOP + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        if seconds < LOWEST:
            self.counts[0] += 1
        elif seconds >= HIGHEST:
            self.counts[_TOP] += 1
        else:
            self.counts[int(log2(seconds * _PER_SECOND) * PER_DOUBLING) + 1] += 1
        self.total += seconds

    def __len__(self) -> int:
        return sum(self.counts)

    def quantile(self, q: float) -> float | None:
        """The duration in seconds that a share `q` (0..1) of all durations does not exceed, within 1.5 %.

        None if there are none. Below 1 ms it says 1 ms, and from 300 s on 300 s.
        """
        rank = max(1, ceil(q * len(self)))
        passed = 0
        for index, count in enumerate(self.counts):
            passed += count
            if passed >= rank:
                return _middle(index)
        return None

    def below(self, seconds: float) -> int:
        """How many durations are under `seconds`: exact where that is 1 ms times a power of two."""
        return sum(self.counts[: round(log2(seconds * _PER_SECOND) * PER_DOUBLING) + 1])


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All of them in a new one."""
    parts = list(histograms)
    if not parts:
        return Histogram()
    return Histogram(
        [sum(column) for column in zip(*(h.counts for h in parts), strict=True)], sum(h.total for h in parts)
    )


def _middle(index: int) -> float:
    if index == 0:
        return LOWEST
    if index == _TOP:
        return HIGHEST
    return float(LOWEST * 2 ** ((index - 0.5) / PER_DOUBLING))
