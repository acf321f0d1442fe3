"""The URLs that a worker knows to be in the frontier already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class KnownUrls:
    """A bounded memory of URLs that a commit has reported as enqueued or seen; saves most of the round trips.

    Two generations: when the young one is full it becomes the old one and the old one is forgotten. A
    forgotten URL only costs a question to the frontier, whose answer is the one that counts. Only plain
    GET URLs without a key of their own are remembered.
    """

    def __init__(self, capacity: int = 131_072) -> None:
        self._limit = capacity // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __contains__(self, url: str) -> bool:
        return url in self._young or url in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def missing(self, urls: Sequence[str]) -> list[str]:
        """Those that are not known, in order."""
        young, old = self._young, self._old
        if young.issuperset(urls):  # as on most pages of a site that has been seen in part
            return []
        if not old:
            return [url for url in urls if url not in young]
        return [url for url in urls if url not in young and url not in old]

    def clear(self) -> None:
        self._young, self._old = set(), set()

    def add(self, urls: Iterable[str]) -> None:
        self._young.update(urls)
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, set()
