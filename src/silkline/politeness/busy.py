"""How long a host is left alone that says 429 (RFC 6585 4) and not for how long."""

from __future__ import annotations

FIRST, LONGEST = 1.0, 300.0
"""Seconds of the first block, doubled each time until an answer is none of these."""

MOST_HOSTS = 10_000


class BusyHosts:
    """The hosts that have said so lately, by politeness key: one worker's memory, by its own clock."""

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def busy(self, host: str, began: float, now: float) -> float:
        """Seconds to block the host for, because of a request that began then; 0 where it began before
        the last block was over, for that speaks of the same crowd."""
        times, until = self._hosts.get(host, (0, 0.0))
        if began < until:
            return 0.0
        if len(self._hosts) >= MOST_HOSTS:
            self._hosts = {name: block for name, block in self._hosts.items() if block[1] > now}
        seconds = min(LONGEST, FIRST * 2.0 ** min(times, 30))
        self._hosts[host] = (times + 1, now + seconds)
        return seconds

    def answered(self, host: str, began: float) -> None:
        """The host answers as it should."""
        known = self._hosts.get(host)
        if known is not None and began >= known[1]:
            del self._hosts[host]
