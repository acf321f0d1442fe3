"""The Python producer: seeds for a job that other processes crawl."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from silkline.engine.producer import Flow
from silkline.engine.production import produce, visit_at
from silkline.errors import ConfigError
from silkline.events import Seeded
from silkline.resolve import settings_from
from silkline.seeds import Seed, Seeds

P = ParamSpec("P")
T = TypeVar("T")


async def seed_async(
    frontier: str,
    *seeds: Seed,
    job: str = "spider",
    batch: int | None = None,
    max_waiting: int | None = None,
    revisit: bool = False,
    **settings: Any,
) -> Seeded:
    """Add seeds to a job's frontier; returns what became of them: `added`, `duplicate`, `invalid`, `reasons`.

    frontier: its URL, such as sqlite:///shop.db; "" for the usual file of the job, .silkline/<job>.db.
    seeds: URLs, Requests, Paths of files with a URL or JSON task a line, iterables of the first two (read in
        a thread, in batches), sources such as `silkline.seeds.Query`.
    batch: requests in one step of the frontier, at most; None for 5,000 on a file and 1,000 on a server.
    max_waiting: wait while so many requests are queued; None for no limit.
    revisit: visit again what the job has seen before; all seeds of this call get the time as a part of their
        key. Without it they are duplicates.
    settings: limits of a job that does not exist yet, such as per_host=2; one that does keeps its own.

    Raises ConfigError for a bad argument and an unusable source, FatalError where the frontier or a source
    fails; what was added before stays added. Cancelled, it stops with nothing half added.
    """
    if any(number is not None and number < 1 for number in (batch, max_waiting)):
        raise ConfigError("batch and max_waiting must be whole numbers, 1 or more")
    resolved = settings_from({"job": job, "frontier": frontier, **settings}, "seed(...)")
    flow = Flow(
        batch=batch,
        max_waiting=max_waiting,
        visit=visit_at(time.time()) if revisit else None,
    )
    return await produce(
        resolved.frontier_url,
        resolved.frontier_options,
        Seeds(*seeds),
        flow,
        stopping=asyncio.Event(),
        warn=_ignore,
        say=_ignore,
        watch=_ignore,
    )


def _blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same call for programs without an event loop."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if asyncio._get_running_loop() is not None:
            raise ConfigError("an event loop is running here: write `await silkline.seed_async(...)`")
        return asyncio.run(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = function.__name__.removesuffix("_async")
    return call


def _ignore(news: object) -> None:
    """Nobody is told."""


seed = _blocking(seed_async)
