"""Fetch through the proxies that work: a middleware around the fetcher."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import NoReturn

import msgspec

from silkline.errors import (
    BannedError,
    ConnectError,
    DnsError,
    FetchError,
    FetchTimeout,
    NoProxyError,
    ProtocolError,
    ProxyError,
    TlsError,
)
from silkline.fetch import leaving
from silkline.fetch.bans import Bans, may_be_the_proxys
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.proxies.choice import Choice
from silkline.fetch.proxies.health import Health
from silkline.fetch.proxies.proxy import Proxy
from silkline.fetch.proxies.roster import Roster, Tell
from silkline.fetch.proxies.sources import Source
from silkline.protocols import CallNext, Clock
from silkline.request import Request
from silkline.response import Response
from silkline.url import host_of

TRIES = 3
"""Proxies that one visit tries at most."""

AGREED = 2
"""Proxies, of which one is known to work, that have to say the same until it is the site's answer."""

MAX_WAIT = 20.0
"""Seconds that a visit waits for a proxy to come back, lest a crawl churns through its requests."""
MAX_WAITS = 3

MAX_TOLD = 100
"""Different lines, such as of proxies with wrong credentials, in a run."""

PATIENCE_AT_FIRST = 120.0
PATIENCE = 3_600.0
"""Seconds in which no proxy works, until a visit that finds none costs a retry: before any one ever worked,
which is most likely a mistake in the settings, and after."""

_PERHAPS_THE_PROXYS = (ProxyError, FetchTimeout, ConnectError, DnsError, ProtocolError, TlsError)
"""What a request through a dying proxy comes to, but one for a bad site, too."""

REGION = "region:"


