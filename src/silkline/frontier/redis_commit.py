"""Commits: items first, then one script that checks the tokens and makes everything count."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from silkline.frontier import redis_reads
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_partition import Partition, by_host
from silkline.frontier.redis_wire import arrivals, placed
from silkline.frontier.store_thread import StoreThread
from silkline.outcome import Committed, Outcome
from silkline.protocols import Clock, Deliver, Positions


class Held(dict[int, tuple[str, float]]):
    """This worker's leases. By token: the host, and until when (by the local clock) it is ours for sure."""

    def hosts(self) -> list[tuple[int, str]]:
        return [(token, host) for token, (host, _) in self.items()]


class Commits:
    """One worker's commits, one at a time.

    The items are made durable before the script runs, in a thread. If a token turns out to be stale then,
    or somebody else has moved a position, nothing is committed, and the rest is delivered again from the
    committed positions, which cuts off what the first try wrote.

    A commit over several partitions is one for each: the links that belong elsewhere are added there first,
    then the partition's own outcomes end, with the sinks' positions; the newest of these is the valid one.
    """

    def __init__(self, job: Job, held: Held, clock: Clock) -> None:
        self._job = job
        self._held = held
        self._clock = clock
        self._thread: StoreThread | None = None
        self._raw: dict[Partition, dict[str, str]] = {}
        self._positions: dict[str, str] = {}
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        self._thread = StoreThread("redis-deliver")
        await self._read_positions()

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None) -> Committed:
        first: dict[int, Outcome] = {}
        for outcome in outcomes:
            first.setdefault(outcome.lease.token, outcome)
        accepted: list[Outcome] = []
        added = 0
        async with self._turn:
            stale = await self._lost(first.values())
            shares = self._shares([o for token, o in first.items() if token not in stale])
            if not shares and deliver is not None:
                shares = {self._job.home: []}
            for partition, share in shares.items():
                kept, new = await self._share(partition, share, deliver)
                accepted += kept
                added += new
        counted = {id(outcome) for outcome in accepted}
        late = tuple(outcome.lease.token for outcome in outcomes if id(outcome) not in counted)
        return Committed(tuple(o for o in outcomes if id(o) in counted), late, added)

    async def positions(self) -> Positions:
        return redis_reads.newest(await self._read_raw())

    async def _lost(self, outcomes: Iterable[Outcome]) -> set[int]:
        """The tokens that are known not to hold; the server is asked only about those in doubt."""
        now = self._clock()
        doubtful = [
            (outcome.lease.token, outcome.lease.host)
            for outcome in outcomes
            if self._held.get(outcome.lease.token, ("", -inf))[1] <= now
        ]
        lost: set[int] = set()
        for partition, mine in self._job.spread_tokens(doubtful).items():
            lost |= await partition.check(by_host(mine), renew=False)
        return lost

    def _shares(self, outcomes: Sequence[Outcome]) -> dict[Partition, list[Outcome]]:
        shares: dict[Partition, list[Outcome]] = {}
        for outcome in outcomes:
            shares.setdefault(self._job.of(outcome.lease.host), []).append(outcome)
        return shares

    async def _share(
        self, partition: Partition, outcomes: list[Outcome], deliver: Deliver | None
    ) -> tuple[list[Outcome], int]:
        """The outcomes of one partition that counted, and how many of their links were new."""
        added = 0
        while True:
            # First of all: what cannot be added fails the whole commit.
            links = self._job.spread(placed(link for outcome in outcomes for link in outcome.links))
            own = arrivals(links.pop(partition, []))
            new: Mapping[str, str] = self._positions
            if deliver is not None:
                new = await self._deliver(deliver, outcomes)
            moved = redis_reads.moves(self._raw, partition, dict(new.items() - self._positions.items()))
            if not outcomes and not moved:
                return [], added
            for other, batch in links.items():
                added += await other.add(arrivals(batch))
            word, rest = await partition.commit(outcomes, own, moved)
            if word == "ok":
                self._positions = dict(new)
                self._raw[partition] |= {name: numbered for name, numbered, _ in moved}
                for outcome in outcomes:
                    self._held.pop(outcome.lease.token, None)
                return outcomes, added + int(rest[0])
            if word == "moved":  # somebody else writes to the same output, or the server fell back
                await self._read_positions()
                continue
            late = {int(token) for token in rest}
            for token in late:
                self._held.pop(token, None)
            outcomes = [outcome for outcome in outcomes if outcome.lease.token not in late]

    async def _deliver(self, deliver: Deliver, outcomes: Sequence[Outcome]) -> Positions:
        assert self._thread is not None, "used only between open and close"
        positions = dict(self._positions)
        return await self._thread.run(lambda: deliver(outcomes, positions))

    async def _read_positions(self) -> None:
        self._raw = await self._read_raw()
        self._positions = redis_reads.newest(self._raw)

    async def _read_raw(self) -> dict[Partition, dict[str, str]]:
        return {
            partition: redis_reads.text_of(await partition.command("HGETALL", "positions"))
            for partition in self._job.partitions
        }
