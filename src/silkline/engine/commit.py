"""The committer: groups outcomes and makes them count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from silkline.engine.blocks import Blocks
from silkline.engine.delivery import Delivery
from silkline.engine.known import KnownUrls
from silkline.engine.leases import Held
from silkline.events import Kept, Visited
from silkline.outcome import Batch, Committed, Dead, Done, Outcome, RetryLater
from silkline.protocols import Deliver, Frontier, Hook

GROUP = 100
AT_ONCE = 4 * GROUP
"""Outcomes of one commit at most."""
LINGER = 0.05
"""Seconds that an outcome waits for company at most, and only while the visitors have work."""


class Committer:
    """Takes outcomes from the visitors; commits them up to 100 at a time or every 50 ms, whichever comes
    first, and at once when the visitors starve, since a commit is what frees host slots and brings links.
    Keyed sinks may like to get more at once, and get what they are to have before the commit."""

    def __init__(
        self,
        frontier: Frontier,
        held: Held,
        known: KnownUrls,
        deliver: Deliver,
        hook: Hook,
        wake_leaser: Callable[[], None],
        delivery: Delivery | None = None,
    ) -> None:
        self._frontier = frontier
        self._held = held
        self._known = known
        self._deliver = deliver
        self._hook = hook
        self._wake_leaser = wake_leaser
        self._delivery = delivery or None
        self._batch = delivery.batch if delivery else None
        self._linger = LINGER if self._batch is None else self._batch.seconds
        self._items = self._bytes = 0
        self._blocks = Blocks(hook)
        self.share: Callable[[], Awaitable[None]] | None = None
        """Awaited before each commit: makes known to other workers what the visits of its pages changed."""
        self.note: Callable[[Visited], None] | None = None
        """Also told of every visit, where the pace of hosts is found out."""
        self._pending: list[Outcome] = []
        self._withdrawn: list[int] = []
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._committing = asyncio.Lock()

    def put(self, visited: Visited) -> None:
        """An outcome to commit. The event goes to the hooks; the body is let go of here."""
        self._hook(visited)
        if self.note is not None:
            self.note(visited)
        outcome = visited.outcome
        self._pending.append(outcome)
        if outcome.block_host:
            self.give_back(self._held.block(outcome.lease.host, outcome.block_host))
            self._blocks.block(outcome.lease.host, outcome.block_host)
        self._arrived.set()
        enough = len(self._pending) >= GROUP if self._batch is None else self._enough(outcome, self._batch)
        if enough or self._held.starving:
            self._full.set()

    def _enough(self, outcome: Outcome, batch: Batch) -> bool:
        self._items += len(outcome.items)
        self._bytes += sum(item.size for item in outcome.items)
        most = max(self._items, len(self._pending))
        return most >= batch.count or self._bytes >= batch.bytes

    def give_back(self, tokens: Sequence[int]) -> None:
        """Release leases of a blocked host, after the commit that makes the block known: before it they
        would be handed out again."""
        self._withdrawn += tokens
        self._arrived.set()

    def owes(self) -> bool:
        """Whether leases that were given back are still to be released."""
        return bool(self._withdrawn)

    @property
    def undelivered(self) -> frozenset[int]:
        """The tokens of visits whose outcomes wait for a commit; keyed sinks may have rows of them."""
        return frozenset(outcome.lease.token for outcome in self._pending)

    def hurry(self) -> None:
        """Do not linger if visitors are idle: a commit is what they may be waiting for."""
        if self._pending and self._held.starving:
            self._full.set()

    async def run(self) -> None:
        """Commit groups for ever."""
        while True:
            await self._arrived.wait()
            try:
                async with asyncio.timeout(self._linger):
                    await self._full.wait()
            except TimeoutError:
                pass
            await self.flush()

    async def flush(self) -> None:
        """Commit everything that is pending now. On failure it is pending still."""
        async with self._committing:
            # First, so that what arrives in one of the waits below is committed in the next round.
            self._arrived.clear()
            self._full.clear()
            while self._pending:
                for group in await self._delivered():
                    if self.share is not None:
                        await self.share()
                    committed = await self._frontier.commit(group, self._deliver)
                    del self._pending[: len(group)]
                    self._settle(group, committed)
                    if self._delivery is not None:
                        await self._delivery.settle(group, committed)
            if self._withdrawn:
                tokens = list(self._withdrawn)
                await self._frontier.release(tokens)
                del self._withdrawn[: len(tokens)]  # until then they are owed: more may have come behind them
                self._wake_leaser()  # when they are due again only the frontier knows

    async def _delivered(self) -> list[Sequence[Outcome]]:
        """The next groups to commit; what keyed sinks get of them is durable."""
        if self._delivery is None:
            return [self._pending[:AT_ONCE]]
        assert self._batch is not None
        self._items = self._bytes = 0
        outcomes: Sequence[Outcome] = self._pending[: max(AT_ONCE, self._batch.count)]
        if any(outcome.aliases and outcome.items for outcome in outcomes):
            # What the commit would drop is not to be written first: a kill in between would leave it there.
            outcomes = before_rivals(await self._frontier.distinct(outcomes))
        outcomes = await self._delivery.write(outcomes)
        return [outcomes[at : at + AT_ONCE] for at in range(0, len(outcomes), AT_ONCE)]

    def _settle(self, group: Sequence[Outcome], committed: Committed) -> None:
        self._held.forget([outcome.lease.token for outcome in group])
        # Only what a commit has accepted is known to be in the frontier (no URL is seen but not queued).
        self._known.add(
            link.url
            for outcome in committed.accepted
            for link in outcome.links
            if link.key is None and link.body is None and link.method == "GET"
        )
        self._hook(kept(committed))
        self._wake_leaser()


def before_rivals(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """As many of the first ones as have items of different pages for sure: which of two that may be the same
    has them, the commit of the earlier one decides."""
    claimed: set[int] = set()
    for place, outcome in enumerate(outcomes):
        mine = {alias.fingerprint for alias in outcome.aliases}
        if outcome.items and not mine.isdisjoint(claimed):
            return outcomes[:place]
        claimed |= mine
    return outcomes


def kept(committed: Committed) -> Kept:
    """The counts of one commit."""
    pages = retried = dead = items = dead_items = 0
    for outcome in committed.accepted:
        match outcome.verdict:
            case Done():
                pages += 1
                dead_items += len(outcome.dead_items)
            case RetryLater():
                retried += 1
            case Dead():
                dead += 1
        for item in outcome.items:
            if item.index >= 0:
                items += 1
    stale = len(committed.stale)
    return Kept(
        pages,
        retried,
        dead,
        items,
        committed.added,
        stale,
        committed.duplicates,
        committed.refused,
        dead_items,
    )