class ProxyPool:
    """Chooses a proxy for each request that has none, by how well it works for the request's host.

    A proxy that fails rests, longer each time, and the request goes through another one at once, at most
    TRIES in all. So it does where an HTTP proxy answers with 502, 503 or 504, as a site may, too: what AGREED
    or all that are tried say is the site's answer. Where an answer is a ban (see `Bans`) another one is tried
    as well: that it was one is certain when the other gets through, or after several in a row. A session that
    is named keeps its proxy for a host as long as that works; its ban is for the owner of the session to
    answer.

    source: where the proxies come from. region: a tag that they must have, "" for all. sessions: the job's,
    so that one that begins anew gets another proxy. tell: gets a line when no proxy works any more, or
    something is wrong with the source. failed: gets the label of a proxy and what went wrong, each time one
    does not do its part.

    A Request says `proxy=""` to go without one, `proxy="region:de"` for one with that tag, or gives a URL.
    """

    def __init__(
        self,
        source: Source,
        *,
        region: str = "",
        bans: Bans | None = None,
        sessions: Sessions | None = None,
        tell: Tell | None = None,
        failed: Callable[[str, str], None] | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self.tell = tell or _silently
        self.clock = clock
        self.bans = bans or Bans()
        self.health = Health(clock)
        self.choice = Choice(self.health, sessions, clock)
        self.roster = Roster(source, lambda line: self.tell(line), clock)
        self._failed = failed
        self._region = region.lower()
        self._down = False
        self._told: set[str] = set()
        self._waiting: list[asyncio.Future[None]] = []

    async def __call__(self, request: Request, call_next: CallNext) -> Response:
        """Raises what the fetch raises, NoProxyError where no proxy works, and BannedError."""
        tag = self._region
        if request.proxy is not None:
            if not request.proxy.startswith(REGION):
                return await call_next(request)
            tag = request.proxy.removeprefix(REGION).lower()
        await self.roster.refresh(call_next)
        return await _Visit(self, request, tag).run(call_next)

    async def wait(self, host: str, tag: str) -> None:
        """Until a proxy may be used again. Raises ProxyError where there is none, or that takes too long, and
        Postponed where the worker is about to stop."""
        among = self.roster.tagged(tag)
        if not among and len(self.roster):
            line = f"none of {len(self.roster)} proxies has the tag {tag!r}"
            self.tell_once(line)
            raise ProxyError(line)
        seconds = self.choice.seconds_until(among, host)
        if seconds is None:
            line, seconds = self.roster.trouble or "there is no proxy", 2 * MAX_WAIT
        else:
            line = f"none of {len(among)} proxies works for {host} at the moment"
        if seconds > 0 and not self._down:
            self._down = True
            self.tell(f"{line}; its pages wait until one does")
        await leaving.wait(min(seconds, MAX_WAIT))
        if seconds > MAX_WAIT:
            raise self.outage(line, seconds - MAX_WAIT)

    async def one_is_done(self) -> None:
        """Until a request through any proxy has ended. Raises Postponed as `wait` does."""
        ended = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        await leaving.wait_for(ended)

    def done(self) -> None:
        """A request through a proxy has ended."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def denied(self, proxy: Proxy, error: ProxyError) -> None:
        """Its credentials are wrong."""
        self.tell_once(f"{proxy.where or proxy.name}: {error}")

    def tell_once(self, line: str) -> None:
        """What does not change by waiting."""
        if line not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(line)
            self.tell(line)

    def outage(self, line: str, seconds: float) -> ProxyError:
        """The error of a visit that found no proxy; after a long time without any it costs a retry."""
        worked = self.health.worked
        if self.clock() - self.health.last_ok > (PATIENCE if worked else PATIENCE_AT_FIRST):
            return ProxyError(line)
        return NoProxyError(line, seconds * random.uniform(1.0, 1.5) + random.uniform(1.0, 5.0))

    def failed(self, url: str, error: str) -> None:
        """It is the proxy's fault."""
        self.health.failed(url)
        self._note(url, error)

    def failed_for(self, url: str, host: str, error: str) -> None:
        """It is the proxy's fault, with that host: it has just worked for others."""
        self.health.failed_for(url, host)
        self._note(url, error)

    def banned(self, url: str, host: str, *, confirmed: bool) -> None:
        """The host blocks it. confirmed: it let another proxy through."""
        self.health.banned(url, host, confirmed=confirmed)
        if confirmed:
            self._note(url, f"{host} has banned it")

    def _note(self, url: str, error: str) -> None:
        if self._failed is not None:
            self._failed(self.roster.label(url), error)

    def succeeded(self, proxy: Proxy, host: str, seconds: float) -> None:
        self.health.succeeded(proxy.url, host, seconds)
        if self._down:
            self._down = False
            self.tell("a proxy works again")


class _Visit:
    """One request's way through the pool."""

    def __init__(self, pool: ProxyPool, request: Request, tag: str) -> None:
        self._pool = pool
        self._request = request
        self._tag = tag
        self._host = host_of(request.url)
        self._tried: list[str] = []
        self._banned: list[str] = []
        self._answer: Response | None = None
        self._failure: FetchError | None = None
        self._doubtful: list[str] = []
        """Those that may have failed because of the server."""
        self._gateways: list[str] = []
        """Those that said 502 or the like, and what they said."""
        self._bad_gateway: Response | None = None

    async def run(self, call_next: CallNext) -> Response:
        pool, waits = self._pool, 0
        while len(self._tried) < TRIES and waits <= MAX_WAITS:
            proxy = self._choose()
            if proxy is not None:
                if await self._is_done(proxy, call_next):
                    break
            elif pool.choice.is_one_on_trial(self._among(), self._host, self._tried):
                await pool.one_is_done()
            elif self._tried:
                break
            else:
                waits += 1
                await pool.wait(self._host, self._tag)
        for url in self._banned:  # by all that were tried: it may be the page that nobody gets
            pool.banned(url, self._host, confirmed=False)
        if self._bad_gateway is not None:
            self._weigh(self._bad_gateway)
        if self._answer is None:
            self._give_up()
        return msgspec.structs.replace(self._answer, request=self._request)

    def _choose(self) -> Proxy | None:
        return self._pool.choice.of(self._among(), self._host, self._request.session, self._tried)

    def _among(self) -> Sequence[Proxy]:
        return self._pool.roster.tagged(self._tag)

    async def _is_done(self, proxy: Proxy, call_next: CallNext) -> bool:
        """Try one proxy; False where another one should be tried. Raises what is the page's own failure."""
        pool, host = self._pool, self._host
        record = pool.health.of(proxy.url)
        record.in_flight += 1
        started = perf_counter()
        try:
            response = await call_next(msgspec.structs.replace(self._request, proxy=proxy.url))
        except FetchError as error:
            return self._note_failure(proxy, error)
        finally:
            record.in_flight -= 1
            pool.done()
        if may_be_the_proxys(response) and not proxy.is_socks and len(self._among()) > 1:
            return self._note_bad_gateway(proxy, response)
        reason = pool.bans.reason(response)
        if reason is None:
            pool.succeeded(proxy, host, perf_counter() - started)
            for url in self._banned:
                pool.banned(url, host, confirmed=True)
            for url in (*self._doubtful, *self._gateways):
                self._blame(url)
            self._banned.clear()
            self._bad_gateway = None
            self._answer = response
            return True
        self._tried.append(proxy.url)
        self._banned.append(proxy.url)
        if 200 <= response.status < 300:
            self._failure = BannedError(f"{reason} in place of the page")
        else:
            self._answer = response
        return self._request.session is not None

    def _note_bad_gateway(self, proxy: Proxy, response: Response) -> bool:
        """True where enough proxies have said so."""
        self._tried.append(proxy.url)
        self._gateways.append(proxy.url)
        self._bad_gateway = response
        return len(self._gateways) >= AGREED and any(map(self._pool.health.works, self._gateways))

    def _weigh(self, response: Response) -> None:
        """No proxy got the page, and one at least said 502 or the like: is that the site's answer?"""
        health, gateways = self._pool.health, self._gateways
        if len(gateways) >= AGREED or health.works(gateways[0]):
            for url in gateways:
                health.answered(url)
            self._answer = response
        elif self._answer is None:
            self._failure = ProxyError(f"the proxy answered with status {response.status}")
            self._pool.failed(gateways[0], str(self._failure))

    def _blame(self, url: str) -> None:
        """Another proxy got what this one did not."""
        error = "another proxy got what it did not"
        if self._pool.health.works(url):
            self._pool.failed_for(url, self._host, error)
        else:
            self._pool.failed(url, error)

    def _note_failure(self, proxy: Proxy, error: FetchError) -> bool:
        """False: another proxy should be tried. Raises what is the page's own failure."""
        refused = isinstance(error, ProxyError) and error.refused
        surely = isinstance(error, ProxyError) and not refused
        # What may be either one's fault is the page's if the proxy did something well a short while ago.
        if surely or (isinstance(error, _PERHAPS_THE_PROXYS) and not self._pool.health.works(proxy.url)):
            self._pool.failed(proxy.url, str(error))
            if isinstance(error, ProxyError) and error.denied:
                self._pool.denied(proxy, error)
        else:
            self._pool.health.disappointed(proxy.url, self._host)
            if not refused:
                raise error
            self._doubtful.append(proxy.url)
        self._tried.append(proxy.url)
        self._failure = error
        return False

    def _give_up(self) -> NoReturn:
        failure, count = self._failure, len(self._tried)
        if failure is None:
            raise self._pool.outage(f"no proxy for {self._host} in time", 0.0)
        if self._doubtful or not isinstance(failure, ProxyError):
            raise failure
        what = "the only proxy failed" if count == 1 else f"{count} proxies failed, the last one"
        raise self._pool.outage(f"{what}: {failure}", 0.0) from failure


def _silently(line: str) -> None:
    """Nobody is told."""
