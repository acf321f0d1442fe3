"""Commits: items first, then one script that checks the tokens and makes everything count."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from math import inf

import msgspec

from silkline.frontier import redis_reads, rules
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_moves import hand_over
from silkline.frontier.redis_partition import Partition, by_host
from silkline.frontier.redis_wire import arrivals, fingerprint_bytes, refused_of
from silkline.frontier.store_thread import StoreThread
from silkline.outcome import NONE_REFUSED, Committed, Done, Moved, Outcome
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
        # Before our turn: to find out where hosts belong may take long.
        await self._job.groups.keys(link.url for outcome in outcomes for link in outcome.links)
        first: dict[int, Outcome] = {}
        for outcome in outcomes:
            first.setdefault(outcome.lease.token, outcome)
        result = Committed()
        async with self._turn:
            stale = await self._lost(first.values())
            shares = self._shares([o for token, o in first.items() if token not in stale])
            if not shares and deliver is not None:
                shares = {self._job.home: []}
            for partition, share in shares.items():
                kept = await self._share(partition, share, deliver)
                result = Committed(
                    (*result.accepted, *kept.accepted),
                    added=result.added + kept.added,
                    duplicates=result.duplicates + kept.duplicates,
                    refused=result.refused + kept.refused,
                )
        counted = {outcome.lease.token: outcome for outcome in result.accepted}
        # Of two outcomes for one lease the first counts.
        taken = [counted.pop(outcome.lease.token, None) for outcome in outcomes]
        late = tuple(o.lease.token for o, kept in zip(outcomes, taken, strict=True) if kept is None)
        accepted = tuple(outcome for outcome in taken if outcome is not None)
        return msgspec.structs.replace(result, accepted=accepted, stale=late)

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
    ) -> Committed:
        """The outcomes of one partition that counted, and what came of their links."""
        added, refused = 0, NONE_REFUSED
        while True:
            # First of all: what cannot be added fails the whole commit.
            links = self._job.spread(
                await self._job.placed(link for outcome in outcomes for link in outcome.links)
            )
            own = arrivals(links.pop(partition, []))
            duplicates, claims = await self._claims(outcomes)
            if duplicates:
                outcomes = [rules.without_items(o) if o.lease.token in duplicates else o for o in outcomes]
            new: Mapping[str, str] = self._positions
            if deliver is not None:
                new = await self._deliver(deliver, outcomes)
            moved = redis_reads.moves(self._raw, partition, dict(new.items() - self._positions.items()))
            if not outcomes and not moved:
                return Committed(added=added, refused=refused)
            for other, batch in links.items():
                new_links, over = await other.add(arrivals(batch))
                added += new_links
                refused += over
            word, rest = await partition.commit(
                outcomes,
                own,
                moved,
                claims.pop(partition, ()),
                lambda host: self._job.of(host) is partition,
            )
            if word == "ok":
                for other, fingerprints in claims.items():
                    await other.known(fingerprints, mark=True)
                await self._after_redirects(partition, outcomes)
                self._positions = dict(new)
                self._raw[partition] |= {name: numbered for name, numbered, _ in moved}
                for outcome in outcomes:
                    self._held.pop(outcome.lease.token, None)
                return Committed(
                    tuple(outcomes),
                    added=added + int(rest[0]),
                    duplicates=len(duplicates),
                    refused=refused + refused_of(int(rest[1]), rest[2]),
                )
            if word == "claimed":  # by another worker, since we looked
                continue
            if word == "moved":  # somebody else writes to the same output, or the server fell back
                await self._read_positions()
                continue
            late = {int(token) for token in rest}
            for token in late:
                self._held.pop(token, None)
            outcomes = [outcome for outcome in outcomes if outcome.lease.token not in late]

    async def _after_redirects(self, partition: Partition, outcomes: Sequence[Outcome]) -> None:
        """What redirects lead to other partitions goes there; of what is done these need not know more."""
        if len(self._job.partitions) == 1:
            return
        if any(isinstance(outcome.verdict, Moved) for outcome in outcomes):
            await hand_over(self._job, partition)
        for outcome in outcomes:
            onward = outcome.lease.request.onward
            if onward is None or not isinstance(outcome.verdict, Done):
                continue
            urls = (outcome.lease.request.url, *onward.via)
            key_of = await self._job.groups.keys(urls)
            for other in {self._job.of(key_of(url)) for url in urls} - {partition}:
                await other.command("HDEL", "away", fingerprint_bytes(outcome.lease.fingerprint))

    async def _claims(self, outcomes: Sequence[Outcome]) -> tuple[set[int], dict[Partition, list[int]]]:
        """The tokens of the duplicates, and the fingerprints that become seen.

        Those of this partition are seen by the commit itself, which fails where another worker was faster.
        Those of others are marked after it: there two pages that lead to a third one at the same moment may
        both be taken for the first.
        """
        places = await self._places(outcomes)
        if not places:
            return set(), {}
        seen = await self._seen(places)
        duplicates, claimed = rules.first_claims(outcomes, seen.__contains__)
        claims: dict[Partition, list[int]] = {}
        for fingerprint in claimed:
            claims.setdefault(places[fingerprint], []).append(fingerprint)
        return duplicates, claims

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        places = await self._places(outcomes)
        return rules.distinct(outcomes, (await self._seen(places)).__contains__) if places else outcomes

    async def _places(self, outcomes: Sequence[Outcome]) -> dict[int, Partition]:
        """By fingerprint, where each alias belongs."""
        if self._job.options.dedup == "none":
            return {}
        aliases = [alias for outcome in outcomes for alias in outcome.aliases]
        key_of = await self._job.groups.keys(alias.host for alias in aliases)
        return {alias.fingerprint: self._job.of(key_of(alias.host)) for alias in aliases}

    async def _seen(self, places: Mapping[int, Partition]) -> set[int]:
        seen: set[int] = set()
        for partition in set(places.values()):
            seen |= await partition.known(one for one, place in places.items() if place is partition)
        return seen

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
