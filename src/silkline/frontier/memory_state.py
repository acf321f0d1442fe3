"""What the memory frontier holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

import msgspec

from silkline.frontier import rules
from silkline.keys import KeyRules
from silkline.outcome import HostPace, HostState, KeptValue
from silkline.request import Request


@dataclass(slots=True, eq=False)
class Queue:
    """What one host has waiting at one priority. `due`: since when, or from when, it may be handed out;
    infinite while the host has no free slot. `turn`: the host's last token; of the hosts that were served
    at the same moment, the first is first again."""

    due: float
    turn: int = 0
    ids: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Host:
    key: str
    order: int
    delay: float | None = None
    cap: int | None = None
    last_start: float = -inf
    last_token: int = 0
    blocked_until: float = -inf
    pace: HostPace | None = None
    queues: dict[int, Queue] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Entry:
    """A request that is not done. `id` is its place in the order of arrival; `at` is since when it is
    leased or dead."""

    id: int
    request: Request
    fingerprint: int
    host: Host
    deliveries: int = 0
    token: int = 0
    expires: float = 0.0
    due: float = 0.0
    cause: str = ""
    error: str = ""
    worker: str = ""
    at: float = 0.0


def state_of(host: Host, waiting: int, leased: int, delay: float, now: float) -> HostState:
    """`delay`: the one that holds for the host."""
    return HostState(
        key=host.key,
        waiting=waiting,
        leased=leased,
        delay=host.delay,
        cap=host.cap,
        due_in=max(0.0, max(host.last_start + delay, host.blocked_until) - now),
        blocked_for=max(0.0, host.blocked_until - now),
        pace=None if host.pace is None else (host.pace.cap, host.pace.delay),
        pace_state=b"" if host.pace is None else host.pace.state,
    )


class Expiring:
    """Values by name, each forgotten when its time is over."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[bytes, float]] = {}
        self._ends: list[tuple[float, str]] = []

    def put(self, name: str, value: bytes, now: float, seconds: float) -> None:
        self._values[name] = (value, now + seconds)
        heappush(self._ends, (now + seconds, name))
        while self._ends and self._ends[0][0] <= now:
            _, ended = heappop(self._ends)
            if ended in self._values and self._values[ended][1] <= now:
                del self._values[ended]

    def get(self, name: str, now: float) -> KeptValue | None:
        value, until = self._values.get(name, (b"", now))
        return KeptValue(value, until - now) if until > now else None


def arrivals(
    requests: Sequence[Request], keys: KeyRules, key_of: Callable[[str], str]
) -> list[tuple[int, str, Request]]:
    """(fingerprint, host, request), no fingerprint twice, each request as JSON brings it back: no backend
    keeps more than that."""
    unique: dict[int, tuple[int, str, Request]] = {}
    for request in msgspec.json.decode(rules.encode(requests), type=list[Request]):
        fingerprint = keys.of(request)
        if fingerprint not in unique:
            unique[fingerprint] = (fingerprint, key_of(request.url), request)
    return list(unique.values())
