"""Dead items in Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from silkline.frontier import rules
from silkline.frontier.dead_pages import DeadPage, chosen, newest
from silkline.frontier.groups import Groups
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_partition import Partition
from silkline.frontier.redis_wire import dead_page_of, fingerprint_bytes, json_of, rest_of
from silkline.outcome import DeadItem

CHUNK = 200
"""Pages that are read, or taken out, at once: each has all its dead items with it."""

Member = tuple[DeadPage, bytes]


class RedisDeadItems:
    """See `protocols.DeadItems`."""

    def __init__(self, job: Job) -> None:
        self._job = job

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadItem]:
        found: list[DeadPage] = []
        for partition in self._job.partitions:
            left = limit
            async for members in _pages(partition, self._job.groups):
                pages = [page for page, _ in members if page.has(cause, host)]
                found += pages
                left -= sum(len(page.chosen(cause, host)) for page in pages)
                if left <= 0:
                    break
        return [item for _, items in chosen(newest(found), cause, host, limit) for item in items]

    async def causes(self) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for partition in self._job.partitions:
            async for members in _pages(partition, self._job.groups):
                counts.update(item.cause for page, _ in members for item in page.items)
        return counts

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        moved = 0
        for partition in self._job.partitions:
            missed = True
            while missed and moved != limit:  # somebody else takes some out, too, and so moves those behind
                missed = False
                async for members in _pages(partition, self._job.groups):
                    asked = [one for one in members if one[0].has(cause, host)]
                    asked = asked[: None if limit is None else limit - moved]
                    if asked:
                        changes = [(page, member, _payload(page)) for page, member in asked]
                        there = await partition.take_out_items(changes, again=True)
                        moved += sum(there)
                        missed = missed or not all(there)
                    if moved == limit:
                        break
        return moved

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        dropped = 0
        for partition in self._job.partitions:
            missed = True
            while missed and dropped != limit:
                missed = False
                async for members in _pages(partition, self._job.groups):
                    left = None if limit is None else limit - dropped
                    changes, sizes = _without(members, cause, host, left)
                    if changes:
                        there = await partition.take_out_items(changes, again=False)
                        dropped += sum(size for size, was in zip(sizes, there, strict=True) if was)
                        missed = missed or not all(there)
                    if dropped == limit:
                        break
        return dropped


async def _pages(partition: Partition, groups: Groups) -> AsyncIterator[list[Member]]:
    """The newest first. What is taken out meanwhile makes others be passed over."""
    # Ranks count from the oldest: what comes in moves none of those to come.
    end = int(await partition.command("ZCARD", "dead_items"))
    while end > 0:
        start = max(0, end - CHUNK)
        flat = await partition.command("ZRANGE", "dead_items", start, end - 1, "WITHSCORES")
        members = _pairs(flat)
        pages = [dead_page_of(member, at) for member, at in reversed(members)]
        key_of = await groups.keys(page.request.target for page in pages)
        yield [
            (msgspec.structs.replace(page, host=key_of(page.request.target)), member)
            for page, (member, _) in zip(pages, reversed(members), strict=True)
        ]
        end = start


def _pairs(reply: Sequence[Any]) -> list[tuple[bytes, float]]:
    """Members with their scores, whichever protocol version they came by."""
    nested = reply and isinstance(reply[0], (list, tuple))
    pairs = reply if nested else zip(reply[::2], reply[1::2], strict=True)
    return [(member, float(score)) for member, score in pairs]


def _without(
    members: Sequence[Member], cause: str | None, host: str | None, limit: int | None
) -> tuple[list[tuple[DeadPage, bytes, bytes]], list[int]]:
    """For `take_out_items`, the pages without the items that are asked for, at most `limit` of them; and how
    many each page loses."""
    texts = {page.id: member for page, member in members}
    picked = list(chosen((page for page, _ in members), cause, host, limit))
    changes = [(page, texts[page.id], rest_of(page.without(items))) for page, items in picked]
    return changes, [len(items) for _, items in picked]


def _payload(page: DeadPage) -> bytes:
    return fingerprint_bytes(page.fingerprint) + json_of(rules.redone(page.request, page.keys))
