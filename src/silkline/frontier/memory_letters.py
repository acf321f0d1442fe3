"""Dead letters of the memory frontier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from silkline.frontier.memory_places import Places
from silkline.frontier.memory_state import Entry
from silkline.outcome import DeadLetter
from silkline.protocols import Clock


class MemoryDeadLetters:
    """See `protocols.DeadLetters`. now: raises unless the frontier is open."""

    def __init__(self, places: Places, now: Clock) -> None:
        self._places = places
        self._now = now

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        self._now()
        return [
            DeadLetter(e.request, e.fingerprint, e.cause, e.error, e.deliveries, e.worker, e.at)
            for e in self._chosen(cause, host, limit)
        ]

    async def causes(self) -> Mapping[str, int]:
        self._now()
        return Counter(entry.cause for entry in self._places.dead.values())

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        now = self._now()
        chosen = self._chosen(cause, host, limit)
        for entry in chosen:
            del self._places.dead[entry.id]
            entry.request = msgspec.structs.replace(entry.request, retry_count=0, spared=0)
            entry.deliveries = 0
            self._places.wait(entry, now)
        self._places.settle([entry.host for entry in chosen], now)
        return len(chosen)

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        self._now()
        chosen = self._chosen(cause, host, limit)
        for entry in chosen:
            del self._places.dead[entry.id]
        return len(chosen)

    def _chosen(self, cause: str | None, host: str | None, limit: int | None) -> list[Entry]:
        newest_first = sorted(self._places.dead.values(), key=lambda e: (e.at, e.id), reverse=True)
        chosen = [e for e in newest_first if cause in (None, e.cause) and host in (None, e.host.key)]
        return chosen[:limit]
