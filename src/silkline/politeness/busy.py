"""How long a host is left alone that says 429 (RFC 6585 4) and not for how long, and for how long that is no
fault of the pages."""

from __future__ import annotations

from typing import NamedTuple

FIRST, LONGEST = 1.0, 300.0
"""Seconds of the first block, doubled each time until an answer is none of these."""

PATIENCE = 60.0
"""Seconds for which a host may say nothing else before that costs its pages retries: many limits are for a
minute."""

MOST_HOSTS = 10_000


class _Busy(NamedTuple):
    """times: blocks of our own choice in a row. until: the end of the last one. since: the last good answer,
    or the first bad one."""

    times: int
    until: float
    since: float


class BusyHosts:
    """The hosts that have said so lately, by politeness key: one worker's memory, by its own clock."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Busy] = {}

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def busy(self, host: str, began: float, now: float, asked: float | None = None) -> float:
        """Seconds to block the host for, because of a request that began then. asked: what the host itself
        says; where it does not, 0 for what began before the last block was over, for that speaks of the same
        crowd."""
        known = self._hosts.get(host) or _Busy(0, 0.0, began)
        if asked is None and began < known.until:
            return 0.0
        if len(self._hosts) >= MOST_HOSTS:
            self._hosts = {name: busy for name, busy in self._hosts.items() if busy.until > now}
        seconds = min(LONGEST, FIRST * 2.0 ** min(known.times, 30)) if asked is None else asked
        times = known.times + (asked is None)
        self._hosts[host] = _Busy(times, max(known.until, now + seconds), known.since)
        return seconds

    def spares(self, host: str, began: float) -> bool:
        """Whether its refusal of a request that began then says nothing against the page yet."""
        known = self._hosts.get(host)
        return known is None or began - known.since < PATIENCE

    def answered(self, host: str, began: float) -> None:
        """The host answers as it should. One of the crowd that the last block is for does not end the
        doubling, but shows that the host still answers."""
        known = self._hosts.get(host)
        if known is None:
            return
        if began >= known.until:
            del self._hosts[host]
        elif began > known.since:
            self._hosts[host] = known._replace(since=began)
