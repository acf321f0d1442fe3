"""ONE request's life, top to bottom."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter

import msgspec

from silkline.engine.discovery import expect_content
from silkline.engine.effects import LinkRules, handle, is_cancelled, page_text
from silkline.engine.items import ItemMaker
from silkline.engine.retry import RetryPolicy, host_block
from silkline.engine.steps import Steps
from silkline.engine.turns import Turns, was_redirected
from silkline.errors import FatalError, Postponed, SilklineError, StatusError
from silkline.events import Visited
from silkline.fetch.retry_after import retry_after_seconds
from silkline.outcome import Alias, Dead, Done, Lease, Outcome, Refused, Verdict
from silkline.parse.page import Page
from silkline.politeness.busy import BusyHosts
from silkline.politeness.traps import NearDuplicates
from silkline.protocols import CallNext, Clock
from silkline.request import Request
from silkline.response import Response
from silkline.router import Router
from silkline.site import registrable_domain
from silkline.url import host_of

DONE = Done()
NOTHING: Mapping[str, Refused] = {}
NO_ITEMS: Mapping[str, int] = {}

Policy = Callable[[Request, str], Awaitable[None]]
"""`await policy(request, host)` returns where the request may be sent now."""


class Tools(msgspec.Struct, frozen=True):
    """What every visit of one worker uses; `fetch` is the fetcher behind the composed middleware.

    unindexed: the name by which a page may ask that nothing of it is kept; None where we do not listen.
    fingerprint: the identity of a URL, by the rules of the job.
    canonical: whether pages are trusted to say by rel=canonical what other URL they have.
    content_types: what pages may be; () for anything. twins: looks for pages that are nearly identical.
    place: finds out to which politeness keys links belong, where that may take long.
    policy: raises where a page must not be fetched, or not now; None where everything may be.
    turns: which redirects have to wait for their turn; None where all are followed at once.
    busy: the hosts that have said 429 lately, or 503 and for how long. files_dir: where pages save files.
    """

    fetch: CallNext
    router: Router
    rules: LinkRules
    retry: RetryPolicy
    items: ItemMaker
    steps: Steps
    clock: Clock
    fingerprint: Callable[[str], int]
    canonical: bool = False
    content_types: Sequence[str] = ()
    twins: NearDuplicates | None = None
    unindexed: str | None = None
    place: Callable[[Sequence[str]], Awaitable[Sequence[str]]] | None = None
    policy: Policy | None = None
    files_dir: str = ""
    turns: Turns | None = None
    busy: BusyHosts = msgspec.field(default_factory=BusyHosts)


async def visit(lease: Lease, tools: Tools) -> Visited:
    """Policy, fetch, parse, handle: everything that may go wrong with one page ends in its outcome.

    Only FatalError, which is no page's fault, Postponed, and a cancellation leave this function.
    """
    started = perf_counter()
    response: Response | None = None
    dropped, refused, items_dropped, elsewhere, fetched = 0, NOTHING, NO_ITEMS, False, False
    try:
        handler = tools.router.handler(lease.request.label)
        if tools.policy is not None:
            await tools.policy(lease.request, lease.host)
        if tools.turns is not None:
            tools.turns.begin(lease)
        fetched = True
        response = await tools.fetch(lease.request)
        if response.onward is not None and tools.turns is not None:
            tools.busy.answered(lease.host, started)
            verdict: Verdict = await tools.turns.moved(response.onward)
            archived = await tools.items.archived(response, lease)
            return Visited(Outcome(lease, verdict, archived), response, perf_counter() - started)
        if response.history and tools.turns is not None:
            elsewhere = await tools.turns.led_away(response, lease)
        expect_success(response, tools.clock)
        if tools.busy and not was_redirected(response, lease):
            tools.busy.answered(lease.host, started)
        page = Page(response, tools.files_dir)
        if tools.content_types:
            expect_content(page, tools.content_types)
        effects = await handle(handler, page, tools.rules)
        if tools.twins is not None:
            tools.twins.look(page.url, page_text(page))
        if tools.unindexed is not None and not page.robots_meta(tools.unindexed).index:
            effects.items.clear()
        given = await tools.steps.through(effects.items, page) if tools.steps else effects.items
        made = tools.items.made(given, lease)
        aliases: tuple[Alias, ...] = ()
        if tools.canonical or response.url != lease.request.url:
            aliases = other_keys(lease, page, tools)
        if tools.place is not None and effects.links:
            await tools.place([link.url for link in effects.links])
        items = made.items
        if tools.items.archives:
            items += await tools.items.archived(response, lease)
        outcome = Outcome(lease, DONE, items, tuple(effects.links), aliases, dead_items=made.dead)
        dropped, refused, items_dropped = effects.dropped, effects.refused, made.dropped
    except (FatalError, Postponed):
        raise
    except SilklineError as error:
        verdict, block = await failed(error, lease, tools, started, elsewhere=elsewhere)
        archived = await tools.items.archived(response, lease)
        outcome = Outcome(lease, verdict, archived, block_host=block)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        # A fetcher or middleware broke its promise: the page fails, the crawl goes on.
        outcome = Outcome(lease, Dead("internal", "".join(traceback.format_exception(error))))
    seconds = perf_counter() - started
    return Visited(outcome, response, seconds, dropped, refused, items_dropped, elsewhere, fetched)


async def failed(
    error: SilklineError, lease: Lease, tools: Tools, started: float, *, elsewhere: bool
) -> tuple[Verdict, float]:
    """What becomes of the request, and for how many seconds its host is left alone.

    elsewhere: it may be another host that is busy; that one's requests will find out themselves.
    """
    block = 0.0 if elsewhere else blocked_for(error, lease.host, tools.busy, started)
    spared = not elsewhere and tools.busy.spares(lease.host, started)
    verdict: Verdict = tools.retry.verdict(error, lease.request, spared=spared)
    if tools.turns is not None:
        verdict = await tools.turns.anew(lease, error) or verdict
    return verdict, block


def blocked_for(error: SilklineError, host: str, busy: BusyHosts, started: float) -> float:
    """Seconds for which the host is to be left alone after this error; 0 for not at all."""
    asked = host_block(error)
    return 0.0 if asked == 0.0 else busy.busy(host, started, perf_counter(), asked)


def other_keys(lease: Lease, page: Page, tools: Tools) -> tuple[Alias, ...]:
    """What else the page is known by: where it was redirected to, and what it says itself.

    Not for a request with an identity of its own: a key, or what is posted; nor for one that was found to be
    no duplicate before.
    """
    request = lease.request
    if request.key is not None or request.body or request.method != "GET" or request.redo:
        return ()
    urls = [page.url]
    if tools.canonical and (url := page.canonical_url) is not None and same_site(url, page.url):
        urls.append(url)
    fingerprints = {tools.fingerprint(url): url for url in urls}
    fingerprints.pop(lease.fingerprint, None)
    return tuple(Alias(host_of(url), fingerprint) for fingerprint, url in fingerprints.items())


def same_site(one: str, other: str) -> bool:
    """Whether the two http(s) URLs are of one registrable domain."""
    first, second = (host_of(url).rpartition(":")[0].partition("://")[2] for url in (one, other))
    return registrable_domain(first) == registrable_domain(second)


def expect_success(response: Response, clock: Clock) -> None:
    """Raises StatusError unless the status is 200-299."""
    if not 200 <= response.status < 300:
        asked = response.header("retry-after")
        raise StatusError(response.status, retry_after_seconds(asked, clock()) if asked else None)
