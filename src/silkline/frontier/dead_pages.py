"""Pages that are done but for some of their items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from silkline.outcome import DeadItem
from silkline.request import Request


class DeadPage(msgspec.Struct, frozen=True):
    """A page's dead items. id: its place in the order of arrival. at: since when, in Unix seconds."""

    id: int
    fingerprint: int
    host: str
    request: Request
    items: tuple[DeadItem, ...]
    at: float

    @property
    def keys(self) -> list[tuple[int, str]]:
        return [(item.index, item.sink) for item in self.items]

    def has(self, cause: str | None, host: str | None) -> bool:
        """Whether any of the items is one of these."""
        return host in (None, self.host) and any(cause in (None, item.cause) for item in self.items)

    def chosen(self, cause: str | None, host: str | None) -> list[DeadItem]:
        if host not in (None, self.host):
            return []
        return [item for item in self.items if cause in (None, item.cause)]

    def without(self, items: Iterable[DeadItem]) -> DeadPage:
        gone = {(item.index, item.sink) for item in items}
        left = tuple(item for item in self.items if (item.index, item.sink) not in gone)
        return msgspec.structs.replace(self, items=left)


def newest(pages: Iterable[DeadPage]) -> list[DeadPage]:
    return sorted(pages, key=lambda page: (page.at, page.id), reverse=True)


def chosen(
    pages: Iterable[DeadPage], cause: str | None, host: str | None, limit: int | None
) -> Iterator[tuple[DeadPage, list[DeadItem]]]:
    """Each page with those of its items that are asked for, until there are `limit` of them."""
    left = limit
    for page in pages:
        if left == 0:
            return
        items = page.chosen(cause, host)[:left]
        if left is not None:
            left -= len(items)
        if items:
            yield page, items
