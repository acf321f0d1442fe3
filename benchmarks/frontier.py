"""How fast the SQLite frontier takes a million URLs, what they cost, and what leasing costs among them.

    python benchmarks/frontier.py [URLS]

Adds URLS (1,000,000) to a new file, then measures lease + commit with a thousand and with all of them
waiting. Everything is durable; CPU is that of all threads.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from silkline.config import FrontierOptions
from silkline.frontier import SqliteFrontier
from silkline.outcome import Done, Outcome
from silkline.request import Request

CHUNK = 20_000
HOSTS = 100
BATCH = 100
BATCHES = 50


def url(n: int) -> str:
    return f"https://www.shop-{n % HOSTS}.example/catalogue/category-{n % 37}/product-{n}.html"


def chunks(first: int, last: int) -> Iterator[list[Request]]:
    for start in range(first, last, CHUNK):
        yield [Request(url(n)) for n in range(start, min(start + CHUNK, last))]


async def add(frontier: SqliteFrontier, first: int, last: int) -> float:
    """Seconds. The next chunk is made ready while the last one is written."""
    began = time.perf_counter()
    pending: asyncio.Future[object] | None = None
    for chunk in chunks(first, last):
        following = asyncio.ensure_future(frontier.add(chunk))
        await asyncio.sleep(0)  # it fingerprints and encodes now, then waits for its turn
        if pending is not None:
            await pending
        pending = following
    if pending is not None:
        await pending
    return time.perf_counter() - began


async def visit(frontier: SqliteFrontier) -> tuple[float, float, float]:
    """Microseconds per page: lease (wall clock), commit (wall clock), both (CPU of all threads)."""
    leased = committed = 0.0
    began, pages = time.process_time(), 0
    for _ in range(BATCHES):
        start = time.perf_counter()
        batch = await frontier.lease(BATCH)
        middle = time.perf_counter()
        outcomes = [Outcome(lease, Done()) for lease in batch.leases]
        await frontier.commit(outcomes, lambda done, positions: {"out": str(len(done))})
        leased, committed = leased + middle - start, committed + time.perf_counter() - middle
        pages += len(outcomes)
    scale = 1e6 / pages
    return leased * scale, committed * scale, (time.process_time() - began) * scale


async def measure(urls: int, directory: Path) -> None:
    path = directory / "job.db"
    frontier = SqliteFrontier(path, FrontierOptions(per_host=100))
    await frontier.open()
    small = BATCH * (BATCHES + 10)
    await add(frontier, 0, small)
    show("leasing among a thousand or so", await visit(frontier))
    seconds = await add(frontier, small, urls)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    log = path.with_name(path.name + "-wal").stat().st_size
    print(f"{urls - small:,} URLs added at {(urls - small) / seconds:,.0f}/s")
    print(f"peak memory {rss:.0f} MB, write-ahead log {log >> 20} MB")
    show(f"leasing among {urls - small:,}", await visit(frontier))
    began = time.perf_counter()
    waiting = (await frontier.stats()).waiting
    print(f"{waiting:,} waiting, counted in {(time.perf_counter() - began) * 1e3:.0f} ms")
    await frontier.close()
    length = sum(len(url(n)) for n in range(0, urls, 101)) / len(range(0, urls, 101))
    each = path.stat().st_size / urls
    print(f"{each:.0f} bytes of disk per URL, {each - length:.0f} beyond the URL itself")


def show(what: str, costs: tuple[float, float, float]) -> None:
    print("{}: lease {:.1f} µs, commit {:.1f} µs a page; CPU of both {:.1f} µs".format(what, *costs))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, Path(directory)))
