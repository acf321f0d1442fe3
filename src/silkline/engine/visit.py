"""ONE request's life, top to bottom."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

import msgspec

from silkline.engine.effects import LinkRules, handle, is_cancelled
from silkline.engine.retry import RetryPolicy, host_block
from silkline.errors import FatalError, Postponed, SilklineError, StatusError
from silkline.events import Visited
from silkline.fetch.retry_after import retry_after_seconds
from silkline.outcome import Dead, Done, Item, Lease, Outcome
from silkline.parse.page import Page
from silkline.protocols import CallNext, Clock, Sink
from silkline.request import Request
from silkline.response import Response
from silkline.router import Router
from silkline.sinks.record import record_of
from silkline.url import host_of

DONE = Done()

Policy = Callable[[Request, str], Awaitable[None]]
"""`await policy(request, host)` returns where the request may be sent now."""


class Tools(msgspec.Struct, frozen=True):
    """What every visit of one worker uses; `fetch` is the fetcher behind the composed middleware.

    unindexed: the name by which a page may ask that nothing of it is kept; None where we do not listen.
    policy: raises where a page must not be fetched, or not now; None where everything may be.
    """

    fetch: CallNext
    router: Router
    rules: LinkRules
    retry: RetryPolicy
    sinks: Sequence[Sink]
    clock: Clock
    unindexed: str | None = None
    policy: Policy | None = None


async def visit(lease: Lease, tools: Tools) -> Visited:
    """Policy, fetch, parse, handle: everything that may go wrong with one page ends in its outcome.

    Only FatalError, which is no page's fault, Postponed, and a cancellation leave this function.
    """
    started = perf_counter()
    response: Response | None = None
    dropped = 0
    try:
        handler = tools.router.handler(lease.request.label)
        if tools.policy is not None:
            await tools.policy(lease.request, lease.host)
        response = await tools.fetch(lease.request)
        expect_success(response, tools.clock)
        page = Page(response)
        effects = await handle(handler, page, tools.rules)
        if tools.unindexed is not None and not page.robots_meta(tools.unindexed).index:
            effects.items.clear()
        items = encoded(effects.items, lease.fingerprint, tools.sinks)
        outcome = Outcome(lease, DONE, items, tuple(effects.links))
        dropped = effects.dropped
    except (FatalError, Postponed):
        raise
    except SilklineError as error:
        verdict = tools.retry.verdict(error, lease.request)
        # After a redirect it may be another host that is busy; that one's requests will find out themselves.
        own = response is None or host_of(response.url) == lease.host
        outcome = Outcome(lease, verdict, block_host=host_block(error) if own else 0.0)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        # A fetcher or middleware broke its promise: the page fails, the crawl goes on.
        outcome = Outcome(lease, Dead("internal", "".join(traceback.format_exception(error))))
    return Visited(outcome, response, perf_counter() - started, dropped)


def expect_success(response: Response, clock: Clock) -> None:
    """Raises StatusError unless the status is 200-299."""
    if not 200 <= response.status < 300:
        asked = response.header("retry-after")
        raise StatusError(response.status, retry_after_seconds(asked, clock()) if asked else None)


def encoded(values: Sequence[object], fingerprint: int, sinks: Sequence[Sink]) -> tuple[Item, ...]:
    """The items as every sink wants them. Raises ItemError."""
    items = []
    for index, value in enumerate(values):
        record = record_of(value)
        items.append(Item(fingerprint, index, {sink.name: sink.encode(record) for sink in sinks}))
    return tuple(items)
