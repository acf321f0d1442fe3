"""Names to addresses for aiohttp's connector."""

from __future__ import annotations

import socket
from time import perf_counter

import aiodns
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import AsyncResolver, ThreadedResolver

from silkline.fetch.connector import exchange


class Resolver(AbstractResolver):
    """aiodns, which reads /etc/hosts too; or the system's resolver in a thread where aiodns cannot start.

    Tells the exchange that asks how long it took.
    """

    def __init__(self) -> None:
        try:
            self._inner: AbstractResolver = AsyncResolver()
        except (OSError, RuntimeError, aiodns.error.DNSError):
            self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        started = perf_counter()
        found = await self._inner.resolve(host, port, family)
        if (current := exchange.get(None)) is not None:
            current.dns += perf_counter() - started
        return found

    async def close(self) -> None:
        await self._inner.close()
