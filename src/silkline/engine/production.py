"""One run of a producer: opens the frontier, adds the seeds, closes the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from silkline.config import FrontierOptions
from silkline.engine.addresses import Addresses
from silkline.engine.discovery import rules_in
from silkline.engine.named import NamedHosts, hosts_of
from silkline.engine.producer import BATCH, BATCH_OF_FILE, Flow, Producer
from silkline.errors import ConfigError, FrontierError
from silkline.events import Seeded
from silkline.frontier.open import facts_in, frontier_from, on_server, options_in
from silkline.protocols import Frontier
from silkline.seeds import Seeds

LEAVE_WITHIN = 2.0
"""Seconds."""


async def produce(
    url: str,
    options: FrontierOptions,
    source: Seeds,
    flow: Flow,
    *,
    stopping: asyncio.Event,
    warn: Callable[[str], None],
    say: Callable[[str], None],
    watch: Callable[[Seeded], None],
) -> Seeded:
    """Add what the source gives to the frontier at `url`, until `stopping` is set.

    Hosts of URLs that are given directly count as named for the whole job.

    options: of a job that does not exist yet; one that does keeps its own.
    warn: told at the beginning what may happen to the frontier's data. say: told what happens later.

    Raises ConfigError for a frontier that keeps nothing, and what the frontier and the source raise; what
    was added before stays added.
    """
    refuse_memory(url)
    kept = options_in(url, options.job)
    if kept is not None:
        most = rules_in(facts_in(url, options.job)).max_pages_per_host
        options = msgspec.structs.replace(kept, job=options.job, max_pages_per_host=most)
    flow = msgspec.structs.replace(
        flow,
        batch=flow.batch or (BATCH if on_server(url) else BATCH_OF_FILE),
        remember=flow.remember and options.dedup != "none",
    )
    resolve = Addresses()
    frontier = frontier_from(url, options, resolve)
    frontier.listen(lambda: None, warn)
    await frontier.open()
    frontier.listen(lambda: None, say)
    leaving = asyncio.create_task(_leave(frontier, stopping), name="leaving")
    try:
        await NamedHosts(frontier).name(hosts_of(source.given))
        producer = Producer(frontier, source, flow, stopping=stopping, say=say, watch=watch)
        return await producer.run()
    except asyncio.CancelledError:
        # It holds nothing there: whoever cancels need not wait for a server that does not answer.
        with suppress(TimeoutError, FrontierError):
            async with asyncio.timeout(LEAVE_WITHIN):
                await frontier.close()
        raise
    finally:
        leaving.cancel()
        await frontier.close()  # idempotent
        await resolve.close()


async def _leave(frontier: Frontier, stopping: asyncio.Event) -> None:
    """Told to stop, a producer waits no longer for a server that is away, or takes nothing."""
    await stopping.wait()
    frontier.leave(LEAVE_WITHIN)


def refuse_memory(url: str) -> None:
    """Raise ConfigError for a frontier that ends with this process."""
    if url == "memory:":
        raise ConfigError(
            "memory: keeps nothing for others to crawl: name a frontier, such as sqlite:///job.db"
        )


def visit_at(moment: float) -> str:
    """The name of the visit of a run at this time (Unix seconds)."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
