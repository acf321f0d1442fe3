"""What a request costs each client: nothing is parsed, written or remembered.

    .venv/bin/python -m benchmarks.clients            # over TLS: libcurl speaks HTTP/2, aiohttp HTTP/1.1
    .venv/bin/python -m benchmarks.clients --plain

CPU µs a request (user and system time of the client's process, after its first requests), 100 at a time; the
median of the runs, which take turns, and the range.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import uvloop

from benchmarks.peers.curl_client import Client
from benchmarks.programs import WORK
from benchmarks.site import MAX_FILES, Missing, served
from silkline.fetch.curl import CurlFetcher
from silkline.fetch.engine import Engine
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.request import Request

AT_ONCE = 100
FIRST = 500
"""Requests that are not counted: connections are made, caches are filled."""

Get = Callable[[str], Awaitable[bytes]]


@asynccontextmanager
async def bare_aiohttp() -> AsyncIterator[Get]:
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=False)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def get(url: str) -> bytes:
            async with session.get(url) as response:
                return await response.read()

        yield get


@asynccontextmanager
async def bare_libcurl() -> AsyncIterator[Get]:
    yield Client().get


def engine(kind: type[Engine]) -> Callable[[], AbstractAsyncContextManager[Get]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Get]:
        fetcher = kind(FetchOptions(verify=False, limit=AT_ONCE))

        async def get(url: str) -> bytes:
            return (await fetcher.fetch(Request(url))).body

        yield get
        await fetcher.close()

    return opened


CLIENTS: dict[str, Callable[[], AbstractAsyncContextManager[Get]]] = {
    "aiohttp": bare_aiohttp,
    "libcurl": bare_libcurl,
    "silkline, engine http": engine(HttpFetcher),
    "silkline, engine curl": engine(CurlFetcher),
}


async def cost(name: str, base: str, requests: int) -> float:
    """CPU µs a request. Raises ValueError where what comes is no page of the site."""
    numbers, files = iter(range(FIRST + requests)), min(requests, MAX_FILES)
    started = 0.0

    async def work(get: Get) -> None:
        nonlocal started
        for number in numbers:
            if number == FIRST:
                started = time.process_time()
            if b'<span class="price">' not in await get(f"{base}/p/{number % files}.html"):
                raise ValueError(f"{name} got no page")

    async with CLIENTS[name]() as get:
        await asyncio.gather(*[work(get) for _ in range(AT_ONCE)])
        return (time.process_time() - started) / requests * 1e6


def measured(name: str, base: str, requests: int) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.clients", "--one", name, base, "--requests", str(requests)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(costs: dict[str, list[float]]) -> str:
    lines = ["| client | CPU µs a request | aiohttp needs |", "|---|---|---|"]
    least = statistics.median(costs["aiohttp"])
    for name, runs in costs.items():
        middle = statistics.median(runs)
        spread = f"{middle:.0f} ({min(runs):.0f}–{max(runs):.0f})"
        lines.append(f"| {name} | {spread} | {least / middle:.1f}x as much |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.clients", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=MAX_FILES)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--one", nargs=2, metavar=("CLIENT", "BASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(uvloop.run(cost(*options.one, options.requests)))
        return 0
    costs: dict[str, list[float]] = {name: [] for name in CLIENTS}
    try:
        with served(options.requests, WORK, not options.plain) as (base, _):
            for _ in range(options.runs):
                for name, runs in costs.items():
                    runs.append(measured(name, base, options.requests))
    except Missing as error:
        print(error, file=sys.stderr)
        return 2
    print(table(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
