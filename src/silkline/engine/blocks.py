"""Tells of hosts that ask to be left alone: a crawl that waits for one would seem to hang."""

from __future__ import annotations

import time

from silkline.events import LeftAlone
from silkline.protocols import Hook

WORTH_TELLING = 10.0
"""Seconds; of shorter blocks, which busy hosts ask for again and again, nobody needs to hear."""

MOST_HOSTS = 10_000


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
