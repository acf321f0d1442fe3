"""What a crawl fetches with: an engine and what goes around each of its hops, as the settings say.

A feature adds one line here: middleware around each hop, or what is asked before a socket connects.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from silkline.config import Settings
from silkline.engine.named import NamedHosts
from silkline.errors import ConfigError
from silkline.fetch.cookies.hop import cookie_hop
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.guard import AddressGuard
from silkline.fetch.http import HttpFetcher
from silkline.fetch.identity.agent import headers_for_all, user_agent_of
from silkline.fetch.identity.auth import authorizations
from silkline.fetch.identity.browser import Browsers
from silkline.fetch.identity.hop import Identity, identity_hop
from silkline.fetch.identity.referer import referer_by
from silkline.fetch.options import FetchOptions, limit_for
from silkline.protocols import Fetcher, Guard, Middleware


def fetcher_for(settings: Settings, opened: AsyncExitStack, named: NamedHosts, sessions: Sessions) -> Fetcher:
    """The engine that `settings` name. What it needs open is closed by `opened`, the engine itself too.

    named: hosts that may be at private addresses. sessions: the job's, with their cookies.

    Raises ConfigError for settings that cannot be met here.
    """
    hops, guard = hops_of(settings, opened, named, sessions), guard_of(settings, named)
    fetcher = HttpFetcher(options_of(settings), hops=hops, guard=guard)
    opened.push_async_callback(fetcher.close)
    return fetcher


def check_settings(settings: Settings) -> None:
    """Raises ConfigError for what only shows when a fetcher is put together."""
    identity_of(settings)


def options_of(settings: Settings) -> FetchOptions:
    return FetchOptions(
        timeout=settings.timeout,
        max_body=settings.max_body,
        max_save=settings.max_save,
        save_timeout=settings.save_timeout,
        files_dir=settings.files_dir,
        max_redirects=settings.max_redirects,
        limit=limit_for(settings.concurrency),
        user_agent=user_agent_of(settings.user_agent, settings.contact),
    )


def hops_of(
    settings: Settings, opened: AsyncExitStack, named: NamedHosts, sessions: Sessions
) -> Sequence[Middleware]:
    """Middleware around each hop, the first one outermost; what is switched off is not in it."""
    hops: list[Middleware] = []
    if not settings.allow_private:
        hops.append(named.hop)
    if settings.cookies != "off":
        hops.append(cookie_hop(sessions))
    if identity := identity_of(settings):
        hops.append(identity_hop(identity, sessions))
    return hops


def identity_of(settings: Settings) -> Identity:
    """Raises ConfigError for headers and credentials that cannot be sent."""
    if settings.identity == "browser" and (settings.user_agent or settings.contact):
        raise ConfigError('identity = "browser" has its own User-Agent: leave out user_agent and contact')
    return Identity(
        headers=headers_for_all(settings.headers),
        auth=authorizations(settings.auth),
        browsers=Browsers(settings.job) if settings.identity == "browser" else None,
        referer=referer_by(settings.referer),
    )


def guard_of(settings: Settings, named: NamedHosts) -> Guard | None:
    """What is asked before a socket connects; None for nothing."""
    return None if settings.allow_private else AddressGuard(named)
