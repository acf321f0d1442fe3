"""Requests that redirects have led to a host of another partition, on their way there."""

from __future__ import annotations

from silkline.frontier.redis_job import Job
from silkline.frontier.redis_partition import Partition

AT_ONCE = 500

Entry = tuple[int, int, int, str, bytes]
"""(number, deliveries, priority, host, payload)"""


async def hand_over(job: Job, partition: Partition) -> None:
    """Bring what leaves the partition to where it belongs; any worker may, and several at a time.

    Each entry is taken in once (see `lua/arrive.lua`), and leaves the list only then: should this process die
    in between, the next worker that leases finds it there.
    """
    while texts := await partition.command("LRANGE", "leaving", 0, AT_ONCE - 1):
        entries = list(map(_entry, texts))
        groups: dict[Partition, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(job.of(entry[3]), []).append(entry)
        for other, share in groups.items():
            await other.call(
                "arrive",
                [payload for *_, payload in share],
                **{"from": partition.prefix, "entries": [entry[:4] for entry in share]},
            )
        await partition.call("left", number=entries[-1][0])


def _entry(text: bytes) -> Entry:
    number, deliveries, priority, host, payload = text.split(b" ", 4)
    return int(number), int(deliveries), int(priority), host.decode(), payload
