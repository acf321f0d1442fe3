"""What keyed sinks get, before the commit that makes it count."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

import msgspec

from silkline.engine.refused_rows import RefusedRows
from silkline.errors import ConfigError, RowsRefused, SinkAwayError
from silkline.events import Trouble
from silkline.outcome import Batch, Committed, DeadItem, Done, Item, Moved, Outcome, RetryLater
from silkline.protocols import Hook, KeyedSink
from silkline.sinks.failing import answering, blamed
from silkline.sinks.record import text_of

FIRST_WAIT, LONGEST_WAIT = 0.2, 15.0
"""Seconds between two tries to reach a server that is away."""

Refusal = tuple[Item, str]


class Delivery:
    """Hands outcomes' items to every keyed sink. A sink whose server is away is waited for, which holds back
    the commits, and by them the leasing; a row that is refused becomes a dead item, alone."""

    def __init__(self, sinks: Sequence[KeyedSink], hook: Hook) -> None:
        self.sinks = sinks
        self.refused = RefusedRows(hook)
        self._hook = hook
        self._until: float | None = None
        self._leaving = asyncio.Event()
        self._opened = AsyncExitStack()

    def __bool__(self) -> bool:
        return bool(self.sinks)

    @property
    def batch(self) -> Batch | None:
        """How much all of them like at once; None where there are none."""
        if not self.sinks:
            return None
        batches = [sink.batch for sink in self.sinks]
        return Batch(
            max(batch.count for batch in batches),
            min(batch.bytes for batch in batches),
            max(batch.seconds for batch in batches),
        )

    async def open(self) -> None:
        """Raises what `KeyedSink.open` does."""
        for sink in self.sinks:
            self._opened.push_async_callback(sink.close)
            with answering(), blamed(sink.name, "open", ConfigError):
                await sink.open()

    async def close(self) -> None:
        await self._opened.aclose()

    def leave(self, patience: float) -> None:
        """Wait for servers that are away so many seconds at most, from now on."""
        until = time.monotonic() + patience
        self._until = until if self._until is None else min(self._until, until)
        # Who naps looks at the clock anew, also at the second call; who naps from now on waits for the next.
        self._leaving.set()
        self._leaving = asyncio.Event()

    async def write(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Make their items durable. Returns the outcomes with what was refused as dead items.

        Raises SinkError; then nothing may be committed.
        """
        if not any(outcome.items or supersedes(outcome) for outcome in outcomes):
            return outcomes
        refused: dict[int, list[DeadItem]] = {}
        async with asyncio.TaskGroup() as tasks:
            for sink in self.sinks:
                tasks.create_task(self._write_to(sink, outcomes, refused))
        if not refused:
            return outcomes
        return [
            msgspec.structs.replace(o, dead_items=(*o.dead_items, *refused[o.lease.token]))
            if o.lease.token in refused
            else o
            for o in outcomes
        ]

    async def settle(self, outcomes: Sequence[Outcome], committed: Committed) -> None:
        """After the commit: take back the rows of pages that another request turned out to have, too."""
        if not committed.duplicates:
            return
        had_items = {outcome.lease.token for outcome in outcomes if outcome.items}
        pages = {
            outcome.lease.fingerprint: 0
            for outcome in committed.accepted
            if not outcome.items and outcome.lease.token in had_items
        }
        for sink in self.sinks:
            await self._persist(sink, lambda sink=sink: sink.trim(pages))  # type: ignore[misc]

    async def _write_to(
        self, sink: KeyedSink, outcomes: Sequence[Outcome], refused: dict[int, list[DeadItem]]
    ) -> None:
        owners = {}
        latest: dict[str, Item] = {}
        again: dict[int, int] = {}
        for outcome in outcomes:
            if supersedes(outcome):
                again[outcome.lease.fingerprint] = 1 + max((item.index for item in outcome.items), default=-1)
            for item in outcome.items:
                if sink.name in item.data:
                    latest[item.identity] = item
                    owners[item.identity] = outcome
        for item, why in await self._isolated(sink, list(latest.values())):
            owner = owners[item.identity]
            self.refused.add(sink.name, why, owner.lease.request.url)
            refused.setdefault(owner.lease.token, []).append(
                dead_item(item, owner, "refused", why, sink.name)
            )
        if again:
            await self._persist(sink, lambda: sink.trim(again))

    async def _isolated(self, sink: KeyedSink, items: Sequence[Item]) -> list[Refusal]:
        """Write them; of a batch that is refused, halves and halves of these. Returns the rows at fault."""
        if not items:
            return []
        try:
            await self._persist(sink, lambda: sink.write(items))
        except RowsRefused as error:
            if len(items) == 1:
                return [(items[0], str(error))]
            middle = len(items) // 2
            first = await self._isolated(sink, items[:middle])
            return first + await self._isolated(sink, items[middle:])
        return []

    async def _persist(self, sink: KeyedSink, step: Callable[[], Awaitable[None]]) -> None:
        """Do the step, again and again while the sink's server is away and there is time."""
        wait, away_since = FIRST_WAIT, None
        while True:
            try:
                with blamed(sink.name, "write"):
                    await step()
            except SinkAwayError as error:
                now = time.monotonic()
                if self._until is not None and now >= self._until:
                    raise
                if away_since is None:
                    away_since = now
                    self._hook(Trouble(f"{error}; waiting for it, nothing is lost"))
                await self._nap(wait * random.uniform(0.5, 1.0))
                wait = min(2 * wait, LONGEST_WAIT)
            else:
                if away_since is not None:
                    gone = time.monotonic() - away_since
                    self._hook(Trouble(f"{sink.name} is back after {gone:.1f} s"))
                return

    async def _nap(self, seconds: float) -> None:
        if self._until is not None:
            seconds = max(0.0, min(seconds, self._until - time.monotonic()))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leaving.wait()


def supersedes(outcome: Outcome) -> bool:
    """Whether the page may have rows of an earlier visit that are not its own any more."""
    lease, verdict = outcome.lease, outcome.verdict
    if lease.request.redo:  # these count until it is done again
        return isinstance(verdict, Done)
    again = lease.deliveries > 1 or lease.request.retry_count > 0 or lease.request.spared > 0
    return again and not isinstance(verdict, (RetryLater, Moved))


def dead_item(item: Item, outcome: Outcome, cause: str, error: str, sink: str = "") -> DeadItem:
    """What is kept of an item that an output has refused."""
    return DeadItem(
        item.fingerprint,
        item.index,
        outcome.lease.request.url,
        cause,
        error,
        text_of(item.fields or {}),
        sink,
    )
