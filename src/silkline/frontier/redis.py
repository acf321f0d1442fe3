"""The frontier for many machines: one job in Redis, Valkey or a cluster of them."""

from __future__ import annotations

import asyncio
import secrets
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from time import monotonic

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import redis_reads, rules
from silkline.frontier.redis_inbox import Inbox
from silkline.frontier.redis_link import RedisLink, Say
from silkline.frontier.redis_news import News
from silkline.frontier.redis_partition import Partition, by_host, prefix_of
from silkline.frontier.redis_wire import Placed, arrivals, leases_of, placed
from silkline.frontier.store_thread import StoreThread
from silkline.outcome import (
    Added,
    Committed,
    DeadLetter,
    Heartbeat,
    KeptValue,
    Lease,
    LeaseBatch,
    Outcome,
    Overview,
    Stats,
    Whereabouts,
)
from silkline.protocols import Clock, Deliver, Positions
from silkline.request import Request
from silkline.url import host_of

VERSION = "1"
LONGEST_NAP = 2.0
"""Seconds after which an idle worker asks again though nobody told it anything: news may get lost."""

FORGET = 60.0
"""Seconds after which a worker without a heartbeat is gone."""


class RedisFrontier:
    """See `protocols.Frontier`. `clock` stands in for the server's time in tests.

    A commit with items takes two steps: they are made durable, then one script checks the tokens and
    commits. If a token turns out to be stale in between, nothing is committed, and the rest is delivered
    again from the same positions, which cuts off what the first try wrote.
    """

    def __init__(self, url: str, options: FrontierOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock
        self._local: Clock = clock or monotonic
        self._worker = rules.new_worker_id()
        self._link = RedisLink(url)
        self._clustered = url.partition("://")[0].endswith("+cluster")
        self._news = News(self._link, f"{options.job}:news")
        self._partitions: list[Partition] = []
        self._inbox: Inbox | None = None
        self._thread: StoreThread | None = None
        self._held: dict[int, tuple[str, float]] = {}
        """By token: the host, and until when (by the local clock) it is ours for sure."""
        self._raw: dict[Partition, dict[str, str]] = {}
        self._positions: dict[str, str] = {}
        self._committing = asyncio.Lock()
        self._unsure = False
        """A lease may have been given whose reply never arrived."""
        self._turn = 0
        self._beats = 0

    @property
    def worker(self) -> str:
        return self._worker

    def listen(self, news: Callable[[], None], trouble: Say = lambda line: None) -> None:
        self._news.tell = news
        self._link.say = trouble

    async def open(self) -> None:
        await self._link.open()
        try:
            await self._enter()
        except BaseException:
            await self._link.close()
            raise
        self._thread = StoreThread("redis-deliver")
        await self._read_positions()
        await self.apply(self._options)
        for note in await redis_reads.persistence(self._link):
            self._link.say(note)
        if self._clock is None:
            self._news.start()

    async def close(self) -> None:
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        self._link.leave()
        await self._news.stop()
        try:
            groups = self._by_partition((token, host) for token, (host, _) in self._held.items())
            for partition in self._partitions:
                await partition.release(by_host(groups.get(partition, ())), everything=self._unsure)
                await partition.command("HDEL", "ops", *(f"{self._worker}:{verb}" for verb in ONCE))
            await self._home.command("HDEL", "workers", self._worker)
        finally:
            self._held.clear()
            thread.stop()
            await self._link.close()

    async def add(self, requests: Sequence[Request]) -> Added:
        added = 0
        for partition, batch in self._sorted(placed(requests)).items():
            added += await partition.add(arrivals(batch))
        return Added(added, len(requests) - added)

    async def lease(self, count: int) -> LeaseBatch:
        batch, inbox = await self._lease(count)
        if inbox and await self._opened_inbox.drain(self._add_elsewhere) and len(batch.leases) < count:
            more, _ = await self._lease(count - len(batch.leases))
            batch = msgspec.structs.replace(more, leases=(*batch.leases, *more.leases))
        if batch.leases or batch.finished or self._clock is not None:
            self._news.fed()
            return batch
        wait = self._news.hungry(LONGEST_NAP if batch.wake_in is None else batch.wake_in)
        return msgspec.structs.replace(batch, wake_in=min(wait, LONGEST_NAP))

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        lost = {token for token in tokens if token not in self._held}
        asked = self._local()
        known = [(token, self._held[token][0]) for token in tokens if token not in lost]
        for partition, mine in self._by_partition(known).items():
            lost |= await partition.check(by_host(mine), renew=True)
        for token, host in known:
            if token in lost:
                self._held.pop(token, None)
            elif token in self._held:
                self._held[token] = (host, asked + self._options.lease_seconds)
        return [token for token in tokens if token in lost]

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        first: dict[int, Outcome] = {}
        for outcome in outcomes:
            first.setdefault(outcome.lease.token, outcome)
        async with self._committing:
            stale = await self._lost(first.values())
            placed(link for o in outcomes for link in o.links)  # what cannot be added fails the whole commit
            accepted: list[Outcome] = []
            added = 0
            shares = self._shares([o for token, o in first.items() if token not in stale])
            if not shares and deliver is not None:
                shares = {self._home: []}
            for partition, share in shares.items():
                kept, new = await self._commit_share(partition, share, deliver)
                accepted += kept
                added += new
        counted = {id(outcome) for outcome in accepted}
        accepted = [outcome for outcome in outcomes if id(outcome) in counted]
        late = tuple(outcome.lease.token for outcome in outcomes if id(outcome) not in counted)
        return Committed(tuple(accepted), late, added)

    async def release(self, tokens: Sequence[int]) -> None:
        self._opened()
        held = [(token, self._held.pop(token)[0]) for token in tokens if token in self._held]
        for partition, mine in self._by_partition(held).items():
            await partition.release(by_host(mine))

    async def block_host(self, host: str, seconds: float) -> None:
        await self._of(host).call("limit", host=host, seconds=float(seconds))

    async def limit_host(self, host: str, *, delay: float | None = None, cap: int | None = None) -> None:
        rules.check_limits(delay, cap)
        own_delay = None if delay is None else float(delay)
        await self._of(host).call("limit", host=host, set=True, own_delay=own_delay, cap=cap)

    async def stats(self) -> Stats:
        sizes = [await partition.call("stats") for partition in self._opened()]
        return Stats(*(sum(column) for column in zip(*sizes, strict=True)))

    async def positions(self) -> Positions:
        return redis_reads.newest(await self._raw_positions())

    async def dead_letters(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        letters = []
        for partition in self._opened():
            async for some in redis_reads.letters(partition, cause, host, limit):
                letters += some
        letters.sort(key=lambda letter: (letter.at, letter.id), reverse=True)
        return [letter.told() for letter in letters[:limit]]

    async def dead_causes(self) -> Mapping[str, int]:
        return await redis_reads.dead_causes(self._opened())

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._take_out(cause, host, limit, again=True)

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._take_out(cause, host, limit, again=False)

    async def explain(self, url: str) -> Whereabouts:
        self._opened()
        return await redis_reads.explain(self._of(host_of(url)), url, clock=self._clock)

    async def remember(self, facts: Mapping[str, str]) -> None:
        if facts:
            await self._home.command("HSET", "facts", *(word for fact in facts.items() for word in fact))

    async def recall(self) -> Mapping[str, str]:
        return redis_reads.text_of(await self._home.command("HGETALL", "facts"))

    async def keep(self, name: str, value: bytes, seconds: float) -> None:
        await self._home.call("keep", [value], name=name, seconds=float(seconds))

    async def kept(self, name: str) -> KeptValue | None:
        found = await self._home.call("kept", name=name)
        return KeptValue(found[0], float(found[1])) if found else None

    async def heartbeat(self, beat: Heartbeat) -> Mapping[str, str]:
        text = msgspec.json.encode(beat)[:-1].decode()
        self._beats += 1
        forget = FORGET if self._beats % 15 == 1 else None
        inbox, *config = await self._home.call("beat", worker=self._worker, beat=text, forget=forget)
        if inbox:
            self._news.tell()
        return redis_reads.text_of(config)

    async def configure(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        for name, value in changes.items():
            if value is None:
                await self._home.command("HDEL", "config", name)
            else:
                await self._home.command("HSET", "config", name, value)
        return redis_reads.text_of(await self._home.command("HGETALL", "config"))

    async def apply(self, options: FrontierOptions) -> None:
        """What the job was created with (dedup, partitions) stays."""
        self._options = msgspec.structs.replace(
            options,
            dedup=self._options.dedup,
            partitions=self._options.partitions,
            bloom_capacity=self._options.bloom_capacity,
            bloom_error=self._options.bloom_error,
        )
        limits = f"{options.per_host} {options.delay:g}"
        for partition in self._opened():
            partition.options = self._options
            before = await partition.command("HGET", "meta", "limits")
            await partition.command("HSET", "meta", "limits", limits)
            if before is not None and before.decode() != limits:
                async for hosts in redis_reads.waiting_hosts(partition):
                    await partition.call("retune", hosts=hosts)

    async def overview(self, hosts: int = 10) -> Overview:
        return await redis_reads.overview(
            self._link, self._opened(), await self.stats(), hosts, self._options
        )

    async def _enter(self) -> None:
        wanted, epoch = self._options, secrets.token_hex(8)
        self._partitions = [self._partition(0)]
        self._inbox = Inbox(self._home, self._worker)
        meta = await self._home.enter(wanted, epoch, create=True)
        if meta.get("version") != VERSION:
            raise JobError(
                f"the job {wanted.job!r} was written by a newer silkline (version {meta.get('version')}); "
                "update silkline on this machine"
            )
        self._options = settled(wanted, meta)
        self._home.options = self._options
        for number in range(1, self._options.partitions):
            partition = self._partition(number)
            self._partitions.append(partition)
            if (await partition.enter(self._options, meta["epoch"], create=True))["epoch"] != meta["epoch"]:
                raise JobError(
                    f"partition {number} of job {wanted.job!r} is of another job of that name: "
                    f"remove what is left of it with: silkline purge --job {wanted.job}"
                )
        if self._options.max_pages is not None and self._options.partitions > 1:
            raise ConfigError("max_pages counts in one place: it needs a job with partitions=1")

    def _partition(self, number: int) -> Partition:
        prefix = prefix_of(self._options.job, number, clustered=self._clustered)
        return Partition(self._link, prefix, self._news.channel, self._worker, self._options, self._clock)

    def _opened(self) -> list[Partition]:
        if self._thread is None and not self._link.is_open:
            raise FrontierError("the frontier is not open")
        return self._partitions

    @property
    def _home(self) -> Partition:
        return self._opened()[0]

    @property
    def _opened_inbox(self) -> Inbox:
        assert self._inbox is not None
        return self._inbox

    def _of(self, host: str) -> Partition:
        partitions = self._opened()
        return partitions[zlib.crc32(host.encode()) % len(partitions)]

    def _sorted(self, requests: Iterable[Placed]) -> dict[Partition, list[Placed]]:
        groups: dict[Partition, list[Placed]] = {}
        for request in requests:
            groups.setdefault(self._of(request.host), []).append(request)
        return groups

    async def _add_elsewhere(self, requests: list[Placed]) -> list[Placed]:
        """Add what is not the home partition's; returns the rest."""
        groups = self._sorted(requests)
        mine = groups.pop(self._home, [])
        for partition, batch in groups.items():
            await partition.add(arrivals(batch))
        return mine

    def _by_partition(self, held: Iterable[tuple[int, str]]) -> dict[Partition, list[tuple[int, str]]]:
        groups: dict[Partition, list[tuple[int, str]]] = {}
        for token, host in held:
            groups.setdefault(self._of(host), []).append((token, host))
        return groups

    async def _lease(self, count: int) -> tuple[LeaseBatch, int]:
        """A batch, and how many entries the inbox has."""
        partitions = self._opened()
        self._turn = (self._turn + 1) % len(partitions)
        leases: list[Lease] = []
        first, inbox, open_places, spent = inf, 0, 0, False
        for partition in (*partitions[self._turn :], *partitions[: self._turn]):
            wanted, asked = count - len(leases), self._local()
            self._unsure, before = True, self._unsure
            reply = await partition.lease(wanted, self._options.max_pages)
            self._unsure = before
            budget, expiry, delayed, queue, still_open, entries, now = reply[:7]
            given = leases_of(reply[7:])
            for lease in given:
                safe = asked + lease.starts_in + self._options.lease_seconds
                self._held[lease.token] = (lease.host, safe)
            leases += given
            inbox += entries
            open_places += still_open
            spent = spent or 0 <= budget <= len(given)
            moments = (expiry,) if spent else (expiry, delayed, queue)
            first = min([first, *(float(moment) - float(now) for moment in moments if moment)])
        full = len(leases) >= count
        wake_in = None if first == inf else min(max(0.0, first), self._options.lease_seconds)
        finished = open_places == 0 and (len(partitions) == 1 or await self._surely_finished())
        return (
            LeaseBatch(
                leases=tuple(leases),
                wake_in=0.0 if full and not spent else wake_in,
                finished=finished,
                budget_spent=spent and not reply[1],
            ),
            inbox,
        )

    async def _surely_finished(self) -> bool:
        """A commit adds links to another partition before it ends its lease, so that partitions read one
        after the other may all look empty though the job is not. If nothing was added and nothing leased
        between two looks at all of them, they were all empty at the same moment."""
        looks = []
        for _ in range(2):
            for partition in self._opened():
                sizes = await partition.call("stats")
                if sizes[0] or sizes[1] or sizes[2] or sizes[5]:
                    return False
                looks.append(await partition.command("HMGET", "meta", "last_id", "last_token"))
        half = len(looks) // 2
        return looks[:half] == looks[half:]

    async def _lost(self, outcomes: Iterable[Outcome]) -> set[int]:
        """The tokens that are known not to hold; the server is asked only about those in doubt."""
        now = self._local()
        doubtful = [
            (outcome.lease.token, outcome.lease.host)
            for outcome in outcomes
            if self._held.get(outcome.lease.token, ("", -inf))[1] <= now
        ]
        lost: set[int] = set()
        for partition, mine in self._by_partition(doubtful).items():
            lost |= await partition.check(by_host(mine), renew=False)
        return lost

    def _shares(self, outcomes: Sequence[Outcome]) -> dict[Partition, list[Outcome]]:
        shares: dict[Partition, list[Outcome]] = {}
        for outcome in outcomes:
            shares.setdefault(self._of(outcome.lease.host), []).append(outcome)
        return shares

    async def _commit_share(
        self, partition: Partition, outcomes: list[Outcome], deliver: Deliver | None
    ) -> tuple[list[Outcome], int]:
        """The outcomes of one partition that counted, and how many of their links were new."""
        while True:
            positions: list[tuple[str, str, str | None]] = []
            new: Mapping[str, str] = self._positions
            if deliver is not None:
                new = await self._deliver(deliver, outcomes)
                changed = dict(new.items() - self._positions.items())
                positions = redis_reads.moves(self._raw, partition, changed)
            if not outcomes and not positions:
                return [], 0
            added = 0
            links = placed(link for outcome in outcomes for link in outcome.links)
            groups = self._sorted(links)
            own = groups.pop(partition, [])
            for other, batch in groups.items():
                added += await other.add(arrivals(batch))
            word, rest = await partition.commit(outcomes, arrivals(own), positions)
            if word == "ok":
                self._positions = dict(new)
                self._raw[partition] |= {name: numbered for name, numbered, _ in positions}
                for outcome in outcomes:
                    self._held.pop(outcome.lease.token, None)
                return outcomes, added + int(rest[0])
            if word == "moved":
                await self._read_positions()  # somebody else writes to the same output
                continue
            late = {int(token) for token in rest}
            for token in late:
                self._held.pop(token, None)
            outcomes = [outcome for outcome in outcomes if outcome.lease.token not in late]

    async def _deliver(self, deliver: Deliver, outcomes: Sequence[Outcome]) -> Positions:
        self._opened()
        assert self._thread is not None
        positions = dict(self._positions)
        return await self._thread.run(lambda: deliver(outcomes, positions))

    async def _read_positions(self) -> None:
        self._raw = await self._raw_positions()
        self._positions = redis_reads.newest(self._raw)

    async def _raw_positions(self) -> dict[Partition, dict[str, str]]:
        return {
            partition: redis_reads.text_of(await partition.command("HGETALL", "positions"))
            for partition in self._opened()
        }

    async def _take_out(self, cause: str | None, host: str | None, limit: int | None, *, again: bool) -> int:
        moved = 0
        for partition in self._opened():
            left = None if limit is None else limit - moved
            async for some in redis_reads.letters(partition, cause, host, left):
                chosen = [letter for letter in some if not again or letter.raw is None]
                moved += await partition.take_out(chosen, again=again)
        return moved


ONCE = ("add", "commit", "resend", "drained")
"""The verbs whose last call the server remembers for each worker."""


def settled(wanted: FrontierOptions, meta: Mapping[str, str]) -> FrontierOptions:
    """The options with what the job was created with. Raises JobError where something else is asked for."""
    default = FrontierOptions()
    kept = {
        "partitions": int(meta["partitions"]),
        "dedup": meta["dedup"],
        "bloom_capacity": int(meta["bloom_capacity"]),
        "bloom_error": float(meta["bloom_error"]),
    }
    for name, value in kept.items():
        asked = getattr(wanted, name)
        if asked not in (value, getattr(default, name)):
            raise JobError(
                f"the job {wanted.job!r} was created with {name}={value}, not {asked}: that cannot change; "
                "leave it out, choose another --job, or start over with --fresh"
            )
    return msgspec.structs.replace(wanted, **kept)
