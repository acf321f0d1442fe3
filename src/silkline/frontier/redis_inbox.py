"""The inbox: what other programs push with a plain client, on its way into the frontier."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from silkline.errors import BadUrlError, TaskError
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_wire import Placed, arrivals, bad_task, placed
from silkline.request import MAX_TASK_BYTES, request_from_task
from silkline.url import host_of

Elsewhere = Callable[[list[Placed]], Awaitable[list[Placed]]]

AT_ONCE = 1_000
BYTES_AT_ONCE = 4 * 1_048_576


class Inbox:
    """`<job>:task:wait`, drained by one worker at a time; see `lua/drain.lua` for how none is lost.

    elsewhere: adds the requests that belong to other partitions, and returns the rest. It comes first: if
    this process dies in between, the entries are still in the inbox, and the dedup tells.
    """

    def __init__(self, job: Job, elsewhere: Elsewhere) -> None:
        self._job = job
        self._elsewhere = elsewhere
        self._number = 0

    async def drain(self) -> int | None:
        """Move up to a thousand entries into the frontier; None if another worker is at it."""
        self._number += 1
        reply = await self._job.home.call(
            "drain",
            worker=self._job.worker,
            number=self._number,
            count=AT_ONCE,
            bytes=MAX_TASK_BYTES,
            total=BYTES_AT_ONCE,
        )
        if not reply:
            return None
        lock, *entries = reply
        if not entries:
            return 0
        good, bad = await self._sorted_out(entries)
        batch = arrivals(await self._elsewhere(good))
        (added,) = await self._job.home.once(
            "drained",
            [*bad, *batch.args],
            lock=lock.decode(),
            count=len(entries),
            bytes=MAX_TASK_BYTES,
            digest=_digest(entries),
            bad=len(bad),
            runs=batch.runs,
        )
        return len(entries) if added >= 0 else None

    async def _sorted_out(self, entries: list[bytes]) -> tuple[list[Placed], list[bytes]]:
        """The requests, and a dead letter for each entry that is none."""
        tasks, bad = [], []
        for entry in entries:
            try:
                request = request_from_task(entry)
                placed([request], self._job.keys, host_of)
                tasks.append(request)
            except (TaskError, BadUrlError) as error:
                bad.append(bad_task(entry, str(error), self._job.worker))
        key_of = await self._job.groups.keys(task.url for task in tasks)
        requests = [one for task in tasks for one in placed([task], self._job.keys, key_of)]
        unique = {request.fingerprint: request for request in reversed(requests)}
        return [r for r in requests if unique.pop(r.fingerprint, None) is not None], bad


def _digest(entries: list[bytes]) -> str:
    """As `lua/drained.lua` makes it: a length in front of each, so that no two lists have the same one."""
    text = b"".join(b"%d:%s" % (len(entry), entry) for entry in entries)
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()
