"""The seams of silkline on one screen, and what each one promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from silkline.config import FrontierOptions
from silkline.events import Event
from silkline.outcome import (
    Added,
    Batch,
    Blocked,
    Committed,
    DeadItem,
    DeadLetter,
    Heartbeat,
    HostPace,
    HostState,
    Item,
    KeptValue,
    LeaseBatch,
    Outcome,
    Overview,
    Stats,
    Whereabouts,
)
from silkline.request import Request
from silkline.response import Response
from silkline.values import PolitenessBy

Positions = Mapping[str, str]
"""How far each sink is committed, by sink name; each sink knows how to read its own."""

Deliver = Callable[[Sequence[Outcome], Positions], Positions]
"""Make the items of these outcomes durable, starting at those positions; return the new ones.

Called by `Frontier.commit` between checking the tokens and committing, so that what is written and
what is committed are the same; and with the store's write lock held, so that processes that share an
output take turns. It may be called again with the same positions after a crash or a failed commit."""


Decide = Callable[[str, bytes | None, float], HostPace | None]
"""`decide(host, state, now)`: the host's pace from now on, or None to leave it as it is. state: of the pace
that it has, None where it has none. now: Unix seconds by the store's clock. See `Frontier.pace`."""


Resolve = Callable[[Collection[str]], Awaitable[Mapping[str, str]]]
"""`await resolve(names)`: the address that stands for each of these host names, if it has any."""


class DeadLetters(Protocol):
    """The requests of a frontier that were given up. They come to be in its `commit` and `lease`; here the
    operator deals with them. Raises as the frontier does.

    cause, host (a politeness key): only those of it.
    """

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        """At most `limit`, the newest first."""

    async def causes(self) -> Mapping[str, int]:
        """How many each cause has."""

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        """They become waiting again with their counts at zero, past the dedup. Returns how many."""

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        """Forget them; their URLs stay seen, and count as done. Returns how many."""


class DeadItems(Protocol):
    """The items of a frontier's pages that could not be delivered; such a page is done. Otherwise as
    `DeadLetters`."""

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadItem]:
        """At most `limit`, the newest first, those of one page in their order."""

    async def causes(self) -> Mapping[str, int]:
        """How many each cause has."""

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        """Their pages are waiting again, in their old place and past the dedup, for these items (see
        Request.redo); all the dead items of these pages are forgotten. At most `limit` pages; returns how
        many."""

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        """Forget them. Returns how many."""


