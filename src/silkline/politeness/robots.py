"""robots.txt of the hosts of a crawl (RFC 9309): read once for all workers, obeyed before each fetch.

A host's file is read when its first page is about to be fetched. While it cannot be had the host's pages
wait, without being counted as tried; they are given up when it stays so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic

import msgspec

from silkline.errors import FetchError, NotCachedError, Postponed, RobotsRefused, RobotsUnreachable
from silkline.events import Trouble
from silkline.politeness.robots_fetch import DAY, RetryAfter, ask, robots_url
from silkline.politeness.robots_known import Entry, Known, Memory, decode, encode
from silkline.protocols import CallNext, Frontier, Hook
from silkline.request import Request
from silkline.response import Response
from silkline.url import host_of

SlowDown = Callable[[str, float], None]
"""`slow_down(host, delay)`: this worker's leases of the host are to be started `delay` seconds apart."""

FIRST_WAIT = 2.0
LONGEST_WAIT = 300.0
"""Seconds between two attempts while a robots.txt is unreachable: doubled each time."""

GIVEN_UP = 3_600.0
"""Seconds for which pages fail at once after that, before it is tried anew."""

UNREACHED = 5.0
"""Seconds for which a host that could not be reached at all is not asked again."""

MOST_KEYS = 10_000

STALE = DAY
"""Seconds for which an answer is kept beyond its time, for when the file cannot be read again (2.4)."""

_reading: ContextVar[bool] = ContextVar("_reading", default=False)
"""Set in the task that reads a robots.txt: its redirects need no leave of that same robots.txt."""


class RobotsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """agent: the product token. delay: the job's own, seconds. max_delay: the longest that a robots.txt may
    ask for. patience: seconds for which pages wait for a robots.txt that cannot be had."""

    agent: str = "silkline"
    delay: float = 0.0
    max_delay: float = 60.0
    patience: float = 60.0


class RobotsVerdict(msgspec.Struct, frozen=True):
    """What robots.txt says of one URL.

    rule: the rule that decides, "" where none matches; line: where it stands in `source`, the file's URL.
    crawl_delay: seconds that the file asks for between two requests. note: why there are no rules.
    """

    allowed: bool
    source: str
    rule: str = ""
    line: int = 0
    crawl_delay: float | None = None
    note: str = ""

    def __str__(self) -> str:
        word = "allowed" if self.allowed else "refused"
        if self.rule:
            return f"{word} by line {self.line} of {self.source}: {self.rule}"
        return f"{word}: {self.source}: {self.note or 'no rule matches'}"


class _Flight:
    """A robots.txt that is being looked up, for all who wait for it. passed: one of them has gone on."""

    def __init__(self, task: asyncio.Task[Entry]) -> None:
        self.task = task
        self.passed = False


