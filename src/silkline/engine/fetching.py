"""What a crawl fetches with: an engine and what goes around each of its hops, as the settings say.

A feature adds one line here: middleware around each hop, or what is asked before a socket connects.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from silkline.config import Settings
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.protocols import Fetcher, Guard, Middleware


def fetcher_for(settings: Settings, opened: AsyncExitStack) -> Fetcher:
    """The engine that `settings` name. What it needs open is closed by `opened`, the engine itself too.

    Raises ConfigError for settings that cannot be met here.
    """
    fetcher = HttpFetcher(options_of(settings), hops=hops_of(settings, opened), guard=guard_of(settings))
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


def hops_of(settings: Settings, opened: AsyncExitStack) -> Sequence[Middleware]:
    """Middleware around each hop, the first one outermost; what is switched off is not in it."""
    hops: list[Middleware] = []
    return hops


def guard_of(settings: Settings) -> Guard | None:
    """What is asked before a socket connects; None for nothing."""
    return None