class Frontier(Protocol):
    """Where requests live. Every request is in exactly one of waiting, delayed, leased, done, dead;
    each verb moves a whole batch in one atomic step. Times are the store's own clock.

    Any verb raises FrontierError when the store fails; then nothing of that call happened.
    """

    @property
    def worker(self) -> str:
        """This worker's id: who holds the leases that are handed out here."""

    async def open(self) -> None:
        """Connect, create or check the schema. Raises JobError for a foreign, newer or other job's store."""

    def fingerprint(self, url: str) -> int:
        """The identity of a GET of the URL, by the rules of the job (see `keys.KeyRules`)."""

    @property
    def politeness_by(self) -> PolitenessBy:
        """What the politeness keys of the job are; see FrontierOptions."""

    async def politeness_keys(self, urls: Sequence[str]) -> Sequence[str]:
        """What `Lease.host` is for each of these URLs. By "ip" it is found out and decided here, once for
        each host; `add` and `commit` do so for what was not asked about before, and may then take long."""

    @property
    def dead_letters(self) -> DeadLetters: ...

    @property
    def dead_items(self) -> DeadItems: ...

    async def close(self) -> None:
        """Give back what this worker still holds and disconnect. Idempotent."""

    async def add(self, requests: Sequence[Request]) -> Added:
        """Mark as seen and enqueue in one step; what was seen before is left alone."""

    async def lease(self, count: int) -> LeaseBatch:
        """Hand out at most `count` requests, highest priority first, whose hosts are due and have free slots.

        While another worker has lately got fewer than it asked for, a host with many free slots gives at most
        half of them: so all workers get their share of it, whoever asks first.

        Takes back expired leases first (a bounded number), which may make dead letters with cause "crash".
        """

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        """Heartbeat: prolong these leases. Returns the tokens that are no longer held."""

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        """Finish leases: record done, retry or dead, enqueue links, deliver items, store sink positions.

        All or nothing. Whether an outcome is a duplicate (see Outcome.aliases) is decided before `deliver`
        gets it. Outcomes with a stale token change nothing and are reported. Also with no outcomes
        at all `deliver` is called, which lets a sink finish its file.
        """

    async def release(self, tokens: Sequence[int]) -> None:
        """Give back leases that were not started: waiting again, not counted as delivered."""

    async def block_host(self, host: str, seconds: float) -> None:
        """Hand out nothing of `host`, a politeness key, for that long (an earlier, longer block stays)."""

    async def limit_host(
        self, host: str, *, delay: float | None = None, cap: int | None = None, only_raise: bool = False
    ) -> None:
        """Set one host's own minimum delay (seconds between starts) or cap (requests in flight). only_raise:
        leave a longer delay as it is; for one of several hosts that share a politeness key."""

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        """Decide how fast these hosts are asked, each in one atomic step: where others decide at the same
        time, `decide` is called again with what they left. A pace counts while FrontierOptions.ceiling is
        set, and survives restarts."""

    async def stats(self) -> Stats: ...

    async def positions(self) -> Positions: ...

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes, and those without items whose page another request is known to have, too (see
        Outcome.aliases): what `commit` would drop, as far as it can be told before. Changes nothing."""

    async def explain(self, url: str) -> Whereabouts: ...

    async def remember(self, facts: Mapping[str, str]) -> None:
        """Keep small facts about the job (its definition, when it ended)."""

    async def recall(self) -> Mapping[str, str]: ...

    async def heartbeat(self, beat: Heartbeat) -> Mapping[str, str]:
        """Say that this worker lives, and how it does; forgotten by `close`. Returns the live settings: raw
        text by name, whoever wrote them."""

    async def configure(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        """Set live settings, or unset those with None; returns all of them. Workers learn of it by their
        next heartbeat; what the texts mean is theirs to judge."""

    async def apply(self, options: FrontierOptions) -> None:
        """From now on hand out by these limits: per_host, delay, ceiling, max_pages, lease_seconds,
        max_deliveries, window. What else the options say is as it was at `open`."""

    async def overview(self, hosts: int = 10) -> Overview:
        """The job at this moment, with at most that many hosts. Counts a lot: not for a hot path."""

    async def blocked(self, hosts: int = 5) -> Blocked:
        """The hosts that are blocked, at most that many by name. Looks at all hosts: not for a hot path."""

    async def host(self, key: str) -> HostState | None:
        """One host, by its politeness key; None where the job has met none of that key."""

    def listen(self, news: Callable[[], None], trouble: Callable[[str], None]) -> None:
        """Call `news` on the event loop whenever others may have made work available; a frontier that hears
        nothing of others says by `LeaseBatch.wake_in` when to ask again. `trouble` gets a line for the user:
        the store is away and is waited for, it is back, it may lose data."""

    def leave(self, patience: float) -> None:
        """The worker is about to stop: wait for a store that is away so many seconds at most, in all."""

    async def keep(self, name: str, value: bytes, seconds: float) -> None:
        """Keep a small value for that long, for all workers, in place of an earlier one of that name.

        For what can be found out again (a host's robots.txt): a power cut may lose it.
        """

    async def kept(self, name: str) -> KeptValue | None:
        """What is kept under that name, and for how long still; None once its time is over."""


class Fetcher(Protocol):
    """Request -> Response. Raises FetchError only. If it has `async def close(self)`, that is called last."""

    async def fetch(self, request: Request) -> Response: ...


@runtime_checkable
class Adjustable(Protocol):
    """A fetcher that can follow live settings."""

    def adjust(self, *, timeout: float, visits: int) -> None:
        """From the next fetch on: seconds for a whole one, and how many visits may run at once."""


class Sink(Protocol):
    """Where items go. `write` and `finish` run in the frontier's thread, inside a commit (see Deliver)."""

    name: str
    """Stable identity of the output: the key of its committed position."""

    def open(self, position: str | None) -> None:
        """Check that the output can be written; cut what is past `position` (None: nothing committed yet).

        Raises ConfigError where the output is not usable or not this job's.
        """

    def encode(self, item: Mapping[str, Any]) -> Any:
        """Make what `write` will take of one item. Raises ItemError, which is the page's fault alone."""

    def write(self, items: Sequence[Item], position: str | None) -> str | None:
        """Write behind `position`, cutting off anything found there; durable when it returns the new one.

        None only where there were no items and nothing has to be known again.
        """

    def finish(self, position: str | None) -> str | None:
        """The job is complete: last touches to the output. Idempotent."""

    def close(self) -> None: ...


@runtime_checkable
class PageSink(Protocol):
    """A `Sink` of pages instead of items: an archive. Each page it takes becomes one Item of its own, with an
    index below 0, which counts as no item of the user's.

    Everything else is as in `Sink`: positions, threads, promises.
    """

    name: str

    def record(self, response: Response) -> Any:
        """What `write` will take of the page, whatever its status; None to leave it out. Must be quick, or
        an awaitable of that."""

    def open(self, position: str | None) -> None: ...

    def write(self, items: Sequence[Item], position: str | None) -> str | None: ...

    def finish(self, position: str | None) -> str | None: ...

    def close(self) -> None: ...


Output = Sink | PageSink


@runtime_checkable
class Warner(Protocol):
    """A sink that has something to say while the crawl goes on."""

    def warn_with(self, trouble: Callable[[str], None]) -> None:
        """From now on give `trouble` a line for the user, on the event loop."""


@runtime_checkable
class TypedSink(Protocol):
    """A sink with this set gets in `encode` what `sinks.record.fields_of` makes of an item."""

    typed: bool


class KeyedSink(Protocol):
    """Where items go that are told apart by `Item.identity`: a database, mostly. What is written again is
    replaced.

    Runs on the event loop, which it must not hold up. What it writes is durable *before* the commit, so that
    it may be written again after a crash, or before another worker's commit of the same page.
    """

    name: str
    """Shown to the user, and the key of `Item.data`; no password in it. Two sinks never share one."""

    batch: Batch

    async def open(self) -> None:
        """Connect, and check or create what is needed. Raises ConfigError where it cannot be used, and
        SinkAwayError where the server does not answer."""

    def encode(self, fields: Mapping[str, Any]) -> Any:
        """Make what `write` will take of an item's fields (see `sinks.record.fields_of`). Raises ItemError,
        which is the item's fault alone."""

    async def write(self, items: Sequence[Item]) -> None:
        """Insert or replace all of them in one step, durable when it returns; no identity is there twice.

        Raises SinkAwayError (nothing or all of it happened: called again later), RowsRefused (nothing
        happened; called again with fewer), and SinkError where there is no point in trying again.
        """

    async def trim(self, pages: Mapping[int, int]) -> None:
        """Remove rows without a key of their own that earlier visits of these pages left: by fingerprint,
        those whose index is not below the number. Raises as `write` does."""

    async def close(self) -> None: ...


Guard = Callable[[str, str, int], None]
"""`guard(host, ip, port)` is asked before a socket connects: the host as in the URL, the address it has led
to. Raises BlockedError where that must not be. A connection to a proxy is not asked about."""

CallNext = Callable[[Request], Awaitable[Response]]
Middleware = Callable[[Request, CallNext], Awaitable[Response]]
"""`async def middleware(request, call_next) -> Response`: change either one, or answer itself."""

Hook = Callable[[Event], None]
"""Told of every event, on the event loop; must be quick and must not raise."""


class Clock(Protocol):
    def __call__(self) -> float:
        """Now, in Unix seconds."""
