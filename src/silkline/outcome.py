"""Leases, and what a visit made of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from silkline.request import Onward, Request

MASK = 2**64 - 1

REFUSALS = frozenset({"robots", "out_of_scope", "content_type"})
"""Causes of dead letters that are no failures: the crawl's own rules keep it from the page."""

UNASKED = frozenset({"robots", "robots_unreachable"})
"""Causes of dead letters for which no page was asked: `FrontierOptions.max_pages` does not count them."""


class Lease(msgspec.Struct, frozen=True):
    """A request held by one worker until a deadline.

    token: no other lease of this frontier ever has it; a commit with an old one changes nothing.
    host: the politeness key.
    deliveries: how often the request was leased since it was added or resent, this time included.
    starts_in: seconds from the moment the lease was given until the host allows the fetch.
    delay: seconds that the host wants between two starts.
    """

    request: Request
    token: int
    fingerprint: int
    host: str
    deliveries: int = 1
    starts_in: float = 0.0
    delay: float = 0.0


class LeaseBatch(msgspec.Struct, frozen=True):
    """What `Frontier.lease` gave.

    wake_in: where nothing (more) could be given, seconds until it is worth asking again: the next due
        host, delayed request or expiring lease. None: only a commit or an add can change anything.
    finished: waiting + delayed + leased = 0.
    budget_spent: so many visits have ended as the page budget has (see FrontierOptions.max_pages), whatever
        workers with another budget still hold.
    fell_back: the store has lost commits of this worker that it had confirmed: what was known from them, such
        as which URLs it has seen, counts no more.
    """

    leases: tuple[Lease, ...] = ()
    wake_in: float | None = None
    finished: bool = False
    budget_spent: bool = False
    fell_back: bool = False


class Item(msgspec.Struct, frozen=True):
    """One row of the user's. Its identity is its own key, or else (fingerprint of its request, index on
    that page).

    data: what every sink's `encode` made of it, by sink name; a sink that is not in there does not get it.
    key: the item's own stable key, such as a product's number; None where it has none.
    size: about how many bytes it takes. fields: as the handler gave them. Only where a keyed sink is.
    missed: its page is visited again for its dead items; the items that a file has of the page already stay.
    """

    fingerprint: int
    index: int
    data: Mapping[str, Any]
    key: str | None = None
    size: int = 0
    fields: Mapping[str, Any] | None = None
    missed: bool = False

    @property
    def identity(self) -> str:
        """What a keyed sink tells rows apart by."""
        return self.key if self.key is not None else f"{self.fingerprint & MASK:016x}-{self.index}"


class DeadItem(msgspec.Struct, frozen=True):
    """An item that was not delivered, kept until it is sent again or dropped; its page is done all the same.

    cause: "item" (no output can hold it, or a field is of the wrong type), "step" (a pipeline step raised),
    "refused" (a database would not take the row). error: why, in one line. record: the item as JSON text,
    as far as it can be said. sink: the output that refused it, "" for all of them. at: Unix seconds, set by
    the commit. Of a page none of these is twice: fingerprint, index, sink.
    """

    fingerprint: int
    index: int
    url: str
    cause: str
    error: str
    record: str
    sink: str = ""
    at: float = 0.0


class Batch(msgspec.Struct, frozen=True):
    """How much a sink likes to get at once: it waits for so many items or bytes, or so many seconds."""

    count: int = 1_000
    bytes: int = 8 * 1024 * 1024
    seconds: float = 0.2


class Done(msgspec.Struct, frozen=True):
    """The page is finished."""


class RetryLater(msgspec.Struct, frozen=True):
    """Visit again in `after` seconds. costs_retry: whether `retry_count` grows by it; else `spared` does, and
    the lease counts as no delivery: those that count are for pages that kill their workers."""

    after: float
    cause: str
    error: str
    costs_retry: bool = True


class Dead(msgspec.Struct, frozen=True):
    """Give up on the request: it becomes a dead letter."""

    cause: str
    error: str


class Moved(msgspec.Struct, frozen=True):
    """A redirect has led to where the request has to wait for its turn: it is waiting at `host`, a politeness
    key, before those that have not been asked for yet. The lease counts as no delivery."""

    host: str
    onward: Onward


Verdict = Done | RetryLater | Dead | Moved


def ends_a_visit(verdict: Verdict) -> bool:
    """Whether `FrontierOptions.max_pages` counts it."""
    return isinstance(verdict, Done) or (isinstance(verdict, Dead) and verdict.cause not in UNASKED)


class Alias(msgspec.Struct, frozen=True):
    """Another URL of a page: its host as in `url.host_of`, and its fingerprint."""

    host: str
    fingerprint: int


class Outcome(msgspec.Struct, frozen=True):
    """What one visit made of one lease. Items and links are only kept if the lease still holds."""

    lease: Lease
    verdict: Verdict
    items: tuple[Item, ...] = ()
    links: tuple[Request, ...] = ()
    aliases: tuple[Alias, ...] = ()
    """Further URLs of the page, such as what it was redirected to. Where the verdict is Done they become seen
    with the commit. Where one of them was seen before, the page is a duplicate: its items are dropped, for
    they are, or will be, those of the other request."""
    block_host: float = 0.0
    """Seconds for which nobody may be handed a request of this host (Retry-After); 0 for none."""
    dead_items: tuple[DeadItem, ...] = ()
    """Items that could not be delivered: kept with the commit where the verdict is Done."""


