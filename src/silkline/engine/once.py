"""One fetch outside of any job, seen from all sides."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import msgspec

from silkline.config import Settings
from silkline.engine.around import around_of, provider_of
from silkline.engine.fetching import fetcher_for
from silkline.engine.named import NamedHosts, hosts_of
from silkline.engine.robots import robots_for
from silkline.errors import FetchError
from silkline.events import Event
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.middleware import compose
from silkline.fetch.wire.exchange import Exchange
from silkline.frontier.memory import MemoryFrontier
from silkline.politeness.robots import RobotsVerdict
from silkline.request import Request
from silkline.response import Response


class Fetched(msgspec.Struct, frozen=True):
    """What became of one request.

    response: None where there was none; then `error` says why. exchanges: one for each hop.
    robots: what robots.txt says of the URL; None where it was not asked. robots_error: why it cannot tell.
    """

    response: Response | None
    error: FetchError | None
    exchanges: Sequence[Exchange]
    robots: RobotsVerdict | None = None
    robots_error: FetchError | None = None


async def fetch_once(request: Request, settings: Settings) -> Fetched:
    """Fetch as a crawl would do it, with its limits, identity, proxies, guard and redirects; no retries.

    robots.txt is read afterwards and only reported: whoever asks for one page wants to see it. The host of
    the URL counts as named. Raises ConfigError.
    """
    seen: list[Exchange] = []
    response: Response | None = None
    failure: FetchError | None = None
    async with AsyncExitStack() as opened:
        frontier = MemoryFrontier(settings.frontier_options)
        await frontier.open()
        opened.push_async_callback(frontier.close)
        named = NamedHosts(frontier)
        await named.name(hosts_of([request.url, *provider_of(settings)]))
        sessions = Sessions()
        fetcher = await fetcher_for(settings, opened, named, sessions, watchers=[seen.append])
        fetch = compose(around_of(settings, sessions, _ignore), fetcher.fetch)
        try:
            response = await fetch(request)
        except FetchError as error:
            failure = error
        fetched = Fetched(response, failure, tuple(seen))
        robots = robots_for(settings, frontier, _ignore, opened)
        if robots is None:
            return fetched
        robots.use(fetch, lambda host, delay: None)
        try:
            return msgspec.structs.replace(fetched, robots=await robots.verdict(request.url))
        except FetchError as error:
            return msgspec.structs.replace(fetched, robots_error=error)


def _ignore(event: Event) -> None:
    """What is worth telling of a crawl is not of one page. What is wrong with the proxies is in its error."""
