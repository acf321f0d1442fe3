"""Names to addresses for aiohttp's connector."""

from __future__ import annotations

import asyncio
import socket

import aiodns
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import AsyncResolver, ThreadedResolver


class Resolver(AbstractResolver):
    """aiodns, which reads /etc/hosts too; or the system's resolver in a thread where aiodns cannot start.

    timeout: seconds for one name.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        try:
            self._inner: AbstractResolver = AsyncResolver()
        except (OSError, RuntimeError, aiodns.error.DNSError):
            self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        async with asyncio.timeout(self._timeout):
            return await self._inner.resolve(host, port, family)

    async def close(self) -> None:
        await self._inner.close()
