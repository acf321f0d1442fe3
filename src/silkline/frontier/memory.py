"""The reference frontier: plain Python structures, one process, nothing kept when it ends.

Every other backend is held equal to this one by the model test, so it is written to be read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier import rules
from silkline.frontier.dead_pages import DeadPage, chosen, newest
from silkline.frontier.groups import Groups
from silkline.frontier.memory_limits import delay_of, forget_due, room, set_pace, settle
from silkline.frontier.memory_state import Entry, Expiring, Host, Queue, arrivals, state_of
from silkline.keys import KeyRules
from silkline.outcome import (
    Added,
    Blocked,
    Committed,
    DeadItem,
    DeadLetter,
    Done,
    Heartbeat,
    HostState,
    KeptValue,
    Lease,
    LeaseBatch,
    Moved,
    Outcome,
    Overview,
    Refused,
    RetryLater,
    Stats,
    Verdict,
    Whereabouts,
    WorkerState,
    blocked_of,
    ends_a_visit,
)
from silkline.protocols import Clock, Decide, Deliver, Positions, Resolve
from silkline.request import Request
from silkline.values import PolitenessBy


class MemoryFrontier:
    """See `protocols.Frontier`. `clock` gives Unix seconds."""

    def __init__(
        self, options: FrontierOptions, *, clock: Clock = time.time, resolve: Resolve | None = None
    ) -> None:
        self._options = options
        self._clock = clock
        self._groups = Groups(options.politeness_by, self._grouped, resolve)
        self._group_of: dict[str, str] = {}
        self._worker = rules.new_worker_id()
        self._is_open = False
        self._last_id = 0
        self._last_token = 0
        self._ended_visits = 0
        self._keys = KeyRules(options.ignore_params)
        self._seen: set[int] = set()
        self._aliases: set[int] = set()  # those of the seen that were never a request of their own
        self._taken: Counter[str] = Counter()
        self._hosts: dict[str, Host] = {}
        # One place: an entry is in a queue of its host, or in exactly one of these three.
        self._delayed: dict[int, Entry] = {}
        self._leased: dict[int, Entry] = {}
        self._dead: dict[int, Entry] = {}
        self._waiting: dict[int, Entry] = {}
        self._dead_pages: dict[int, DeadPage] = {}  # by entry, which is done and in none of these
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
            self._give_back(list(self._leased))
            self._beats.clear()
            self._is_open = False

    async def add(self, requests: Sequence[Request]) -> Added:
        key_of = await self._groups.keys(request.url for request in requests)
        now = self._now()
        added, refused = self._enqueue(arrivals(requests, self._keys, key_of), now)
        return Added(added, len(requests) - added - refused.count, refused)

    async def lease(self, count: int) -> LeaseBatch:
        now = self._now()
        self._wake_delayed(now)
        self._take_back_expired(now)
        budget = self._budget_left()
        leases = self._hand_out(min(count, budget), now)
        full, spent = len(leases) >= count, len(leases) >= budget
        return LeaseBatch(
            leases=tuple(leases),
            wake_in=0.0 if full and not spent else self._wake_in(now, only_expiries=spent),
            finished=not (self._waiting or self._delayed or self._leased),
            budget_spent=spent and not self._leased,
        )

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        now = self._now()
        held = [token for token in tokens if token in self._leased]
        for token in held:
            self._leased[token].expires = now + self._options.lease_seconds
        return [token for token in tokens if token not in self._leased]

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        requests = [link for outcome in outcomes for link in outcome.links]
        key_of = await self._groups.keys(request.url for request in requests)
        now = self._now()
        links = arrivals(requests, self._keys, key_of)
        accepted, stale = self._check(outcomes)
        if stale:
            requests = [link for outcome in accepted for link in outcome.links]
            links = arrivals(requests, self._keys, key_of)
        duplicates, claimed = rules.first_claims(accepted, self._seen.__contains__)
        if duplicates:
            accepted = [rules.without_items(o) if o.lease.token in duplicates else o for o in accepted]
        if deliver is not None:  # before any change: if it raises, nothing has happened
            self._positions.update(deliver(accepted, dict(self._positions)))
        touched = []
        for outcome in accepted:
            entry = self._leased.pop(outcome.lease.token)
            host = entry.host
            touched += [host, self._conclude(entry, outcome.verdict, now)]
            if items := rules.dead_items(outcome, now):
                self._dead_pages[entry.id] = DeadPage(
                    entry.id, entry.fingerprint, entry.host.key, entry.request, items, now
                )
            if outcome.block_host > 0:
                host.blocked_until = max(host.blocked_until, now + outcome.block_host)
        self._seen.update(claimed)
        self._aliases.update(claimed)
        added, refused = self._enqueue(links, now)
        self._settle(touched, now)
        return Committed(tuple(accepted), tuple(stale), added, len(duplicates), refused)

    async def release(self, tokens: Sequence[int]) -> None:
        self._now()
        self._give_back(tokens)

    async def block_host(self, host: str, seconds: float) -> None:
        now = self._now()
        known = self._host(host)
        known.blocked_until = max(known.blocked_until, now + seconds)
        self._settle([known], now)

    async def limit_host(
        self, host: str, *, delay: float | None = None, cap: int | None = None, only_raise: bool = False
    ) -> None:
        rules.check_limits(delay, cap)
        now = self._now()
        known = self._host(host)
        if only_raise and delay is not None and known.delay is not None:
            delay = max(delay, known.delay)
        known.delay = known.delay if delay is None else delay
        known.cap = known.cap if cap is None else cap
        forget_due(known)
        self._settle([known], now)

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        now = self._now()
        for key in dict.fromkeys(hosts):
            known = self._hosts.get(key)
            paced = decide(key, None if known is None or known.pace is None else known.pace.state, now)
            if paced is None:
                continue
            known = self._host(key)
            set_pace(known, paced, now)
            self._settle([known], now)

    async def stats(self) -> Stats:
        self._now()
        live = len(self._waiting) + len(self._delayed) + len(self._leased) + len(self._dead)
        return Stats(
            waiting=len(self._waiting),
            delayed=len(self._delayed),
            leased=len(self._leased),
            done=len(self._seen) - len(self._aliases) - live,
            dead=len(self._dead),
        )

    async def positions(self) -> Positions:
        self._now()
        return dict(self._positions)

    async def dead_letters(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        self._now()
        return [
            DeadLetter(e.request, e.fingerprint, e.cause, e.error, e.deliveries, e.worker, e.at)
            for e in self._select_dead(cause, host, limit)
        ]

    async def dead_causes(self) -> Mapping[str, int]:
        self._now()
        return Counter(entry.cause for entry in self._dead.values())

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        now = self._now()
        chosen = self._select_dead(cause, host, limit)
        for entry in chosen:
            del self._dead[entry.id]
            entry.request = msgspec.structs.replace(entry.request, retry_count=0)
            entry.deliveries = 0
            self._wait(entry, now)
        self._settle([entry.host for entry in chosen], now)
        return len(chosen)

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        self._now()
        chosen = self._select_dead(cause, host, limit)
        for entry in chosen:
            del self._dead[entry.id]
        return len(chosen)

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        self._now()
        return rules.distinct(outcomes, self._seen.__contains__)

    async def dead_items(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadItem]:
        self._now()
        pages = chosen(newest(self._dead_pages.values()), cause, host, limit)
        return [item for _, items in pages for item in items]

    async def dead_item_causes(self) -> Mapping[str, int]:
        self._now()
        return Counter(item.cause for page in self._dead_pages.values() for item in page.items)

    async def resend_items(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        now = self._now()
        pages = [page for page in newest(self._dead_pages.values()) if page.has(cause, host)][:limit]
        for page in pages:
            del self._dead_pages[page.id]
            request = rules.redone(page.request, page.keys)
            self._wait(Entry(page.id, request, page.fingerprint, self._hosts[page.host]), now)
        self._settle([self._hosts[page.host] for page in pages], now)
        return len(pages)

    async def drop_items(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        self._now()
        dropped = list(chosen(newest(self._dead_pages.values()), cause, host, limit))
        for page, items in dropped:
            self._dead_pages[page.id] = page.without(items)
            if not self._dead_pages[page.id].items:
                del self._dead_pages[page.id]
        return sum(len(items) for _, items in dropped)

    async def explain(self, url: str) -> Whereabouts:
        now = self._now()
        fingerprint = self._keys.fingerprint(url)
        if fingerprint not in self._seen:
            host = await self._groups.key(url)
            return rules.not_seen(host, self._taken[host], self._options.max_pages_per_host)
        for place in (self._waiting, self._delayed, self._leased, self._dead):
            for entry in place.values():
                if entry.fingerprint == fingerprint:
                    return rules.on_the_way(self._describe(entry, place, now), entry.request, entry.host.key)
        return rules.ALIAS if fingerprint in self._aliases else rules.DONE

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
        now = self._now()
        options = msgspec.structs.replace(options, politeness_by=self._options.politeness_by)
        before, self._options = self._options, options
        limits = [(given.per_host, given.delay, given.ceiling) for given in (before, options)]
        if limits[0] == limits[1]:
            return
        for host in self._hosts.values():
            forget_due(host)
        self._settle(self._hosts.values(), now)

    async def overview(self, hosts: int = 10) -> Overview:
        now = self._now()
        waiting, leased = Counter(entry.host for entry in self._waiting.values()), self._in_flight()
        busy = [host for host in self._hosts.values() if waiting[host] or leased[host.key]]
        busy.sort(key=lambda host: (-waiting[host], -leased[host.key], host.key))
        return Overview(
            stats=await self.stats(),
            hosts=tuple(
                state_of(host, waiting[host], leased[host.key], delay_of(host, self._options), now)
                for host in busy[:hosts]
            ),
            host_count=len(busy),
            workers=tuple(WorkerState(id, now - at, beat) for id, (at, beat) in sorted(self._beats.items())),
            oldest_lease=max((now - entry.at for entry in self._leased.values()), default=None),
            with_dead_items=len(self._dead_pages),
            live=dict(self._live),
        )

    async def blocked(self, hosts: int = 5) -> Blocked:
        now = self._now()
        kept = {entry.host for place in (self._waiting, self._delayed) for entry in place.values()}
        found = [(host.key, host.blocked_until) for host in kept if host.blocked_until > now]
        return blocked_of(found, hosts, now)

    async def host(self, key: str) -> HostState | None:
        now, host = self._now(), self._hosts.get(key)
        if host is None:
            return None
        waiting = sum(entry.host is host for entry in self._waiting.values())
        return state_of(host, waiting, self._in_flight()[key], delay_of(host, self._options), now)

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

    def _host(self, key: str) -> Host:
        if key not in self._hosts:
            self._hosts[key] = Host(key, len(self._hosts))
        return self._hosts[key]

    def _in_flight(self) -> Counter[str]:
        return Counter(entry.host.key for entry in self._leased.values())

    def _enqueue(self, arrivals: Iterable[tuple[int, str, Request]], now: float) -> tuple[int, Refused]:
        touched, refused, most = [], Refused(), self._options.max_pages_per_host
        for fingerprint, key, request in arrivals:
            host = self._host(key)
            if fingerprint in self._seen:
                continue
            if most is not None:
                if self._taken[key] >= most:
                    refused += Refused(1, request.url)
                    continue
                self._taken[key] += 1
            self._seen.add(fingerprint)
            self._last_id += 1
            entry = Entry(self._last_id, request, fingerprint, host)
            self._wait(entry, now)
            touched.append(entry.host)
        self._settle(touched, now)
        return len(touched), refused

    def _wait(self, entry: Entry, now: float) -> None:
        """Put it back where its age puts it; the caller settles the host."""
        queue = entry.host.queues.setdefault(rules.priority_of(entry.request), Queue(due=now))
        heappush(queue.ids, entry.id)
        self._waiting[entry.id] = entry

    def _settle(self, hosts: Iterable[Host], now: float) -> None:
        settle(hosts, self._options, self._in_flight(), now)

    def _wake_delayed(self, now: float) -> None:
        due = sorted((e.due, e.id) for e in self._delayed.values() if e.due <= now)[: rules.SWEEP]
        entries = [self._delayed.pop(id) for _, id in due]
        for entry in entries:
            self._wait(entry, now)
        self._settle([entry.host for entry in entries], now)

    def _take_back_expired(self, now: float) -> None:
        lost = sorted((e.expires, e.id, e.token) for e in self._leased.values() if e.expires <= now)
        entries = [self._leased.pop(token) for _, _, token in lost[: rules.SWEEP]]
        for entry in entries:
            entry.cause, entry.error = "crash", rules.crash_error(entry.deliveries)
            if entry.deliveries >= self._options.max_deliveries:
                self._ended_visits += 1
                self._bury(entry, now)
            elif entry.deliveries <= rules.QUICK_RETURNS:
                self._wait(entry, now)
            else:
                entry.due = now + rules.crash_backoff(entry.deliveries, entry.token)
                self._delayed[entry.id] = entry
        self._settle([entry.host for entry in entries], now)

    def _budget_left(self) -> float:
        if self._options.max_pages is None:
            return inf
        return max(0, self._options.max_pages - self._ended_visits - len(self._leased))

    def _hand_out(self, count: float, now: float) -> list[Lease]:
        """Priorities from the highest; in each, the due hosts in turn, one request a round."""
        in_flight, taken = self._in_flight(), Counter[str]()
        leases: list[Lease] = []
        for priority in sorted({p for host in self._hosts.values() for p in host.queues}, reverse=True):
            queues = [(h, h.queues[priority]) for h in self._hosts.values() if priority in h.queues]
            queues.sort(key=lambda pair: (pair[1].due, pair[1].turn, pair[0].order))
            hosts = [host for host, queue in queues if queue.due <= now]
            while hosts and len(leases) < count:
                hosts = [
                    h
                    for h in hosts
                    if h.queues[priority].ids and taken[h.key] < room(h, self._options, in_flight[h.key])
                ]
                for host in hosts[: int(min(count - len(leases), len(hosts)))]:
                    entry = self._waiting.pop(heappop(host.queues[priority].ids))
                    leases.append(self._lease(entry, taken[host.key], now))
                    taken[host.key] += 1
        self._settle([self._hosts[key] for key in taken], now)
        return leases

    def _lease(self, entry: Entry, before: int, now: float) -> Lease:
        delay = delay_of(entry.host, self._options)
        starts_in = before * delay
        self._last_token += 1
        entry.token, entry.worker = self._last_token, self._worker
        entry.deliveries += 1
        entry.at = now
        entry.expires = now + starts_in + self._options.lease_seconds
        entry.host.last_start = now + starts_in
        entry.host.last_token = entry.token
        self._leased[entry.token] = entry
        return Lease(
            entry.request, entry.token, entry.fingerprint, entry.host.key, entry.deliveries, starts_in, delay
        )

    def _wake_in(self, now: float, *, only_expiries: bool) -> float | None:
        moments = [entry.expires for entry in self._leased.values()]
        if not only_expiries:
            moments += [entry.due for entry in self._delayed.values()]
            moments += [queue.due for host in self._hosts.values() for queue in host.queues.values()]
        first = min(moments, default=inf)
        return None if first == inf else min(max(0.0, first - now), self._options.lease_seconds)

    def _check(self, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[int]]:
        accepted: dict[int, Outcome] = {}
        stale = []
        for outcome in outcomes:
            token = outcome.lease.token
            if token in self._leased and token not in accepted:
                accepted[token] = outcome
            else:
                stale.append(token)
        return list(accepted.values()), stale

    def _conclude(self, entry: Entry, verdict: Verdict, now: float) -> Host:
        """Returns the host that it belongs to from now on; the caller settles it."""
        self._ended_visits += ends_a_visit(verdict)
        if isinstance(verdict, Done):
            return entry.host
        if isinstance(verdict, Moved):
            entry.request = rules.moved(entry.request, verdict.onward)
            entry.host = self._host(verdict.host)
            entry.deliveries -= 1
            self._wait(entry, now)
            return entry.host
        entry.cause, entry.error = verdict.cause, rules.storable(verdict.error)
        if isinstance(verdict, RetryLater):
            retries = entry.request.retry_count + verdict.costs_retry
            entry.request = msgspec.structs.replace(entry.request, retry_count=retries)
            entry.due = now + verdict.after
            self._delayed[entry.id] = entry
        else:
            self._bury(entry, now)
        return entry.host

    def _bury(self, entry: Entry, now: float) -> None:
        entry.at = now
        self._dead[entry.id] = entry

    def _give_back(self, tokens: Iterable[int]) -> None:
        now = self._clock()
        entries = [self._leased.pop(token) for token in tokens if token in self._leased]
        for entry in entries:
            entry.deliveries -= 1
            self._wait(entry, now)
        self._settle([entry.host for entry in entries], now)

    def _select_dead(self, cause: str | None, host: str | None, limit: int | None) -> list[Entry]:
        newest_first = sorted(self._dead.values(), key=lambda e: (e.at, e.id), reverse=True)
        chosen = [e for e in newest_first if cause in (None, e.cause) and host in (None, e.host.key)]
        return chosen[:limit]

    def _describe(self, entry: Entry, place: Mapping[int, Entry], now: float) -> Whereabouts:
        host, priority = entry.host, rules.priority_of(entry.request)
        if place is self._waiting:
            ahead = sum(
                e.host is host and (-rules.priority_of(e.request), e.id) < (-priority, entry.id)
                for e in self._waiting.values()
            )
            return rules.describe_waiting(ahead, host.key, priority, host.blocked_until, now)
        if place is self._delayed:
            return rules.describe_delayed(entry.due, entry.request.retry_count, entry.cause)
        if place is self._leased:
            return rules.describe_leased(entry.worker, entry.expires, entry.deliveries)
        return rules.describe_dead(entry.cause, entry.error, entry.deliveries, entry.at)
