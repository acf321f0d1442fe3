"""What a crawl fetches with: an engine and what goes around each of its hops, as the settings say.

A feature adds one line here: middleware around each hop, or what is asked before a socket connects.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from silkline.config import Settings
from silkline.engine.named import NamedHosts
from silkline.fetch.guard import AddressGuard
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.protocols import Fetcher, Guard, Middleware


def fetcher_for(settings: Settings, opened: AsyncExitStack, named: NamedHosts) -> Fetcher:
    """The engine that `settings` name. What it needs open is closed by `opened`, the engine itself too.

    named: hosts that may be at private addresses.

    Raises ConfigError for settings that cannot be met here.
    """
    hops, guard = hops_of(settings, opened, named), guard_of(settings, named)
    fetcher = HttpFetcher(options_of(settings), hops=hops, guard=guard)
    opened.push_async_callback(fetcher.close)
    return fetcher


def options_of(settings: Settings) -> FetchOptions:
    return FetchOptions(
        timeout=settings.timeout,
        max_body=settings.max_body,
        max_redirects=settings.max_redirects,
        limit=2 * settings.concurrency,  # visits that hang have stand-ins, see engine/visitors.py
        user_agent=settings.user_agent,
    )


def hops_of(settings: Settings, opened: AsyncExitStack, named: NamedHosts) -> Sequence[Middleware]:
    """Middleware around each hop, the first one outermost; what is switched off is not in it."""
    hops: list[Middleware] = []
    if not settings.allow_private:
        hops.append(named.hop)
    return hops


def guard_of(settings: Settings, named: NamedHosts) -> Guard | None:
    """What is asked before a socket connects; None for nothing."""
    return None if settings.allow_private else AddressGuard(named)
