"""Dead letters in Redis: a public list in each partition, which other programs may change, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count

import msgspec

from silkline.frontier.groups import Groups
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_partition import Partition
from silkline.frontier.redis_wire import Letter, letter_of
from silkline.outcome import DeadLetter

CHUNK = 1_000


class RedisDeadLetters:
    """See `protocols.DeadLetters`."""

    def __init__(self, job: Job) -> None:
        self._job = job

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        letters = []
        for partition in self._job.partitions:
            async for some in _chosen(partition, self._job.groups, cause, host, limit):
                letters += some
        letters.sort(key=lambda letter: (letter.at, letter.id), reverse=True)
        return [letter.told() for letter in letters[:limit]]

    async def causes(self) -> Mapping[str, int]:
        causes: Counter[str] = Counter()
        for partition in self._job.partitions:
            start = 0
            while texts := await partition.command("LRANGE", "task:dead", start, start + CHUNK - 1):
                for text in texts:
                    try:
                        causes[_cause_of(text).cause] += 1
                    except msgspec.MsgspecError:
                        causes["unknown"] += 1
                start += CHUNK
        return causes

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._take_out(cause, host, limit, again=True)

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._take_out(cause, host, limit, again=False)

    async def _take_out(self, cause: str | None, host: str | None, limit: int | None, *, again: bool) -> int:
        moved = 0
        for partition in self._job.partitions:
            missed = True
            while missed:  # somebody else takes letters out, too, and so moves those behind
                missed = False
                left = None if limit is None else limit - moved
                async for some in _chosen(partition, self._job.groups, cause, host, left, tasks_only=again):
                    took = await partition.take_out(self._with_keys(some), again=again)
                    moved += took
                    missed = missed or took < len(some)
        return moved

    def _with_keys(self, letters: Sequence[Letter]) -> list[Letter]:
        """Letters of other programs do not say which request they are."""
        keys = self._job.keys
        return [
            letter
            if letter.fingerprint or letter.raw is not None
            else msgspec.structs.replace(letter, fingerprint=keys.of(letter.request))
            for letter in letters
        ]


class _Cause(msgspec.Struct):
    cause: str = "unknown"


_cause_of = msgspec.json.Decoder(_Cause).decode


async def _chosen(
    partition: Partition,
    groups: Groups,
    cause: str | None,
    host: str | None,
    limit: int | None,
    *,
    tasks_only: bool = False,
) -> AsyncIterator[list[Letter]]:
    """Dead letters, the newest first, at most `limit`; a bounded number at a time. host: the politeness key.

    tasks_only: none that never was a task, and cannot be visited.

    From the end of the list to its start, so that what is added or taken out meanwhile moves none of those
    still to come.
    """
    left = limit
    end = int(await partition.command("LLEN", "task:dead"))
    pending: list[Letter] = []
    while end > 0 and (left is None or left > 0):
        start = max(0, end - CHUNK)
        texts = await partition.command("LRANGE", "task:dead", start, end - 1)
        pending += await _grouped(list(map(letter_of, texts, count(start))), groups)
        end = start
        pending.sort(key=lambda letter: (letter.at, letter.id), reverse=True)
        # Those of the last moment may have more of their like in the next chunk.
        ripe = len(pending) if end == 0 else _before_last_moment(pending)
        ready, pending = pending[:ripe], pending[ripe:]
        chosen = [
            one
            for one in ready
            if cause in (None, one.cause)
            and host in (None, one.host)
            and not (tasks_only and one.raw is not None)
        ][:left]
        if left is not None:
            left -= len(chosen)
        if chosen:
            yield chosen


async def _grouped(letters: list[Letter], groups: Groups) -> list[Letter]:
    """With the hosts that their requests belong to."""
    if groups.by == "host":
        return letters
    key_of = await groups.keys(letter.host for letter in letters if letter.host)
    return [
        msgspec.structs.replace(letter, host=key_of(letter.host)) if letter.host else letter
        for letter in letters
    ]


def _before_last_moment(sorted_letters: Sequence[Letter]) -> int:
    last = sorted_letters[-1].at
    return sum(letter.at > last for letter in sorted_letters)
