"""The worker's line to its operator: a heartbeat out, the live settings back in, every two seconds."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic, time

import msgspec

from silkline.config import FrontierOptions, Settings
from silkline.engine.leases import Held
from silkline.engine.pacing import Pacing
from silkline.engine.retry import RetryPolicy
from silkline.events import Steered, Trouble
from silkline.live import Live, read_live
from silkline.observe.tally import Tally
from silkline.outcome import Heartbeat
from silkline.protocols import Adjustable, Fetcher, Frontier, Hook
from silkline.resolve import shown

PERIOD = (1.5, 1.9)
"""Seconds between two heartbeats, at random so that many workers do not beat as one. A change is followed
within 2 s, the way to the store included."""

RATE_BEATS = 6
MAX_COMPLAINTS = 20


class Levers(msgspec.Struct, frozen=True):
    """What of a running worker can be changed."""

    held: Held
    retry: RetryPolicy
    fetcher: Fetcher
    wake_leaser: Callable[[], None]
    pacing: Pacing | None = None


class Pulse:
    """Tells how the worker does."""

    def __init__(self, tally: Tally, held: Held) -> None:
        self._tally = tally
        self._held = held
        self._started = time()
        self._beats = deque([(monotonic(), tally.pages)], maxlen=RATE_BEATS)

    def __call__(self) -> Heartbeat:
        tally, held = self._tally, self._held
        now = monotonic()
        since, pages = self._beats[0]
        self._beats.append((now, tally.pages))
        return Heartbeat(
            host=socket.gethostname(),
            pid=os.getpid(),
            started=self._started,
            pages=tally.pages,
            items=tally.items,
            in_flight=held.in_flight,
            ready=held.unstarted,
            rate=round((tally.pages - pages) / (now - since), 2) if now > since else 0.0,
            paused=held.paused,
        )


class Steering:
    """Beats, and does what the live settings say.

    A text that cannot be used is reported once, and the worker's own setting holds.
    """

    def __init__(
        self, frontier: Frontier, settings: Settings, levers: Levers, pulse: Pulse, hook: Hook
    ) -> None:
        self._frontier = frontier
        self._own = settings
        self._now = settings
        self._levers = levers
        self._pulse = pulse
        self._hook = hook
        self._texts: Mapping[str, str] = {}
        self._complained: set[str] = set()

    def options(self) -> FrontierOptions:
        """By which the frontier gives leases now."""
        return self._now.frontier_options

    async def begin(self) -> None:
        """The first heartbeat, before anything starts: a job may be paused. Says which live settings win
        over the worker's own."""
        live = await self._beat()
        names = [name for name in live.settings if shown(name, self._now) != shown(name, self._own)]
        if names:
            told = ", ".join(f"{name}={shown(name, self._now)}" for name in names)
            job = self._own.job
            self._hook(
                Trouble(f"live settings of job {job!r} hold: {told} (silkline config unset --job {job} NAME)")
            )

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            await asyncio.sleep(random.uniform(*PERIOD))
            await self._beat()

    async def _beat(self) -> Live:
        texts = await self._frontier.heartbeat(self._pulse())
        live = read_live(texts, "live settings")
        if texts != self._texts:
            self._texts = texts
            self._complain(live)
            await self._follow(live)
        return live

    def _complain(self, live: Live) -> None:
        for line in live.complaints:
            if line not in self._complained and len(self._complained) < MAX_COMPLAINTS:
                self._complained.add(line)
                self._hook(Trouble(line))

    async def _follow(self, live: Live) -> None:
        levers, before = self._levers, self._now
        wanted = self._now = live.over(self._own)
        changes = {
            name: shown(name, wanted)
            for name in wanted.__struct_fields__
            if getattr(wanted, name) != getattr(before, name)
        }
        if live.paused != levers.held.paused:
            changes["paused"] = "true" if live.paused else "false"
            await self._frontier.release(levers.held.pause(live.paused))
        if wanted.concurrency != levers.held.asked:
            levers.held.ask(wanted.concurrency)
        levers.retry.retries = wanted.retries
        if {"timeout", "concurrency"} & set(changes):
            self._adjust_fetcher(wanted, changes)
        if levers.pacing is not None:
            levers.pacing.follow(wanted)
        if wanted.frontier_options != before.frontier_options:
            # What waits for its moment was spaced by the old limits: let the frontier space it anew.
            postponed = levers.held.follow_delay(wanted.delay)
            await self._frontier.apply(wanted.frontier_options)
            await self._frontier.release(postponed)
        if changes:
            self._hook(Steered(changes))
        levers.wake_leaser()

    def _adjust_fetcher(self, wanted: Settings, changes: Mapping[str, str]) -> None:
        fetcher = self._levers.fetcher
        if isinstance(fetcher, Adjustable):
            fetcher.adjust(timeout=wanted.timeout, visits=wanted.concurrency)
        elif "timeout" in changes:
            self._hook(Trouble("live settings: this fetcher has no timeout that could be changed; ignored"))
