"""Leases in hand: the leaser keeps a small local queue full, the renewer keeps all of them alive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic

from silkline.engine.ready import Ready
from silkline.events import Trouble
from silkline.outcome import Lease, LeaseBatch
from silkline.protocols import Frontier, Hook

PREFETCH = 2
"""Leases that wait in the local queue, as a multiple of the concurrency, where pages are slow."""

DEEPEST = 6
"""The same where pages are so fast that the queue would run out before the store answers."""

MAX_REMEMBERED = 10_000
"""Hosts whose last start is remembered, before those that are due again are forgotten."""


class Held:
    """Every lease that this worker has not finished: ready, not yet due, in flight or to be committed."""

    def __init__(self, concurrency: int, delay: float = 0.0, slack: int = 0) -> None:
        """slack: how many outcomes may wait for their commit before that holds back the leasing."""
        self._slack = slack
        self.asked = concurrency
        """Visits at once by the settings; `concurrency` is what the machine can bear of them."""
        self.concurrency = concurrency
        self._delay = delay
        self.paused = False
        self._own_delays: dict[str, float] = {}
        self._last_start: dict[str, float] = {}
        self.ready = Ready()
        self._depth = PREFETCH
        self.asking = False
        self._began: dict[int, tuple[float, asyncio.Task[None]]] = {}
        self.idle = asyncio.Event()
        self._held: dict[int, Lease] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._blocked: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._held)

    def ask(self, concurrency: int) -> None:
        """So many visits at once from now on."""
        self.asked = self.concurrency = concurrency

    def hold_back(self, allowed: int) -> None:
        """No more than that, whatever was asked for."""
        self.concurrency = min(self.asked, allowed)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._held)

    @property
    def unstarted(self) -> int:
        return len(self.ready) + len(self._timers)

    @property
    def starving(self) -> bool:
        """Visitors are idle for want of leases, and none are on their way."""
        return not self.asking and not self.ready and len(self._began) < self.concurrency

    @property
    def wanted(self) -> int:
        """How many leases to ask for: the local queue is refilled when half of it is used up.

        What is held in all is bounded, too, so that a slow store or output holds back the leasing
        (back-pressure) and memory stays small.
        """
        if self.paused:
            return 0
        target, unstarted = self._depth * self.concurrency, len(self.ready) + len(self._timers)
        if unstarted > target // 2:
            return 0
        uncommitted = len(self._held) - unstarted - len(self._began)
        room = (self._depth + 2) * self.concurrency - len(self._held) + max(0, min(self._slack, uncommitted))
        return max(0, min(target - unstarted, room))

    def came(self, leases: int, wanted: int) -> None:
        """So many leases are there, of those that were wanted. Where the local queue had run out before and
        there were enough of them, more are asked for from now on, and earlier; where much was left, less:
        what waits here, another worker cannot have."""
        if leases == wanted and self._held and not self.ready:
            self._depth = min(self._depth + 1, DEEPEST)
        elif self._depth > PREFETCH and len(self.ready) > self.concurrency:
            self._depth -= 1

    @property
    def in_flight(self) -> int:
        return len(self._began)

    def _is_too_early(self, lease: Lease) -> bool:
        """Whether the host's last visit here began less than its delay ago; then the lease comes again.

        The frontier has spaced the leases, but one that a busy worker started late must not be followed
        at once by the next.
        """
        delay = self._delay_of(lease.host) if self._own_delays else self._delay
        if not delay or (last := self._last_start.get(lease.host)) is None:
            return False
        wait = last + delay - monotonic()
        if wait <= 0.0:
            return False
        self._timers[lease.token] = asyncio.get_running_loop().call_later(wait, self._due, lease)
        return True

    def has_to_wait(self, lease: Lease) -> bool:
        """Whether a further request of a visit to its own host is not to be sent before the frontier says so:
        the host wants a delay, or to be left alone."""
        if lease.delay or self._delay_of(lease.host):
            return True
        until = self._blocked.get(lease.host)
        return until is not None and until > asyncio.get_running_loop().time()

    def begin(self, lease: Lease, task: asyncio.Task[None]) -> bool:
        """The task visits the lease from now on; False where that is not held any more, or its host is not
        due: then it comes again."""
        if lease.token not in self._held:
            return False
        if self._delay or self._own_delays:
            if self._is_too_early(lease):
                return False
            now = monotonic()
            if len(self._last_start) > MAX_REMEMBERED:
                recent = now - max(self._delay, *self._own_delays.values(), 0.0)
                self._last_start = {host: at for host, at in self._last_start.items() if at > recent}
            self._last_start[lease.host] = now
        self._began[lease.token] = (monotonic(), task)
        self.idle.clear()
        return True

    def ended(self, lease: Lease) -> None:
        del self._began[lease.token]
        if not self._began:
            self.idle.set()

    def running_for(self, seconds: float) -> list[asyncio.Task[None]]:
        """The tasks whose visits have been running for longer than that."""
        since = monotonic() - seconds
        return [task for began, task in self._began.values() if began < since]

    def take(self, leases: Iterable[Lease]) -> tuple[int, ...]:
        """New leases: ready at once, or when their host allows it. Returns the tokens to release: a lease
        may be on its way while its host gets blocked here, or the worker paused."""
        if self.paused:
            return tuple(lease.token for lease in leases)
        loop = asyncio.get_running_loop()
        refused = []
        for lease in leases:
            if self._blocked and self._blocked.get(lease.host, 0.0) > loop.time():
                refused.append(lease.token)
                continue
            self._held[lease.token] = lease
            if lease.starts_in > 0.001:
                self._timers[lease.token] = loop.call_later(lease.starts_in, self._due, lease)
            else:
                self.ready.put(lease)
        return tuple(refused)

    def block(self, host: str, seconds: float) -> tuple[int, ...]:
        """Start nothing of `host` for that long; returns the tokens to release once the frontier knows."""
        now = asyncio.get_running_loop().time()
        self._blocked = {name: until for name, until in self._blocked.items() if until > now}
        self._blocked[host] = max(self._blocked.get(host, 0.0), now + seconds)
        return self.withdraw(host)

    def _delay_of(self, host: str) -> float:
        return max(self._delay, self._own_delays.get(host, 0.0))

    def space(self, host: str, delay: float) -> tuple[int, ...]:
        """Start the host's leases at least `delay` seconds apart, whoever gave them. Returns the tokens of
        those that have not started, to release: they were handed out before the delay was known."""
        if len(self._own_delays) > MAX_REMEMBERED:
            self._own_delays.clear()
        self._own_delays[host] = delay
        return self.withdraw(host)

    def _due(self, lease: Lease) -> None:
        del self._timers[lease.token]
        self.ready.put(lease)

    def __contains__(self, token: int) -> bool:
        return token in self._held

    def forget(self, tokens: Iterable[int]) -> None:
        """Finished, released or lost. A lost one in the local queue is skipped when a visitor meets it."""
        for token in tokens:
            self._held.pop(token, None)
            timer = self._timers.pop(token, None)
            if timer is not None:
                timer.cancel()

    def pause(self, paused: bool) -> tuple[int, ...]:
        """Take and start nothing more, or go on; returns the tokens to release."""
        self.paused = paused
        return self.withdraw() if paused else ()

    def follow_delay(self, delay: float) -> tuple[int, ...]:
        """From now on this delay; returns the tokens of what waited for its moment, to be released."""
        self._delay = delay
        postponed = tuple(self._timers)
        self.forget(postponed)
        return postponed

    def withdraw(self, host: str | None = None) -> tuple[int, ...]:
        """Take back what has not started, of one host or of all; returns the tokens to release."""
        waiting = [lease for lease in self.ready if lease.token in self._held]
        self.ready.clear()
        unstarted = [*waiting, *(self._held[token] for token in self._timers)]
        tokens = [lease.token for lease in unstarted if host is None or lease.host == host]
        self.forget(tokens)
        for lease in waiting:
            if lease.token in self._held:
                self.ready.put(lease)
        return tuple(tokens)


class Leaser:
    """Asks the frontier for leases until there is a reason to stop. Where there are none it sleeps until the
    frontier said to ask again, or something woke it: it never polls.

    owes: whether leases that were given back have not reached the frontier yet, where they count as held.
    forget: called where the store has lost what this worker knows to be in it, before any lease is visited.
    keep_alive: a complete job is no reason to stop.
    """

    def __init__(
        self,
        frontier: Frontier,
        held: Held,
        seeding: Callable[[], bool],
        give_back: Callable[[Sequence[int]], None],
        hungry: Callable[[], None],
        forget: Callable[[], None],
        owes: Callable[[], bool] = lambda: False,
        *,
        keep_alive: bool = False,
    ) -> None:
        self._frontier = frontier
        self._held = held
        self._seeding = seeding
        self._give_back = give_back
        self._hungry = hungry
        self._forget = forget
        self._owes = owes
        self._keep_alive = keep_alive
        self.look: Callable[[], Awaitable[None]] | None = None
        """Awaited before leases are visited: finds out what others made known before these were given."""
        self._wake = asyncio.Event()
        self._last = LeaseBatch(finished=True)

    def wake(self) -> None:
        """Something changed: a commit freed slots or added links, seeds came in, visitors want more, other
        workers did something."""
        self._wake.set()

    def unfed(self) -> bool:
        """Whether nothing is held, and the last answer gave nothing though there is something in the job."""
        last, held = self._last, self._held
        return not (len(held) or held.paused or last.leases or last.finished or last.budget_spent)

    async def run(self) -> str:
        """Lease until the job is "finished" or its page "budget" is spent; returns which."""
        while True:
            self._wake.clear()
            wanted = self._held.wanted
            if not wanted:
                await self._wake.wait()
                continue
            # Read before asking: if seeding ends in between, the next round sees it.
            seeding = self._seeding()
            self._held.asking = True
            batch = await self._frontier.lease(wanted)
            self._held.asking = False
            self._last = batch
            if batch.fell_back:
                self._forget()
            if batch.leases and self.look is not None:
                await self.look()
            self._held.came(len(batch.leases), wanted)
            refused = self._held.take(batch.leases)
            if refused:
                self._give_back(refused)
            if not batch.leases and not len(self._held) and not self._owes():
                if batch.finished and not seeding and not self._keep_alive:
                    return "finished"
                if batch.budget_spent:
                    return "budget"
            if len(batch.leases) < wanted:
                self._hungry()
                await self._nap(batch.wake_in)

    async def _nap(self, seconds: float | None) -> None:
        """At most that long; None: until woken."""
        try:
            async with asyncio.timeout(None if seconds is None else max(seconds, 0.001)):
                await self._wake.wait()
        except TimeoutError:
            pass


async def renew(
    frontier: Frontier, held: Held, period: float, hook: Hook, wake_leaser: Callable[[], None]
) -> None:
    """Prolong every held lease, prefetched ones and those awaiting their commit too, for ever."""
    while True:
        await asyncio.sleep(period)
        if not len(held):
            continue
        # What a commit finished meanwhile is not held any more, but not lost either.
        lost = [token for token in await frontier.renew(held.tokens) if token in held]
        if lost:
            held.forget(lost)
            wake_leaser()
            hook(
                Trouble(f"leases that ran out before they could be renewed, to be visited again: {len(lost)}")
            )
