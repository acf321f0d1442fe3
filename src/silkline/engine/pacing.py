"""How fast each host is asked: its answers go to the limiter, and what that decides to the frontier.

A page costs some additions here. Once a second, and at once where a host gives nothing but failures, the
frontier is asked once for all hosts that have answered since; see `politeness/limiter.py` for the rules.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from time import monotonic

import msgspec

from silkline.config import Settings
from silkline.engine.leases import Held
from silkline.engine.turns import hops
from silkline.events import Visited
from silkline.outcome import Done, HostPace, Moved
from silkline.politeness.limiter import ALARMS, advance
from silkline.politeness.pace import LimiterRules, Pace, Sample, fresh, log_seconds, read, written
from silkline.protocols import Frontier

PERIOD = (0.9, 1.1)
"""Seconds between two tellings, at random so that many workers do not tell as one."""

MAX_WATCHED = 5_000
"""Hosts whose pace is remembered here between two tellings; what is slowed down is in the frontier, too."""

BUSY = frozenset({"http_429", "http_503"})
FAILED = frozenset(
    {
        *("timeout", "connect", "protocol"),
        *("http_403", "http_408", "http_425", "http_500", "http_502", "http_504"),
    }
)
"""Causes of failures that may come of asking too much."""


class _Watch:
    """One host, as this worker sees it. ignore: what began before says nothing about the pace that holds now;
    monotonic, as block_from and block_until."""

    __slots__ = ("block_from", "block_until", "ignore", "in_a_row", "pace", "sample", "told")

    def __init__(self, now: float) -> None:
        self.sample = Sample()
        self.in_a_row = 0
        self.ignore = self.block_from = self.block_until = 0.0
        self.told = now
        self.pace: Pace | None = None

    def take(self, now: float, since: float, lag: float) -> Sample:
        """What was seen since `since`."""
        sample, self.sample = self.sample, Sample()
        if self.block_until > self.told:
            sample.block_from, sample.block_until = self.block_from - now, self.block_until - now
        sample.lag = lag
        sample.span = now - since
        self.told = now
        return sample


class Pacing:
    """Call `note` with every visit. give_back: releases leases that were handed out before a step down."""

    def __init__(
        self,
        frontier: Frontier,
        settings: Settings,
        held: Held,
        give_back: Callable[[Sequence[int]], None],
        lag: Callable[[], float],
    ) -> None:
        self._frontier = frontier
        self._rules = rules_of(settings)
        self._held = held
        self._give_back = give_back
        self._lag = lag
        self._watches: dict[str, _Watch] = {}
        self._heard: set[str] = set()
        self._told = monotonic()
        self._alarm = asyncio.Event()

    def follow(self, settings: Settings) -> None:
        """Live settings have changed."""
        self._rules = rules_of(settings)

    def note(self, visited: Visited) -> None:
        """Count what became of a visit."""
        outcome, response = visited.outcome, visited.response
        lease, verdict = outcome.lease, outcome.verdict
        watch = self._watches.get(lease.host)
        if watch is None:
            watch = self._watches[lease.host] = _Watch(monotonic())
        if outcome.block_host:
            watch.block_from = monotonic()
            watch.block_until = watch.block_from + outcome.block_host
        if watch.ignore and monotonic() - visited.seconds < watch.ignore:
            return
        sample = watch.sample
        if isinstance(verdict, Moved) and (response is None or response.onward is None):
            return  # it begins anew
        if not isinstance(verdict, (Done, Moved)):
            cause = verdict.cause
            if cause in BUSY or cause in FAILED:
                if visited.elsewhere:
                    return
                if cause in BUSY:
                    sample.busy += 1
                    sample.limited += cause == "http_429"
                else:
                    sample.failed += 1
                self._heard.add(lease.host)
                watch.in_a_row += 1
                if watch.in_a_row in ALARMS:
                    self._alarm.set()
                return
        if response is None or response.from_cache:
            return
        # What waits for its turn elsewhere was answered here; where it goes on, that host answers.
        if isinstance(verdict, Done) and visited.elsewhere:
            return
        watch.in_a_row = 0
        sample.answered += 1
        seconds = response.timings.first_byte or visited.seconds
        sample.log_latency += log_seconds(seconds / hops(response, lease))
        self._heard.add(lease.host)

    async def run(self) -> None:
        """Tell for ever."""
        while True:
            try:
                async with asyncio.timeout(random.uniform(*PERIOD)):
                    await self._alarm.wait()
            except TimeoutError:
                pass
            self._alarm.clear()
            await self.tell()

    async def tell(self) -> None:
        """Let what was seen since the last time count."""
        now, lag = monotonic(), self._lag()
        since, self._told = self._told, now
        if not self._heard:
            return
        heard, self._heard = self._heard, set()
        samples = {host: self._watches[host].take(now, since, lag) for host in heard}
        paces: dict[str, tuple[Pace, float]] = {}

        def decide(host: str, state: bytes | None, at: float) -> HostPace | None:
            pace = self._pace(host, state, at - samples[host].span)
            advance(pace, samples[host], at, self._rules)
            paces[host] = (pace, at)
            if state is None and pace.free:
                return None
            return HostPace(pace.cap, pace.delay, pace.pause, written(pace))

        await self._frontier.pace(list(samples), decide)
        for host, (pace, at) in paces.items():
            self._obey(host, pace, at)
        self._forget(heard)

    def _pace(self, host: str, state: bytes | None, since: float) -> Pace:
        """A copy to go on from: the one that is shared, or else what this worker alone knows, or one that
        begins with what it has seen now."""
        if state is not None:
            try:
                return read(state)
            except msgspec.MsgspecError:
                pass  # of another version: found out anew
        known = self._watches[host].pace
        return fresh(since, self._rules) if known is None else read(written(known))

    def _obey(self, host: str, pace: Pace, at: float) -> None:
        """Hold what this worker has of the host to its new pace."""
        watch = self._watches[host]
        before, watch.pace = watch.pace, pace
        if pace.pause > 0.0:
            self._give_back(self._held.block(host, pace.pause))
        elif before is not None and (pace.cap < before.cap or pace.delay > 1.1 * before.delay):
            self._give_back(self._held.withdraw(host))
        if pace.since > at:
            watch.ignore = monotonic()
            watch.in_a_row = 0

    def _forget(self, heard: set[str]) -> None:
        if len(self._watches) > MAX_WATCHED:
            keep = heard | self._heard
            self._watches = {host: watch for host, watch in self._watches.items() if host in keep}


def rules_of(settings: Settings) -> LimiterRules:
    return LimiterRules(
        start=settings.per_host,
        ceiling=max(settings.per_host, settings.adaptive_ceiling or 0),
        floor=settings.adaptive_floor,
    )