class Refused(msgspec.Struct, frozen=True):
    """Links that were not taken, for one reason: how many, and the URL of one."""

    count: int = 0
    example: str = ""

    def __add__(self, other: Refused) -> Refused:
        return Refused(self.count + other.count, self.example or other.example)


NONE_REFUSED = Refused()


class Added(msgspec.Struct, frozen=True):
    """Counts of one `add`."""

    added: int = 0
    duplicate: int = 0
    refused: Refused = NONE_REFUSED
    """New ones, whose hosts have `max_pages_per_host` already."""


class Committed(msgspec.Struct, frozen=True):
    """The outcomes that counted, duplicates (see Outcome.aliases) without items and dead items; the tokens of
    those that came too late."""

    accepted: tuple[Outcome, ...] = ()
    stale: tuple[int, ...] = ()
    added: int = 0
    """Links of the accepted outcomes that were new."""
    duplicates: int = 0
    """Accepted outcomes whose items were dropped."""
    refused: Refused = NONE_REFUSED
    """New links whose hosts have `max_pages_per_host` already."""


class Stats(msgspec.Struct, frozen=True):
    """Sizes of the frontier's structures, counted, not kept."""

    waiting: int = 0
    delayed: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0
    inbox: int = 0
    """Tasks that other programs have pushed and no worker has looked at yet."""

    @property
    def open(self) -> int:
        return self.waiting + self.delayed + self.leased + self.inbox


class DeadLetter(msgspec.Struct, frozen=True):
    """A request that was given up, kept until resent or dropped. `at` is Unix seconds."""

    request: Request
    fingerprint: int
    cause: str
    error: str
    deliveries: int
    worker: str
    at: float


class Whereabouts(msgspec.Struct, frozen=True):
    """Where a request is now. place: waiting, delayed, leased, done, dead or "never seen"; detail: why.
    host: the politeness key under which it is there, where redirects have led it; else ""."""

    place: str
    detail: str = ""
    host: str = ""


class Heartbeat(msgspec.Struct, frozen=True):
    """What a worker says of itself every two seconds.

    host, pid: where its process runs. started: Unix seconds. pages, items: kept since then.
    in_flight: visits that are running. ready: leased, but not started.
    rate: pages per second, lately. paused: it starts nothing, because a live setting says so.
    """

    host: str
    pid: int
    started: float
    pages: int = 0
    items: int = 0
    in_flight: int = 0
    ready: int = 0
    rate: float = 0.0
    paused: bool = False


class WorkerState(msgspec.Struct, frozen=True):
    """A worker that lives, as far as is known. seen: seconds since its last heartbeat."""

    id: str
    seen: float
    beat: Heartbeat


class HostState(msgspec.Struct, frozen=True):
    """One host, by its politeness key.

    delay, cap: its own; None where the job's hold.
    pace: what its answers have led to, as (cap, delay); None where nothing has. pace_state:
        see HostPace.state.
    due_in: seconds until delay and block let another request start; 0 for now.
    blocked_for: seconds for which it is blocked still; 0 for not at all.
    """

    key: str
    waiting: int = 0
    leased: int = 0
    delay: float | None = None
    cap: int | None = None
    due_in: float = 0.0
    blocked_for: float = 0.0
    pace: tuple[int, float] | None = None
    pace_state: bytes = b""


class Blocked(msgspec.Struct, frozen=True):
    """Hosts that are to be left alone and have something waiting or delayed: how many, and the keys of the
    first of them, those that are blocked longest first. seconds: until the last may be asked again."""

    count: int = 0
    hosts: tuple[str, ...] = ()
    seconds: float = 0.0


def blocked_of(found: Sequence[tuple[str, float]], most: int, now: float) -> Blocked:
    """found: keys, each with the moment until which it is blocked."""
    longest = sorted(found, key=lambda pair: (-pair[1], pair[0]))
    seconds = longest[0][1] - now if longest else 0.0
    return Blocked(len(longest), tuple(key for key, _ in longest[:most]), seconds)


class HostPace(msgspec.Struct, frozen=True):
    """How fast a host is asked because of what it answers; beside its own limits and the job's.

    cap: requests in flight at most. delay: seconds between two starts at least. block: seconds from now for
    which nothing is handed out. state: what the next decision needs, not empty; the frontier only keeps it.
    """

    cap: int
    delay: float = 0.0
    block: float = 0.0
    state: bytes = b""


class Overview(msgspec.Struct, frozen=True):
    """A job at one moment, for its operator.

    hosts: those with the most waiting first. host_count: how many have something waiting or leased.
    workers: by id. oldest_lease: seconds since it was given; None if nothing is leased.
    with_dead_items: of the pages that are done, those that have some.
    live: the live settings, raw, by name. notes: lines about the store, such as its dedup's error chance.
    """

    stats: Stats
    hosts: tuple[HostState, ...] = ()
    host_count: int = 0
    workers: tuple[WorkerState, ...] = ()
    oldest_lease: float | None = None
    with_dead_items: int = 0
    live: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


class KeptValue(msgspec.Struct, frozen=True):
    """A value of `Frontier.keep`, and the seconds for which it will still be kept."""

    value: bytes
    seconds: float