class Robots:
    """The robots.txt of all hosts that a worker meets. Call `use` before anything else.

    tell: hears of hosts that ask for a long delay or whose file cannot be had. retry_after: reads that
    header.
    """

    def __init__(
        self, frontier: Frontier, options: RobotsOptions, *, tell: Hook, retry_after: RetryAfter
    ) -> None:
        self._frontier = frontier
        self._options = options
        self._tell = tell
        self._retry_after = retry_after
        self._memory = Memory()
        self._flights: dict[str, _Flight] = {}
        self._delays: dict[str, float] = {}
        self._admitted = ""
        self._fetch: CallNext
        self._slow_down: SlowDown

    def use(self, fetch: CallNext, slow_down: SlowDown) -> None:
        """fetch: with all middleware, for it is a fetch like others."""
        self._fetch = fetch
        self._slow_down = slow_down

    async def admit(self, request: Request, key: str) -> None:
        """Return if the page may be fetched now, where redirects have led it so far. key: the politeness key,
        which several hosts may share.

        Raises RobotsRefused; Postponed while the file cannot be had, and where the host's delay has just
        been learnt and another page goes first; RobotsUnreachable when that has lasted too long; and the
        FetchError of a host that cannot be reached at all.
        """
        url = request.target
        host = host_of(url)
        entry, flight = self._memory.get(host), None
        if entry is None:
            entry, flight = await self._look_up(host, key)
        if (wait := self._check(entry, url)) is not None:
            raise Postponed(f"{entry.known.source}: {entry.known.note}; tried again in {wait:.0f} s")
        if flight is not None and self._delay(entry.known):
            if flight.passed:
                raise Postponed(f"{entry.known.source} asks for a delay")
            flight.passed = True
        self._admitted = url

    async def hop(self, request: Request, call_next: CallNext) -> Response:
        """Middleware around each hop: where a redirect leads needs leave, too."""
        # The first hop comes right after `admit`, most of the time.
        if request.url is not self._admitted and not _reading.get():
            host = host_of(request.url)
            entry = self._memory.get(host)
            if entry is None:
                entry, _ = await self._look_up(host, await self._key(request.url))
            if (wait := self._check(entry, request.url)) is not None:
                raise RobotsUnreachable(f"{entry.known.source}: {entry.known.note}", wait)
        return await call_next(request)

    async def verdict(self, url: str) -> RobotsVerdict:
        """What robots.txt says of a URL; it is read if need be. Raises FetchError for an unreachable host."""
        host = host_of(url)
        entry = self._memory.get(host)
        if entry is None:
            entry, _ = await self._look_up(host, await self._key(url))
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        return verdict_of(entry.known, url)

    async def close(self) -> None:
        """Stop reading."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _check(self, entry: Entry, url: str) -> float | None:
        """None if the URL may be fetched, the seconds to wait if that is not known; raises if it may not."""
        known = entry.known
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        if known.failures:
            if not known.given_up:
                return max(0.0, entry.until - monotonic())
            raise RobotsUnreachable(f"{known.source}: {known.note}, for {known.waited:.0f} s")
        if not known.robots.allows(url):
            raise RobotsRefused(str(verdict_of(known, url)))
        return None

    async def _key(self, url: str) -> str:
        (key,) = await self._frontier.politeness_keys((url,))
        return key

    async def _look_up(self, host: str, key: str) -> tuple[Entry, _Flight]:
        """What all who ask at the same time get; it goes on when one of them is cancelled."""
        flight = self._flights.get(host)
        if flight is None:
            flight = _Flight(asyncio.create_task(self._find(host, key), name=f"robots.txt {host}"))
            self._flights[host] = flight
            flight.task.add_done_callback(lambda _: self._flights.pop(host))
        return await asyncio.shield(flight.task), flight

    async def _find(self, host: str, key: str) -> Entry:
        _reading.set(True)
        name = kept_name(self._options.agent, host)
        kept = await self._frontier.kept(name)
        before = None if kept is None else decode(kept.value)
        if kept is not None and before is not None and kept.seconds > STALE:
            entry = Entry(before, kept.seconds - STALE)
        else:
            entry = await self._read(host, before)
            if entry.error is None:
                fresh = entry.until - monotonic()
                await self._frontier.keep(name, encode(entry.known), fresh + STALE)
                await self._announce(key, entry.known, before, fresh)
        self._memory.put(host, entry)
        if delay := self._delay(entry.known):
            self._slow_down(key, self._longest(key, delay))
        return entry

    async def _read(self, host: str, before: Known | None) -> Entry:
        began = monotonic()
        try:
            answer = await ask(self._fetch, host, self._options.agent, self._retry_after)
        except FetchError as error:
            return Entry(Known(robots_url(host), note=str(error)), UNREACHED, error=error)
        if answer.reached:
            return Entry(answer.known, answer.seconds)
        if before is not None and not before.failures:
            # Better the rules of yesterday than none (RFC 9309, section 2.4).
            return Entry(before, max(LONGEST_WAIT, answer.seconds))
        goes_on = before is not None and not before.given_up
        failures, waited = (before.failures, before.waited) if before and goes_on else (0, 0.0)
        waited += monotonic() - began
        left = self._options.patience - waited
        wait = max(min(FIRST_WAIT * 2.0 ** min(failures, 20), LONGEST_WAIT, left), answer.seconds)
        known = msgspec.structs.replace(
            answer.known, failures=failures + 1, waited=waited + max(wait, 0.0), given_up=left <= 0
        )
        return Entry(known, GIVEN_UP if known.given_up else wait)

    async def _announce(self, key: str, known: Known, before: Known | None, seconds: float) -> None:
        """Make what was read count for all workers, and tell the operator what is out of the ordinary."""
        options = self._options
        if known.given_up:
            self._tell(Trouble(f"{known.source} cannot be had ({known.note}): its host's pages are given up"))
        elif known.failures:
            await self._frontier.block_host(key, seconds)
            if known.failures == 1:
                self._tell(Trouble(f"{known.source} cannot be had ({known.note}): its host's pages wait"))
        delay = self._delay(known)
        if delay or (before is not None and self._delay(before)):
            # Of several hosts with one key, the one that asks for most is listened to.
            shared = self._frontier.politeness_by != "host"
            await self._frontier.limit_host(key, delay=max(delay, options.delay), only_raise=shared)
        if (known.robots.delay or 0.0) > options.max_delay:
            self._tell(
                Trouble(
                    f"{known.source} asks for {known.robots.delay:g} s between two requests; "
                    f"they are {options.max_delay:g} s apart (max_delay)"
                )
            )

    def _longest(self, key: str, delay: float) -> float:
        """What the hosts of this key that this worker knows ask for."""
        if self._frontier.politeness_by == "host":
            return delay
        if len(self._delays) >= MOST_KEYS:
            self._delays.clear()
        self._delays[key] = max(delay, self._delays.get(key, 0.0))
        return self._delays[key]

    def _delay(self, known: Known) -> float:
        """Seconds between two starts that robots.txt asks for, where it is more than the job's own delay."""
        asked = min(known.robots.delay or 0.0, self._options.max_delay)
        return asked if asked > self._options.delay else 0.0


