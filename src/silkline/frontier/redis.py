"""The frontier for many machines: one job in Redis, Valkey or a cluster of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Any

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier import redis_reads, rules
from silkline.frontier.redis_commit import Commits, Held
from silkline.frontier.redis_inbox import Inbox
from silkline.frontier.redis_items import RedisDeadItems
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_letters import RedisDeadLetters
from silkline.frontier.redis_link import RedisLink, Say
from silkline.frontier.redis_moves import hand_over
from silkline.frontier.redis_news import News
from silkline.frontier.redis_partition import Partition, by_host
from silkline.frontier.redis_wire import Placed, arrivals, leases_of
from silkline.outcome import (
    NONE_REFUSED,
    Added,
    Blocked,
    Committed,
    Heartbeat,
    HostState,
    KeptValue,
    Lease,
    LeaseBatch,
    Outcome,
    Overview,
    Stats,
    Whereabouts,
)
from silkline.protocols import Clock, Decide, Deliver, Positions, Resolve
from silkline.request import Request
from silkline.values import PolitenessBy

LONGEST_NAP = 2.0
"""Seconds after which an idle worker asks again though nobody told it anything: news may get lost."""

COMPLETE_NAP = 10.0
"""The same where the job is complete and the worker is told to stay."""

PARTING = 5.0
"""Seconds that a worker waits at its end for a server that is away."""

FORGET = 60.0
"""Seconds after which a worker without a heartbeat is gone."""

FORGET_CALLS = 86_400.0
"""Seconds for which the server knows what it answered to a call, be its worker gone or just cut off."""

ONCE = ("add", "commit", "resend", "items", "drained")
"""The verbs whose last call the server remembers for each worker."""


class RedisFrontier:
    """See `protocols.Frontier`. `clock` stands in for the server's time in tests."""

    def __init__(
        self,
        url: str,
        options: FrontierOptions,
        *,
        clock: Clock | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._clock = clock
        self._local: Clock = clock or monotonic
        self._link = RedisLink(url)
        self._job = Job(self._link, options, clock, resolve)
        self.dead_letters = RedisDeadLetters(self._job)
        self.dead_items = RedisDeadItems(self._job)
        self._held = Held()
        self._commits = Commits(self._job, self._held, self._local)
        self._news = News(self._link, self._job.channel)
        self._inbox = Inbox(self._job, self._add_elsewhere)
        self._unsure = False
        """A lease may have been given whose reply never arrived."""
        self._turn = 0
        self._beats = 0

    @property
    def worker(self) -> str:
        return self._job.worker

    def listen(self, news: Callable[[], None], trouble: Say) -> None:
        self._news.tell = news
        self._link.say = trouble

    def leave(self, patience: float) -> None:
        self._link.leave(patience)

    async def open(self) -> None:
        await self._link.open()
        try:
            await self._job.enter()
            await self._commits.open()
            await self.apply(self._job.options)
            for note in await redis_reads.persistence(self._link):
                self._link.say(note)
        except BaseException:
            self._commits.close()
            self._job.leave()
            await self._link.close()
            raise
        if self._clock is None:
            self._news.start()

    async def close(self) -> None:
        if not self._link.is_open:
            return
        self._link.leave(PARTING)
        await self._news.stop()
        try:
            await self._take_leave()
        except FrontierError as error:
            # All that counts is committed. What is held still comes back when it expires.
            self._link.say(f"left without a word to the other workers: {error}")
        finally:
            self._held.clear()
            self._commits.close()
            self._job.leave()
            await self._link.close()

    async def _take_leave(self) -> None:
        groups = self._job.spread_tokens(self._held.hosts())
        for partition in self._job.partitions:
            await partition.release(by_host(groups.get(partition, ())), everything=self._unsure)
            await partition.command("HDEL", "ops", *(f"{self.worker}:{verb}" for verb in ONCE))
        await self._job.home.command("HDEL", "workers", self.worker)

    async def add(self, requests: Sequence[Request]) -> Added:
        added, refused = 0, NONE_REFUSED
        for partition, batch in self._job.spread(await self._job.placed(requests)).items():
            known = partition.fell_back
            new, over = await partition.add(arrivals(batch))
            if partition.fell_back and not known:
                self._link.say(
                    "Redis fell back to an earlier state: what was added shortly before may be lost; add it "
                    "again, what is there already is left out"
                )
            added += new
            refused += over
        return Added(added, len(requests) - added - refused.count, refused)

    def fingerprint(self, url: str) -> int:
        return self._job.keys.fingerprint(url)

    @property
    def politeness_by(self) -> PolitenessBy:
        return self._job.groups.by

    async def politeness_keys(self, urls: Sequence[str]) -> Sequence[str]:
        return list(map(await self._job.groups.keys(urls), urls))

    async def lease(self, count: int) -> LeaseBatch:
        if self._unsure:
            await self._give_back_unknown()
        batch, inbox = await self._lease(count)
        if inbox and await self._inbox.drain() and len(batch.leases) < count:
            more, _ = await self._lease(count - len(batch.leases))
            batch = msgspec.structs.replace(
                more,
                leases=(*batch.leases, *more.leases),
                fell_back=batch.fell_back or more.fell_back,
            )
        if batch.leases or batch.finished or self._clock is not None:
            self._news.fed(enough=len(batch.leases) >= count)
            stays = batch.finished and self._clock is None
            return msgspec.structs.replace(batch, wake_in=COMPLETE_NAP) if stays else batch
        soon = LONGEST_NAP if batch.wake_in is None else batch.wake_in
        # One that has work is woken by its own commits: it is not idle, and its hosts' delays are to be met.
        wait = max(0.01, soon) if self._held else self._news.hungry(soon)
        return msgspec.structs.replace(batch, wake_in=min(wait, LONGEST_NAP))

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        lost = {token for token in tokens if token not in self._held}
        known = [(token, self._held[token][0]) for token in tokens if token not in lost]
        asked = self._local()
        for partition, mine in self._job.spread_tokens(known).items():
            lost |= await partition.check(by_host(mine), renew=True)
        for token, host in known:
            if token in lost:
                self._held.pop(token, None)
            elif token in self._held:
                self._held[token] = (host, asked + self._job.options.lease_seconds)
        return [token for token in tokens if token in lost]

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        return await self._commits.commit(outcomes, deliver)

    async def release(self, tokens: Sequence[int]) -> None:
        held = [(token, self._held.pop(token)[0]) for token in tokens if token in self._held]
        for partition, mine in self._job.spread_tokens(held).items():
            await partition.release(by_host(mine))

    async def block_host(self, host: str, seconds: float) -> None:
        await self._job.of(host).call("limit", host=host, seconds=float(seconds))

    async def limit_host(
        self, host: str, *, delay: float | None = None, cap: int | None = None, only_raise: bool = False
    ) -> None:
        rules.check_limits(delay, cap)
        own_delay = None if delay is None else float(delay)
        await self._job.of(host).call(
            "limit", host=host, set=True, own_delay=own_delay, cap=cap, only_raise=only_raise
        )

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        groups: dict[Partition, list[str]] = {}
        for host in hosts:
            groups.setdefault(self._job.of(host), []).append(host)
        for partition, mine in groups.items():
            await partition.pace(mine, decide)

    async def stats(self) -> Stats:
        sizes = [await partition.call("stats") for partition in self._job.partitions]
        return Stats(*(sum(column) for column in zip(*sizes, strict=True)))

    async def positions(self) -> Positions:
        return await self._commits.positions()

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        return await self._commits.distinct(outcomes)

    async def explain(self, url: str) -> Whereabouts:
        host = await self._job.groups.key(url)
        return await redis_reads.explain(self._job, host, self.fingerprint(url))

    async def remember(self, facts: Mapping[str, str]) -> None:
        if facts:
            await self._job.home.put("facts", facts)

    async def recall(self) -> Mapping[str, str]:
        return redis_reads.text_of(await self._job.home.command("HGETALL", "facts"))

    async def keep(self, name: str, value: bytes, seconds: float) -> None:
        await self._job.home.call("keep", [value], name=name, seconds=float(seconds))

    async def kept(self, name: str) -> KeptValue | None:
        found = await self._job.home.call("kept", name=name)
        return KeptValue(found[0], float(found[1])) if found else None

    async def heartbeat(self, beat: Heartbeat) -> Mapping[str, str]:
        text = msgspec.json.encode(beat)[:-1].decode()
        self._beats += 1
        forget = FORGET if self._beats % 15 == 1 else None
        inbox, *config = await self._job.home.call("beat", worker=self.worker, beat=text, forget=forget)
        if forget is not None:
            workers = await self._job.home.command("HKEYS", "workers")
            living = [worker.decode() for worker in workers]
            for partition in self._job.partitions:
                await partition.call("forget", living=living, forget_calls=FORGET_CALLS)
        if inbox:
            self._news.tell()
        return redis_reads.text_of(config)

    async def configure(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        return redis_reads.text_of(await self._job.home.put("config", changes))

    async def apply(self, options: FrontierOptions) -> None:
        """What the job was created with (dedup, partitions) stays."""
        old = self._job.options
        self._job.options = msgspec.structs.replace(
            options,
            dedup=old.dedup,
            partitions=old.partitions,
            bloom_capacity=old.bloom_capacity,
            bloom_error=old.bloom_error,
            politeness_by=old.politeness_by,
        )
        limits = f"{options.per_host} {options.delay:g} {options.ceiling}"
        for partition in self._job.partitions:
            partition.options = self._job.options
            before = await partition.command("HGET", "meta", "limits")
            if before is not None and before.decode() != limits:
                async for hosts in redis_reads.waiting_hosts(partition):
                    await partition.call("retune", hosts=hosts)
            # Only now: should this worker die in between, the next one sees that there is more to do.
            await partition.put("meta", {"limits": limits})

    async def overview(self, hosts: int = 10) -> Overview:
        stats = await self.stats()
        return await redis_reads.overview(self._link, self._job.partitions, stats, hosts, self._job.options)

    async def blocked(self, hosts: int = 5) -> Blocked:
        return await redis_reads.blocked(self._job.partitions, hosts)

    async def host(self, key: str) -> HostState | None:
        return await redis_reads.host(self._job.of(key), key)

    async def _lease(self, count: int) -> tuple[LeaseBatch, int]:
        """A batch, and how many entries the inbox has."""
        partitions = self._job.partitions
        self._turn = (self._turn + 1) % len(partitions)
        batch = LeaseBatch(finished=True)
        first, inbox, spent, fell_back = inf, 0, False, False
        for partition in (*partitions[self._turn :], *partitions[: self._turn]):
            told, given = await self._ask(partition, count - len(batch.leases))
            budget, expiry, delayed, queue, still_open, entries, now, lost, leaving, reached = told
            fell_back = fell_back or bool(lost)
            if leaving:  # of a worker that has died, most likely
                await hand_over(self._job, partition)
            inbox += entries
            spent = 0 <= budget <= len(given)
            moments = (expiry,) if spent else (expiry, delayed, queue)
            first = min([first, *(float(moment) - float(now) for moment in moments if moment)])
            batch = LeaseBatch(
                leases=(*batch.leases, *given),
                finished=batch.finished and not still_open,
                budget_spent=bool(reached) or (spent and not expiry),
            )
        if fell_back:
            self._job.groups.forget()
            self._link.say(
                "Redis fell back to an earlier state (a failover, or a restart from an older file): "
                "what it lost is done again"
            )
        full = len(batch.leases) >= count
        wake_in = None if first == inf else min(max(0.0, first), self._job.options.lease_seconds)
        finished = batch.finished and (len(partitions) == 1 or await self._surely_finished())
        wake_in = 0.0 if full and not spent else wake_in
        batch = msgspec.structs.replace(batch, wake_in=wake_in, finished=finished, fell_back=fell_back)
        return batch, inbox

    async def _ask(self, partition: Partition, count: int) -> tuple[list[Any], list[Lease]]:
        """The reply of `lease`: its head, and the leases, which are ours from now on."""
        asked = self._local()
        resent, unsure, self._unsure = self._link.resent, self._unsure, True
        reply = await partition.lease(count, self._job.options.max_pages)
        self._unsure = unsure or self._link.resent != resent
        leases = leases_of(reply[10], reply[11:])
        safe = asked + self._job.options.lease_seconds
        for lease in leases:
            self._held[lease.token] = (lease.host, safe + lease.starts_in)
        return reply[:10], leases

    async def _give_back_unknown(self) -> None:
        """A reply of `lease` was lost: what it gave would count as delivered, and wait until it expires."""
        keep = {str(token): True for token in self._held}
        for partition in self._job.partitions:
            await partition.release([], everything=True, keep=keep)
        self._unsure = False

    async def _surely_finished(self) -> bool:
        """A commit adds links to another partition before it ends its lease, so that partitions read one
        after the other may all look empty though the job is not. If nothing was added and nothing leased
        between two looks at all of them, they were all empty at the same moment."""
        looks = []
        for _ in range(2):
            for partition in self._job.partitions:
                busy, *last = await partition.call("quiet")
                if busy:
                    return False
                looks.append(last)
        half = len(looks) // 2
        return looks[:half] == looks[half:]

    async def _add_elsewhere(self, requests: list[Placed]) -> list[Placed]:
        """Add what is not the home partition's; returns the rest."""
        groups = self._job.spread(requests)
        mine = groups.pop(self._job.home, [])
        for partition, batch in groups.items():
            await partition.add(arrivals(batch))
        return mine
