"""Where the memory frontier has each request, and how one comes from a place to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import inf

from silkline.config import FrontierOptions
from silkline.frontier import rules
from silkline.frontier.dead_pages import DeadPage
from silkline.frontier.memory_limits import delay_of, room, settle
from silkline.frontier.memory_state import Entry, Host, Queue
from silkline.outcome import Done, Lease, Moved, Outcome, Refused, RetryLater, Verdict, ends_a_visit
from silkline.request import Request


class Places:
    """One place: an entry is waiting, in a queue of its host too, or in exactly one of delayed, leased and
    dead. What is seen and is in none of them is done, if it is no alias."""

    def __init__(self, options: FrontierOptions, worker: str) -> None:
        self.options = options
        self._worker = worker
        self._last_id = 0
        self._last_token = 0
        self._ended_visits = 0
        self.seen: set[int] = set()
        self.aliases: set[int] = set()  # those of the seen that were never a request of their own
        self.taken: Counter[str] = Counter()  # of each host's budget
        self.hosts: dict[str, Host] = {}
        self.waiting: dict[int, Entry] = {}
        self.delayed: dict[int, Entry] = {}
        self.leased: dict[int, Entry] = {}  # by token
        self.dead: dict[int, Entry] = {}
        self.dead_pages: dict[int, DeadPage] = {}  # by entry, which is done

    def host(self, key: str) -> Host:
        if key not in self.hosts:
            self.hosts[key] = Host(key, len(self.hosts))
        return self.hosts[key]

    def in_flight(self) -> Counter[str]:
        return Counter(entry.host.key for entry in self.leased.values())

    def enqueue(self, arrivals: Iterable[tuple[int, str, Request]], now: float) -> tuple[int, Refused]:
        """How many were new, and those that their hosts' budgets have no room for."""
        touched, refused, most = [], Refused(), self.options.max_pages_per_host
        for fingerprint, key, request in arrivals:
            host = self.host(key)
            if fingerprint in self.seen:
                continue
            if most is not None:
                if self.taken[key] >= most:
                    refused += Refused(1, request.url)
                    continue
                self.taken[key] += 1
            self.seen.add(fingerprint)
            self._last_id += 1
            entry = Entry(self._last_id, request, fingerprint, host)
            self.wait(entry, now)
            touched.append(entry.host)
        self.settle(touched, now)
        return len(touched), refused

    def wait(self, entry: Entry, now: float) -> None:
        """Put it back where its age puts it; the caller settles the host."""
        queue = entry.host.queues.setdefault(rules.priority_of(entry.request), Queue(due=now))
        heappush(queue.ids, entry.id)
        self.waiting[entry.id] = entry

    def settle(self, hosts: Iterable[Host], now: float) -> None:
        settle(hosts, self.options, self.in_flight(), now)

    def wake_delayed(self, now: float) -> None:
        due = sorted((e.due, e.id) for e in self.delayed.values() if e.due <= now)[: rules.SWEEP]
        entries = [self.delayed.pop(id) for _, id in due]
        for entry in entries:
            self.wait(entry, now)
        self.settle([entry.host for entry in entries], now)

    def take_back_expired(self, now: float) -> None:
        lost = sorted((e.expires, e.id, e.token) for e in self.leased.values() if e.expires <= now)
        entries = [self.leased.pop(token) for _, _, token in lost[: rules.SWEEP]]
        for entry in entries:
            entry.cause, entry.error = "crash", rules.crash_error(entry.deliveries)
            if entry.deliveries >= self.options.max_deliveries:
                self._ended_visits += 1
                self._bury(entry, now)
            elif entry.deliveries <= rules.QUICK_RETURNS:
                self.wait(entry, now)
            else:
                entry.due = now + rules.crash_backoff(entry.deliveries, entry.token)
                self.delayed[entry.id] = entry
        self.settle([entry.host for entry in entries], now)

    def budget_left(self) -> float:
        """How many more may be leased, by `max_pages`."""
        if self.options.max_pages is None:
            return inf
        return max(0, self.options.max_pages - self._ended_visits - len(self.leased))

    @property
    def has_its_pages(self) -> bool:
        """Whether `max_pages` visits have ended."""
        return self.options.max_pages is not None and self._ended_visits >= self.options.max_pages

    def hand_out(self, count: float, now: float) -> list[Lease]:
        """Priorities from the highest; in each, the due hosts in turn, one request a round."""
        in_flight, taken = self.in_flight(), Counter[str]()
        leases: list[Lease] = []
        for priority in sorted({p for host in self.hosts.values() for p in host.queues}, reverse=True):
            queues = [(h, h.queues[priority]) for h in self.hosts.values() if priority in h.queues]
            queues.sort(key=lambda pair: (pair[1].due, pair[1].turn, pair[0].order))
            hosts = [host for host, queue in queues if queue.due <= now]
            while hosts and len(leases) < count:
                hosts = [
                    h
                    for h in hosts
                    if h.queues[priority].ids and taken[h.key] < room(h, self.options, in_flight[h.key])
                ]
                for host in hosts[: int(min(count - len(leases), len(hosts)))]:
                    entry = self.waiting.pop(heappop(host.queues[priority].ids))
                    leases.append(self._lease(entry, taken[host.key], now))
                    taken[host.key] += 1
        self.settle([self.hosts[key] for key in taken], now)
        return leases

    def _lease(self, entry: Entry, before: int, now: float) -> Lease:
        delay = delay_of(entry.host, self.options)
        starts_in = before * delay
        self._last_token += 1
        entry.token, entry.worker = self._last_token, self._worker
        entry.deliveries += 1
        entry.at = now
        entry.expires = now + starts_in + self.options.lease_seconds
        entry.host.last_start = now + starts_in
        entry.host.last_token = entry.token
        self.leased[entry.token] = entry
        return Lease(
            entry.request, entry.token, entry.fingerprint, entry.host.key, entry.deliveries, starts_in, delay
        )

    def wake_in(self, now: float, *, only_expiries: bool) -> float | None:
        moments = [entry.expires for entry in self.leased.values()]
        if not only_expiries:
            moments += [entry.due for entry in self.delayed.values()]
            moments += [queue.due for host in self.hosts.values() for queue in host.queues.values()]
        first = min(moments, default=inf)
        return None if first == inf else min(max(0.0, first - now), self.options.lease_seconds)

    def give_back(self, tokens: Iterable[int], now: float) -> None:
        entries = [self.leased.pop(token) for token in tokens if token in self.leased]
        for entry in entries:
            entry.deliveries -= 1
            self.wait(entry, now)
        self.settle([entry.host for entry in entries], now)

    def check(self, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[int]]:
        """Those whose leases are held, and the tokens of the others."""
        accepted: dict[int, Outcome] = {}
        stale = []
        for outcome in outcomes:
            token = outcome.lease.token
            if token in self.leased and token not in accepted:
                accepted[token] = outcome
            else:
                stale.append(token)
        return list(accepted.values()), stale

    def conclude(self, entry: Entry, verdict: Verdict, now: float) -> Host:
        """Put an entry that is leased no more where the verdict says. Returns the host that it belongs to
        from now on; the caller settles it."""
        self._ended_visits += ends_a_visit(verdict)
        if isinstance(verdict, Done):
            return entry.host
        if isinstance(verdict, Moved):
            entry.request = rules.moved(entry.request, verdict.onward)
            entry.host = self.host(verdict.host)
            entry.deliveries -= 1
            self.wait(entry, now)
            return entry.host
        entry.cause, entry.error = verdict.cause, rules.storable(verdict.error)
        if isinstance(verdict, RetryLater):
            entry.request = rules.retried(entry.request, cost=verdict.costs_retry)
            entry.deliveries -= not verdict.costs_retry
            entry.due = now + verdict.after
            self.delayed[entry.id] = entry
        else:
            self._bury(entry, now)
        return entry.host

    def _bury(self, entry: Entry, now: float) -> None:
        entry.at = now
        self.dead[entry.id] = entry
