"""Says why a worker gets nothing where others may have more of a host at once than it may.

The frontier counts what is in flight over all workers, and gives each by its own `per_host`. So one whose
`per_host` is below what the others hold waits until they hold less, which may be never, and looks idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from silkline.config import FrontierOptions
from silkline.events import Trouble
from silkline.outcome import HostState
from silkline.protocols import Frontier, Hook

PATIENCE = 5.0
LONGEST = 60.0
"""Seconds without a lease before the frontier is asked why; twice as long after each time, up to this."""

PERIOD = 0.5
"""Seconds between two looks at what is in memory."""


class Hunger:
    """unfed: whether the frontier has something, but nothing for this worker. options: as they hold now."""

    def __init__(
        self,
        frontier: Frontier,
        unfed: Callable[[], bool],
        options: Callable[[], FrontierOptions],
        hook: Hook,
    ) -> None:
        self._frontier = frontier
        self._unfed = unfed
        self._options = options
        self._hook = hook

    async def run(self) -> None:
        """Look until there was something to say, once."""
        patience = PATIENCE
        while True:
            await self._hungry_for(patience)
            overview = await self._frontier.overview()
            if self._unfed() and (line := reason(overview.hosts, self._options())):
                self._hook(Trouble(line))
                return
            patience = min(2.0 * patience, LONGEST)

    async def _hungry_for(self, seconds: float) -> None:
        since = monotonic()
        while monotonic() - since < seconds:
            await asyncio.sleep(min(PERIOD, seconds))
            if not self._unfed():
                since = monotonic()


def reason(hosts: tuple[HostState, ...], options: FrontierOptions) -> str:
    """Why a worker with these options gets nothing of them; "" where it is not for its own limit.

    A host that others have as much of as this worker may have is full for all alike.
    """
    for host in hosts:
        name, most = "per_host", options.per_host
        if host.pace is not None and options.ceiling is not None and options.ceiling > most:
            name, most = "adaptive_ceiling", options.ceiling
        if host.waiting and host.leased > most:
            return (
                f"nothing to lease: others hold {host.leased:,} requests of {host.key}, and this worker's "
                f"{name} is {most:,}; it gets some once they hold fewer"
            )
    return ""