class StoredRobots(Robots):
    """Where what is stored is replayed and nothing is fetched: nobody needs leave for that. But a page that
    is not stored because robots.txt has refused it is refused again."""

    async def admit(self, request: Request, host: str) -> None:
        """Every page may be looked for."""

    async def hop(self, request: Request, call_next: CallNext) -> Response:
        """Raises RobotsRefused in place of NotCachedError, where what is known of robots.txt says so."""
        try:
            return await call_next(request)
        except NotCachedError:
            if not _reading.get():
                await self._explain(request.url)
            raise

    async def _explain(self, url: str) -> None:
        try:
            verdict = await self.verdict(url)
        except FetchError:
            return  # it is not stored, either
        if verdict.rule and not verdict.allowed:
            raise RobotsRefused(str(verdict))

    async def _announce(self, host: str, known: Known, before: Known | None, seconds: float) -> None:
        """Nobody is asked, so there is nothing to wait for."""

    def _delay(self, known: Known) -> float:
        return 0.0


def kept_name(agent: str, host: str) -> str:
    """Under which a host's robots.txt is kept in the frontier."""
    return f"robots {agent.lower()} {host}"


async def recalled(frontier: Frontier, agent: str, url: str) -> RobotsVerdict | None:
    """What the robots.txt that the job has read says of a URL; None where it has read none lately. Fetches
    nothing. Raises BadUrlError."""
    kept = await frontier.kept(kept_name(agent, host_of(url)))
    known = None if kept is None else decode(kept.value)
    return None if known is None else verdict_of(known, url)


def verdict_of(known: Known, url: str) -> RobotsVerdict:
    rule = known.robots.deciding(url)
    return RobotsVerdict(
        allowed=not known.failures and known.robots.allows(url),
        source=known.source,
        rule="" if rule is None else str(rule),
        line=0 if rule is None else rule.line,
        crawl_delay=known.robots.delay,
        note=known.note,
    )
