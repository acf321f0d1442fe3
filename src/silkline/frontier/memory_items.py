"""Dead items of the memory frontier, by their pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from silkline.frontier import rules
from silkline.frontier.dead_pages import chosen, newest
from silkline.frontier.memory_places import Places
from silkline.frontier.memory_state import Entry
from silkline.outcome import DeadItem
from silkline.protocols import Clock


class MemoryDeadItems:
    """See `protocols.DeadItems`. now: raises unless the frontier is open."""

    def __init__(self, places: Places, now: Clock) -> None:
        self._places = places
        self._now = now

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadItem]:
        self._now()
        pages = chosen(newest(self._places.dead_pages.values()), cause, host, limit)
        return [item for _, items in pages for item in items]

    async def causes(self) -> Mapping[str, int]:
        self._now()
        return Counter(item.cause for page in self._places.dead_pages.values() for item in page.items)

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        now, places = self._now(), self._places
        pages = [page for page in newest(places.dead_pages.values()) if page.has(cause, host)][:limit]
        for page in pages:
            del places.dead_pages[page.id]
            request = rules.redone(page.request, page.keys)
            places.wait(Entry(page.id, request, page.fingerprint, places.hosts[page.host]), now)
        places.settle([places.hosts[page.host] for page in pages], now)
        return len(pages)

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        self._now()
        pages = self._places.dead_pages
        dropped = list(chosen(newest(pages.values()), cause, host, limit))
        for page, items in dropped:
            pages[page.id] = page.without(items)
            if not pages[page.id].items:
                del pages[page.id]
        return sum(len(items) for _, items in dropped)
