"""The addresses of hosts, for a job that is polite to each address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from silkline.frontier.groups import standing_for

if TYPE_CHECKING:
    from silkline.fetch.resolver import Resolver

AT_ONCE = 100
PATIENCE = 10.0
"""Seconds for one name; what has no address by then counts as having none."""


class Addresses:
    """Asks for a hundred names at once. Nothing is started before the first one."""

    def __init__(self) -> None:
        self._resolver: Resolver | None = None
        self._room = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, names: Collection[str]) -> Mapping[str, str]:
        """See `protocols.Resolve`."""
        found = await asyncio.gather(*map(self._address, names))
        return {name: address for name, address in zip(names, found, strict=True) if address is not None}

    async def close(self) -> None:
        resolver, self._resolver = self._resolver, None
        if resolver is not None:
            await resolver.close()

    async def _address(self, name: str) -> str | None:
        async with self._room:
            if self._resolver is None:
                from silkline.fetch.resolver import Resolver  # here: few jobs need what it imports

                self._resolver = Resolver()
            try:
                async with asyncio.timeout(PATIENCE):
                    found = await self._resolver.resolve(name, 0, socket.AF_UNSPEC)
            except (OSError, TimeoutError):
                return None
        return standing_for(one["host"] for one in found)


def addresses_for(opened: AsyncExitStack) -> Addresses:
    """Closed by `opened`."""
    addresses = Addresses()
    opened.push_async_callback(addresses.close)
    return addresses
