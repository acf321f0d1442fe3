"""Tells of hosts that ask to be left alone: a crawl that waits for one would seem to hang."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from silkline.events import LeftAlone
from silkline.protocols import Frontier, Hook

WORTH_TELLING = 10.0
"""Seconds; of shorter blocks, which busy hosts ask for again and again, nobody needs to hear."""

HOSTS_NAMED = 5

MOST_HOSTS = 10_000


async def still_blocked(frontier: Frontier) -> str:
    """A line on the hosts that a resumed job has to leave alone; "" where there are none."""
    blocked = await frontier.blocked(HOSTS_NAMED)
    if blocked.seconds < WORTH_TELLING:
        return ""
    until = datetime.fromtimestamp(time.time() + blocked.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    names = ", ".join(blocked.hosts) + (", …" if blocked.count > len(blocked.hosts) else "")
    if blocked.count == 1:
        return f"1 host is blocked until {until}: {names}"
    return f"{blocked.count:,} hosts are blocked until {until} at the latest: {names}"


class Blocks:
    """What this worker has told: once per host and block, again where a block is made longer."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._until: dict[str, float] = {}

    def block(self, host: str, seconds: float) -> None:
        """The host is to be left alone for that long from now on."""
        if seconds < WORTH_TELLING:
            return
        now = time.time()
        until = now + seconds
        # Each of the requests that were on their way together brings the same news, a little later.
        if until < self._until.get(host, 0.0) + WORTH_TELLING:
            return
        if len(self._until) >= MOST_HOSTS:
            self._until = {name: end for name, end in self._until.items() if end > now}
        self._until[host] = until
        self._hook(LeftAlone(host, until))
