"""The reference frontier: plain Python structures, one process, nothing kept when it ends.

Every other backend is held equal to this one by the model test, so it is written to be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier import memory_reads, rules
from silkline.frontier.dead_pages import DeadPage
from silkline.frontier.groups import Groups
from silkline.frontier.memory_items import MemoryDeadItems
from silkline.frontier.memory_letters import MemoryDeadLetters
from silkline.frontier.memory_limits import forget_due, set_pace
from silkline.frontier.memory_places import Places
from silkline.frontier.memory_state import Expiring, arrivals
from silkline.keys import KeyRules
from silkline.outcome import (
    Added,
    Blocked,
    Committed,
    Heartbeat,
    HostState,
    KeptValue,
    LeaseBatch,
    Outcome,
    Overview,
    Stats,
    Whereabouts,
    WorkerState,
)
from silkline.protocols import Clock, Decide, Deliver, Positions, Resolve
from silkline.request import Request
from silkline.values import PolitenessBy


class MemoryFrontier:
    """See `protocols.Frontier`. `clock` gives Unix seconds."""

    def __init__(
        self, options: FrontierOptions, *, clock: Clock = time.time, resolve: Resolve | None = None
    ) -> None:
        self._clock = clock
        self._groups = Groups(options.politeness_by, self._grouped, resolve)
        self._group_of: dict[str, str] = {}
        self._worker = rules.new_worker_id()
        self._places = Places(options, self._worker)
        self.dead_letters = MemoryDeadLetters(self._places, self._now)
        self.dead_items = MemoryDeadItems(self._places, self._now)
        self._is_open = False
        self._keys = KeyRules(options.ignore_params)
        self._positions: dict[str, str] = {}
        self._facts: dict[str, str] = {}
        self._kept = Expiring()
        self._live: dict[str, str] = {}
        self._beats: dict[str, tuple[float, Heartbeat]] = {}

    @property
    def worker(self) -> str:
        return self._worker

    async def open(self) -> None:
        self._is_open = True

    def fingerprint(self, url: str) -> int:
        return self._keys.fingerprint(url)

    @property
    def politeness_by(self) -> PolitenessBy:
        return self._groups.by

    async def politeness_keys(self, urls: Sequence[str]) -> Sequence[str]:
        return list(map(await self._groups.keys(urls), urls))

    async def close(self) -> None:
        if self._is_open:
            self._places.give_back(list(self._places.leased), self._clock())
            self._beats.clear()
            self._is_open = False

    async def add(self, requests: Sequence[Request]) -> Added:
        key_of = await self._groups.keys(request.url for request in requests)
        now = self._now()
        added, refused = self._places.enqueue(arrivals(requests, self._keys, key_of), now)
        return Added(added, len(requests) - added - refused.count, refused)

    async def lease(self, count: int) -> LeaseBatch:
        now, places = self._now(), self._places
        places.wake_delayed(now)
        places.take_back_expired(now)
        budget = places.budget_left()
        leases = places.hand_out(min(count, budget), now)
        full, spent = len(leases) >= count, len(leases) >= budget
        return LeaseBatch(
            leases=tuple(leases),
            wake_in=0.0 if full and not spent else places.wake_in(now, only_expiries=spent),
            finished=not (places.waiting or places.delayed or places.leased),
            budget_spent=places.has_its_pages or (spent and not places.leased),
        )

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        expires = self._now() + self._places.options.lease_seconds
        leased = self._places.leased
        for token in tokens:
            if token in leased:
                leased[token].expires = expires
        return [token for token in tokens if token not in leased]

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        requests = [link for outcome in outcomes for link in outcome.links]
        key_of = await self._groups.keys(request.url for request in requests)
        now, places = self._now(), self._places
        links = arrivals(requests, self._keys, key_of)
        accepted, stale = places.check(outcomes)
        if stale:
            requests = [link for outcome in accepted for link in outcome.links]
            links = arrivals(requests, self._keys, key_of)
        duplicates, claimed = rules.first_claims(accepted, places.seen.__contains__)
        if duplicates:
            accepted = [rules.without_items(o) if o.lease.token in duplicates else o for o in accepted]
        if deliver is not None:  # before any change: if it raises, nothing has happened
            self._positions.update(deliver(accepted, dict(self._positions)))
        touched = []
        for outcome in accepted:
            entry = places.leased.pop(outcome.lease.token)
            host = entry.host
            touched += [host, places.conclude(entry, outcome.verdict, now)]
            if items := rules.dead_items(outcome, now):
                places.dead_pages[entry.id] = DeadPage(
                    entry.id, entry.fingerprint, entry.host.key, entry.request, items, now
                )
            if outcome.block_host > 0:
                host.blocked_until = max(host.blocked_until, now + outcome.block_host)
        places.seen.update(claimed)
        places.aliases.update(claimed)
        added, refused = places.enqueue(links, now)
        places.settle(touched, now)
        return Committed(tuple(accepted), tuple(stale), added, len(duplicates), refused)

    async def release(self, tokens: Sequence[int]) -> None:
        self._places.give_back(tokens, self._now())

    async def block_host(self, host: str, seconds: float) -> None:
        now = self._now()
        known = self._places.host(host)
        known.blocked_until = max(known.blocked_until, now + seconds)
        self._places.settle([known], now)

    async def limit_host(
        self, host: str, *, delay: float | None = None, cap: int | None = None, only_raise: bool = False
    ) -> None:
        rules.check_limits(delay, cap)
        now = self._now()
        known = self._places.host(host)
        if only_raise and delay is not None and known.delay is not None:
            delay = max(delay, known.delay)
        known.delay = known.delay if delay is None else delay
        known.cap = known.cap if cap is None else cap
        forget_due(known)
        self._places.settle([known], now)

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        now = self._now()
        for key in dict.fromkeys(hosts):
            known = self._places.hosts.get(key)
            paced = decide(key, None if known is None or known.pace is None else known.pace.state, now)
            if paced is None:
                continue
            known = self._places.host(key)
            set_pace(known, paced, now)
            self._places.settle([known], now)

    async def stats(self) -> Stats:
        self._now()
        return memory_reads.stats(self._places)

    async def positions(self) -> Positions:
        self._now()
        return dict(self._positions)

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        self._now()
        return rules.distinct(outcomes, self._places.seen.__contains__)

    async def explain(self, url: str) -> Whereabouts:
        now, fingerprint = self._now(), self._keys.fingerprint(url)
        return memory_reads.explain(self._places, await self._groups.key(url), fingerprint, now)

    async def remember(self, facts: Mapping[str, str]) -> None:
        self._now()
        self._facts.update(facts)

    async def recall(self) -> Mapping[str, str]:
        self._now()
        return dict(self._facts)

    async def keep(self, name: str, value: bytes, seconds: float) -> None:
        self._kept.put(name, value, self._now(), seconds)

    async def kept(self, name: str) -> KeptValue | None:
        return self._kept.get(name, self._now())

    async def heartbeat(self, beat: Heartbeat) -> Mapping[str, str]:
        self._beats[self._worker] = (self._now(), beat)
        return dict(self._live)

    async def configure(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        self._now()
        merged = {**self._live, **changes}
        self._live = {name: text for name, text in merged.items() if text is not None}
        return dict(self._live)

    async def apply(self, options: FrontierOptions) -> None:
        now, places = self._now(), self._places
        before = places.options
        places.options = msgspec.structs.replace(options, politeness_by=before.politeness_by)
        limits = [(given.per_host, given.delay, given.ceiling) for given in (before, options)]
        if limits[0] == limits[1]:
            return
        for host in places.hosts.values():
            forget_due(host)
        places.settle(places.hosts.values(), now)

    async def overview(self, hosts: int = 10) -> Overview:
        now = self._now()
        busy = memory_reads.busy_hosts(self._places, now)
        return Overview(
            stats=memory_reads.stats(self._places),
            hosts=tuple(busy[:hosts]),
            host_count=len(busy),
            workers=tuple(WorkerState(id, now - at, beat) for id, (at, beat) in sorted(self._beats.items())),
            oldest_lease=max((now - entry.at for entry in self._places.leased.values()), default=None),
            with_dead_items=len(self._places.dead_pages),
            live=dict(self._live),
        )

    async def blocked(self, hosts: int = 5) -> Blocked:
        return memory_reads.blocked(self._places, hosts, self._now())

    async def host(self, key: str) -> HostState | None:
        return memory_reads.host(self._places, key, self._now())

    def listen(self, news: Callable[[], None], trouble: Callable[[str], None]) -> None:
        """There are no others."""

    def leave(self, patience: float) -> None:
        """It is never away."""

    def _now(self) -> float:
        if not self._is_open:
            raise FrontierError("the frontier is not open")
        return self._clock()

    async def _grouped(self, proposals: Mapping[str, str]) -> Mapping[str, str]:
        for host, key in proposals.items():
            if key:
                self._group_of.setdefault(host, key)
        return {host: self._group_of[host] for host in proposals if host in self._group_of}
