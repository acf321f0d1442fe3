"""Seeds into the frontier of a job that others crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from silkline.engine.backpressure import Backpressure
from silkline.engine.gather import gathered
from silkline.engine.known import KnownUrls
from silkline.engine.refusals import keep_refused_seeds
from silkline.engine.seeder import read_ahead
from silkline.events import Seeded
from silkline.outcome import NONE_REFUSED, Added
from silkline.protocols import Frontier
from silkline.request import Request
from silkline.seeds import SeedSource

REMEMBERED = 65_536
BATCH = 1_000
"""Requests in one step of a frontier that is a server, which serves nobody else meanwhile."""
BATCH_OF_FILE = 5_000
"""And of one that is a file, where the transaction is what costs."""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """How a producer adds.

    batch: requests in one step of the frontier, at most; None for what suits it.
    max_waiting: wait while so many requests are queued; None for no limit.
    visit: a name for this visit. It becomes a part of each request's key, so that a URL that was visited
        under another name is visited again; None for the usual identity.
    remember: leave out URLs that this run has added before without asking the frontier, as far as a bounded
        memory goes. Not for a frontier without dedup.
    """

    batch: int | None = None
    max_waiting: int | None = None
    visit: str | None = None
    remember: bool = True


class Producer:
    """Reads a source to its end, or until `stopping` is set, and adds what it gives. For one run.

    say: is told what the user should know, in one line each. watch: gets the counts after each step.
    """

    def __init__(
        self,
        frontier: Frontier,
        source: SeedSource,
        flow: Flow,
        *,
        stopping: asyncio.Event,
        say: Callable[[str], None],
        watch: Callable[[Seeded], None],
    ) -> None:
        self._frontier = frontier
        self._source = source
        self._flow = flow
        self._stopping = stopping
        self._watch = watch
        self._known = KnownUrls(REMEMBERED)
        self._pressure = flow.max_waiting and Backpressure(frontier, flow.max_waiting, say)
        self._added = 0
        self._duplicate = 0
        self._refused = NONE_REFUSED
        self._pending: asyncio.Task[None] | None = None

    async def run(self) -> Seeded:
        """Raises what the source and the frontier raise; what was added before stays added, and `watch` is
        told."""
        try:
            async with (
                aclosing(read_ahead(self._source)) as batches,
                aclosing(gathered(batches, self._flow.batch or BATCH, self._stopping)) as parts,
            ):
                async for part in parts:
                    await self._produce(part)
            await self._settle()
            await keep_refused_seeds(self._frontier, self._refused)
        except asyncio.CancelledError:
            if self._pending is not None:
                self._pending.cancel()
            raise
        finally:
            # Whatever else failed: what the frontier has been given is added and counted.
            await asyncio.gather(*filter(None, (self._pending,)), return_exceptions=True)
            self._watch(self._result)
        return self._result

    @property
    def _result(self) -> Seeded:
        return Seeded(self._added, self._duplicate, self._source.invalid, self._source.reasons, self._refused)

    async def _produce(self, batch: list[Request]) -> None:
        while batch and not self._stopping.is_set():
            size = len(batch)
            if self._pressure:
                await self._settle()  # what is being added must be counted
                size = min(size, await self._pressure.room(self._stopping))
                self._pressure.took(size)
            if size > 0:
                # The frontier gets the next batch ready while the store writes the last one.
                following = asyncio.create_task(self._add(batch[:size]))
                await self._settle(following)
                batch = batch[size:]

    async def _settle(self, following: asyncio.Task[None] | None = None) -> None:
        """Wait until the batch before is added."""
        pending, self._pending = self._pending, following
        if pending is not None:
            await pending

    async def _add(self, requests: list[Request]) -> None:
        new = self._unknown(requests) if self._flow.remember else requests
        visit = self._flow.visit
        named = new if visit is None else [visited(one, visit) for one in new]
        result = await self._frontier.add(named) if named else Added()
        self._added += result.added
        self._refused += result.refused
        self._duplicate += len(requests) - result.added - result.refused.count
        self._watch(self._result)
        if self._flow.remember:
            self._known.add(request.url for request in new if is_plain(request))

    def _unknown(self, requests: list[Request]) -> list[Request]:
        known = self._known
        return [one for one in requests if one.url not in known or not is_plain(one)]


def is_plain(request: Request) -> bool:
    """Whether the URL alone says which request it is."""
    return request.key is None and request.method == "GET" and request.body is None


def visited(request: Request, visit: str) -> Request:
    """The request as another one than that of any other visit."""
    return msgspec.structs.replace(request, key=f"{request.fingerprint:x} {visit}")
