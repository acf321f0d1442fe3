"""Model servers of known capacity, and a crawl that asks them, in simulated time."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

TURNAROUND = 0.02
"""Seconds from an answer until its slot can be used again."""


class Server(Protocol):
    def capacity(self, now: float) -> float:
        """Requests a second that it can bear."""

    def answer(self, now: float) -> tuple[float, int]:
        """(latency, status) of a request that arrives now; the times never go back."""


def steadily(now: float) -> float:
    return 1.0


@dataclass
class Workers:
    """`count` workers that take about `service` seconds a request each, and a queue; what finds it full gets
    a 503. speed: of the workers, by time."""

    count: int
    service: float
    queue: int = 10_000
    speed: Callable[[float], float] = steadily
    spread: float = 0.2
    seed: int = 1
    _free: list[float] = field(default_factory=list)
    _waiting: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._free = [0.0] * self.count

    def capacity(self, now: float) -> float:
        return self.count / self.service * self.speed(now)

    def answer(self, now: float) -> tuple[float, int]:
        while self._waiting and self._waiting[0] <= now:
            self._waiting.popleft()
        if len(self._waiting) >= self.queue:
            return 0.005, 503
        start = max(now, heapq.heappop(self._free))
        if start > now:
            self._waiting.append(start)
        took = self.service / self.speed(start) * self._random.uniform(1 - self.spread, 1 + self.spread)
        heapq.heappush(self._free, start + took)
        return start + took - now, 200


@dataclass
class Bucket:
    """A token bucket in front of a quick server: what finds it empty gets a 429."""

    rate: float
    burst: float
    latency: float = 0.05
    speed: Callable[[float], float] = steadily
    _tokens: float = 0.0
    _at: float = 0.0

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def capacity(self, now: float) -> float:
        return self.rate * self.speed(now)

    def answer(self, now: float) -> tuple[float, int]:
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.capacity(now))
        self._at = now
        if self._tokens < 1.0:
            return 0.005, 429
        self._tokens -= 1.0
        return self.latency, 200


@dataclass
class Banning:
    """Bans whoever sends more than `rate` a second over `window` seconds, for `ban` seconds: 403."""

    rate: float
    window: float = 10.0
    ban: float = 30.0
    latency: float = 0.1
    _seen: deque[float] = field(default_factory=deque)
    _until: float = 0.0

    def capacity(self, now: float) -> float:
        return self.rate

    def answer(self, now: float) -> tuple[float, int]:
        self._seen.append(now)
        while self._seen[0] < now - self.window:
            self._seen.popleft()
        if now < self._until:
            return 0.01, 403
        if len(self._seen) > self.rate * self.window:
            self._until = now + self.ban
            self._seen.clear()
        return self.latency, 200


@dataclass
class Flaky:
    """A server that fails now and then, however slowly it is asked: a share of its answers, by time."""

    server: Server
    share: Callable[[float], float]
    status: int = 503
    seed: int = 1

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def capacity(self, now: float) -> float:
        return self.server.capacity(now)

    def answer(self, now: float) -> tuple[float, int]:
        if self._random.random() < self.share(now):
            return 0.05, self.status
        return self.server.answer(now)


class Controller(Protocol):
    """What decides how fast is asked; the limits are those of the host, the same for all its controllers.

    offset: seconds by which its ticks come later than the full second.
    """

    offset: float

    @property
    def cap(self) -> int: ...

    @property
    def delay(self) -> float: ...

    @property
    def blocked_until(self) -> float: ...

    def ended(self, began: float, now: float, status: int, latency: float) -> None: ...

    def tick(self, now: float) -> None:
        """Called every second."""


@dataclass
class Trace:
    """What came of it, by second: requests answered well, and failures."""

    good: list[int]
    bad: list[int]
    allowed: list[float]

    def rate(self, first: int, last: int) -> float:
        return sum(self.good[first:last]) / (last - first)

    def errors(self, first: int, last: int) -> float:
        """Share of failures."""
        bad = sum(self.bad[first:last])
        return bad / max(1, bad + sum(self.good[first:last]))

    def smooth(self, seconds: int) -> list[float]:
        """Good answers a second, over windows of that many seconds."""
        return [self.rate(i, i + seconds) for i in range(0, len(self.good) - seconds + 1, seconds)]


def crawl(server: Server, controllers: Sequence[Controller], seconds: int) -> Trace:
    """Ask as fast as the controllers allow, for so long. Several controllers are workers that share a host
    and take turns in asking."""
    trace = Trace([0] * seconds, [0] * seconds, [])
    events: list[tuple[float, int, str, tuple[float, int, float] | None]] = []
    order, in_flight, next_start, turn = 0, 0, 0.0, 0
    woken: set[float] = set()

    def push(at: float, kind: str, fact: tuple[float, int, float] | None = None) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (at, order, kind, fact))

    for second in range(1, seconds):
        for number, controller in enumerate(controllers):
            push(second + controller.offset, "tick", (0.0, number, 0.0))
    push(0.0, "start")
    while events:
        now, _, kind, fact = heapq.heappop(events)
        if now >= seconds:
            break
        if kind == "tick" and fact is not None:
            controllers[fact[1]].tick(now)
            first = controllers[0]
            trace.allowed.append(1.0 / first.delay if first.delay else float(first.cap))
        elif kind == "end" and fact is not None:
            began, status, latency = fact
            (trace.good if status == 200 else trace.bad)[int(now)] += 1
            controllers[turn % len(controllers)].ended(began, now, status, latency)
            turn += 1
            push(now + TURNAROUND, "free")
        elif kind == "free":
            in_flight -= 1
        woken.discard(now)
        host = controllers[0]
        while in_flight < host.cap:
            due = max(next_start, host.blocked_until)
            if due > now:
                if due not in woken:
                    woken.add(due)
                    push(due, "start")
                break
            latency, status = server.answer(now)
            in_flight += 1
            next_start = now + host.delay
            push(now + latency, "end", (now, status, latency))
    return trace
