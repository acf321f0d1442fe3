"""How well each proxy works, in general and for each host, and who has to rest for how long."""

from __future__ import annotations

import random
from collections import OrderedDict
from time import monotonic

from silkline.protocols import Clock

FIRST_REST = 2.0
LONGEST_REST = 600.0
"""Seconds that a proxy rests after its first failure in a row, and at most: it doubles with each one."""
FIRST_BAN = 30.0
LONGEST_BAN = 3_600.0
"""The same for a host that banned it."""

STRIKES = 3
"""Bans in a row that nothing confirms, until they count: a 403 may be the page's own."""

RECENT = 60.0
"""Seconds for which a success says that it is not the proxy when something fails."""

ON_TRIAL = 2
"""Requests at a time through a proxy that has not answered yet."""

MAX_RECORDS = 20_000
"""Proxies, and pairs of proxy and host, that are remembered; providers may list new ones for ever."""

_WEIGHT = 0.2
"""Of the latest result in the averages."""


class Record:
    """Results of one proxy, or of one proxy with one host.

    rate: share of successes, the latest ones count most. latency: seconds of a success.
    failures: in a row. bans: of a row without confirmation. until: when its rest ends.
    """

    __slots__ = ("bans", "failures", "in_flight", "last_ok", "latency", "rate", "until")

    def __init__(self) -> None:
        self.rate = 1.0
        self.latency = 0.0
        self.failures = 0
        self.bans = 0
        self.in_flight = 0
        self.last_ok = -1e9
        self.until = 0.0

    def succeeded(self, seconds: float, now: float) -> None:
        self.rate += _WEIGHT * (1.0 - self.rate)
        self.latency = seconds if not self.latency else self.latency + _WEIGHT * (seconds - self.latency)
        self.failures = self.bans = 0
        self.last_ok = now
        self.until = 0.0

    def failed(self) -> None:
        self.rate *= 1.0 - _WEIGHT
        self.failures += 1

    def rest(self, first: float, longest: float, now: float) -> None:
        """A little random, so that proxies that failed together do not come back together."""
        wait = min(longest, first * 2.0 ** min(self.failures - 1, 30))
        self.until = max(self.until, now + wait * random.uniform(0.8, 1.2))


class Health:
    """The records of a pool. Times are those of `clock`, in seconds."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._proxies: OrderedDict[str, Record] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, str], Record] = OrderedDict()
        self.last_ok = clock()
        """When any proxy worked; at first the beginning."""
        self.worked = False
        """Whether any one ever did."""

    def of(self, proxy: str) -> Record:
        record = self._proxies.get(proxy)
        if record is None:
            record = self._proxies[proxy] = Record()
            if len(self._proxies) > MAX_RECORDS:
                self._proxies.popitem(last=False)
        return record

    def is_free(self, proxy: str, host: str) -> bool:
        """Whether the proxy may be used for the host now. One that has never answered, or has failed since,
        gets few requests until it does: if it hangs, it must not hold all that are under way."""
        record = self._proxies.get(proxy)
        if record is None:
            return True
        if record.in_flight >= ON_TRIAL and (record.failures or record.last_ok < 0.0):
            return False
        pair = self._pairs.get((proxy, host))
        return max(record.until, pair.until if pair else 0.0) <= self._clock()

    def usable_at(self, proxy: str, host: str) -> float:
        """From when on the proxy may be used for the host; a time that is past means now."""
        record, pair = self._proxies.get(proxy), self._pairs.get((proxy, host))
        return max(record.until if record else 0.0, pair.until if pair else 0.0)

    def score(self, proxy: str, host: str) -> float:
        """Larger is better: works often for this host, answers soon, and has little to do."""
        record = self.of(proxy)
        best = self._pairs.get((proxy, host), record)
        seconds = best.latency or record.latency  # 0 at first, so that all are tried
        return max(1e-6, best.rate * record.rate) / ((seconds + 0.1) * (record.in_flight + 1))

    def works(self, proxy: str) -> bool:
        """Whether it did something well a short while ago."""
        return self._clock() - self.of(proxy).last_ok < RECENT

    def succeeded(self, proxy: str, host: str, seconds: float) -> None:
        now = self._answered()
        self.of(proxy).succeeded(seconds, now)
        self._pair(proxy, host).succeeded(seconds, now)

    def answered(self, proxy: str) -> None:
        """It did its part, whatever the answer is."""
        self.of(proxy).last_ok = self._answered()

    def failed(self, proxy: str) -> None:
        """It is the proxy's fault: it rests, for all hosts."""
        self._rest(self.of(proxy), FIRST_REST, LONGEST_REST)

    def failed_for(self, proxy: str, host: str) -> None:
        """It did not get to the host, and another one did: it rests for that host."""
        self._rest(self._pair(proxy, host), FIRST_BAN, LONGEST_BAN)

    def disappointed(self, proxy: str, host: str) -> None:
        """Something failed that may be the host's fault as well: others are preferred for it."""
        self._pair(proxy, host).rate *= 1.0 - _WEIGHT

    def banned(self, proxy: str, host: str, *, confirmed: bool) -> None:
        """The host blocks it. confirmed: it let another proxy through."""
        self.answered(proxy)
        pair = self._pair(proxy, host)
        pair.bans += 1
        if confirmed or pair.bans >= STRIKES:
            self._rest(pair, FIRST_BAN, LONGEST_BAN)

    def _rest(self, record: Record, first: float, longest: float) -> None:
        """Requests that were under way together and failed count as one failure."""
        now = self._clock()
        if record.until <= now:
            record.failed()
            record.rest(first, longest, now)

    def _answered(self) -> float:
        self.worked = True
        self.last_ok = self._clock()
        return self.last_ok

    def _pair(self, proxy: str, host: str) -> Record:
        key = (proxy, host)
        record = self._pairs.get(key)
        if record is None:
            record = self._pairs[key] = Record()
            if len(self._pairs) > MAX_RECORDS:
                self._pairs.popitem(last=False)
        else:
            self._pairs.move_to_end(key)
        return record
