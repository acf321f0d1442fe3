"""What a crawl fetches with: an engine and what goes around each of its hops, as the settings say.

A feature adds one line here: middleware around each hop, or what is asked before a socket connects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from silkline.config import Settings
from silkline.engine.around import proxies_of
from silkline.engine.discovery import RedirectGuard
from silkline.engine.named import NamedHosts
from silkline.errors import ConfigError, about_setting
from silkline.fetch.cache.middleware import HttpCache
from silkline.fetch.cache.redis import RedisCache
from silkline.fetch.cache.sqlite import SqliteCache
from silkline.fetch.cache.store import CacheStore
from silkline.fetch.cookies.hop import cookie_hop
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.engine import Engine
from silkline.fetch.guard import AddressGuard
from silkline.fetch.identity.agent import headers_for_all, user_agent_of
from silkline.fetch.identity.auth import authorizations
from silkline.fetch.identity.browser import Browsers
from silkline.fetch.identity.hop import Identity, identity_hop
from silkline.fetch.identity.referer import referer_by
from silkline.fetch.options import FetchOptions, limit_for
from silkline.fetch.proxies.proxy import proxy_from
from silkline.fetch.trust import check_trust
from silkline.fetch.wire.exchange import Watcher, wire_hop
from silkline.fetch.wire.har import HarFile
from silkline.fetch.wire.show import printer, to_stderr
from silkline.frontier.open import store_file
from silkline.politeness.robots import Robots
from silkline.politeness.scope import Scope
from silkline.protocols import Fetcher, Guard, Middleware


async def fetcher_for(
    settings: Settings,
    opened: AsyncExitStack,
    named: NamedHosts,
    sessions: Sessions,
    robots: Robots | None = None,
    scope: Scope | None = None,
    watchers: Sequence[Watcher] = (),
    tell: Callable[[str], object] | None = None,
) -> Fetcher:
    """The engine that `settings` name. What it needs open is closed by `opened`, the engine itself too.

    named: hosts that may be at private addresses. sessions: the job's, with their cookies.
    robots, scope: asked about each redirect. watchers: see each exchange on the wire. tell: gets a line of
    what the operator should know; else stderr does.

    Raises ConfigError for settings that cannot be met here.
    """
    hops, guard = await hops_of(settings, opened, named, sessions, robots), guard_of(settings, named)
    if scope is not None:
        hops.insert(0, RedirectGuard(scope).hop)
    options = options_of(settings)
    if seeing := (*watchers, *watchers_of(settings, opened, tell or _to_stderr)):
        hops.append(wire_hop(seeing, options.headers))  # innermost: it sees what is sent
        options = msgspec.structs.replace(options, watched=True)
    fetcher = engine_of(settings)(options, hops=hops, guard=guard)
    opened.push_async_callback(fetcher.close)
    return fetcher


def check_settings(settings: Settings) -> None:
    """Raises ConfigError for what only shows when a fetcher is put together."""
    identity_of(settings)
    proxies_of(settings)
    if settings.fetcher == "http" and any(proxy_from(text).is_socks for text in settings.proxy):
        from silkline.fetch.socks import check_socks

        check_socks()
    engine_of(settings)
    with about_setting("ca_file"):
        check_trust(options_of(settings))


def engine_of(settings: Settings) -> type[Engine]:
    """Raises ConfigError where the engine is not installed, or cannot do what is asked of it."""
    if settings.fetcher == "http":
        if settings.http_version in ("2", "3"):
            raise ConfigError(
                f"http_version: HTTP/{settings.http_version} needs the engine curl: --fetcher curl"
            )
        from silkline.fetch.http import HttpFetcher  # here: aiohttp is half of what a start costs

        return HttpFetcher
    try:
        from silkline.fetch.curl import CurlFetcher
    except ImportError as error:
        raise ConfigError(
            f"fetcher: curl needs pycurl, which cannot be used ({error}): pip install 'silkline[curl]'"
        ) from error
    return CurlFetcher


def options_of(settings: Settings) -> FetchOptions:
    return FetchOptions(
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        min_speed=settings.min_speed,
        max_body=settings.max_body,
        max_save=settings.max_save,
        save_timeout=settings.save_timeout,
        files_dir=settings.files_dir,
        max_headers=settings.max_headers,
        max_redirects=settings.max_redirects,
        follow_refresh=settings.follow_refresh,
        limit=limit_for(settings.concurrency, settings.connections),
        connections=settings.connections,
        http_version=settings.http_version,
        verify=not settings.insecure,
        ca_file=settings.ca_file,
        user_agent=user_agent_of(settings.user_agent, settings.contact),
    )


async def hops_of(
    settings: Settings,
    opened: AsyncExitStack,
    named: NamedHosts,
    sessions: Sessions,
    robots: Robots | None = None,
) -> list[Middleware]:
    """Middleware around each hop, the first one outermost; what is switched off is not in it."""
    hops: list[Middleware] = []
    if robots is not None:
        hops.append(robots.hop)
    if not settings.allow_private:
        hops.append(named.hop)
    if settings.cookies != "off":
        hops.append(cookie_hop(sessions))
    if identity := identity_of(settings):
        hops.append(identity_hop(identity, sessions))
    if settings.cache != "off":
        hops.append(await opened_cache(settings, opened))  # it has to see what Vary may speak of
    return hops


def watchers_of(
    settings: Settings, opened: AsyncExitStack, tell: Callable[[str], object]
) -> Sequence[Watcher]:
    """Who wants to see the wire. Raises ConfigError for a HAR file that cannot be one."""
    watchers: list[Watcher] = []
    if settings.debug_http:
        watchers.append(printer(to_stderr, secrets=settings.wire_secrets))
    if settings.har is not None:
        har = HarFile(settings.har, tell, secrets=settings.wire_secrets)
        opened.callback(har.close)
        watchers.append(har.watch)
    return watchers


def _to_stderr(line: str) -> None:
    to_stderr(f"{line}\n")


def identity_of(settings: Settings) -> Identity:
    """Raises ConfigError for headers and credentials that cannot be sent."""
    if settings.identity == "browser" and (settings.user_agent or settings.contact):
        raise ConfigError('identity = "browser" has its own User-Agent: leave out user_agent and contact')
    with about_setting("auth"):
        auth = authorizations(settings.auth)
    with about_setting("headers"):
        headers = headers_for_all(settings.headers)
    return Identity(
        headers=headers,
        auth=auth,
        browsers=Browsers(settings.job) if settings.identity == "browser" else None,
        referer=referer_by(settings.referer),
    )


async def opened_cache(settings: Settings, opened: AsyncExitStack) -> HttpCache:
    """The cache, beside the job's frontier; it outlives `--fresh`.

    Raises ConfigError for a place that cannot be used, FrontierError for a server that does not answer.
    """
    store = await opened_store(settings, opened)
    await store.open()
    opened.push_async_callback(store.close)
    assert settings.cache != "off"
    return HttpCache(store, settings.cache, time.time, sent=options_of(settings).headers)


async def opened_store(settings: Settings, opened: AsyncExitStack) -> CacheStore:
    """In the frontier's Redis, or in a file beside the frontier's."""
    scheme = settings.frontier_url.partition("://")[0]
    if scheme.startswith(("redis", "unix")):
        from silkline.frontier.redis_link import RedisLink
        from silkline.frontier.redis_partition import prefix_of

        link = RedisLink(settings.frontier_url)
        opened.push_async_callback(link.close)
        await link.open()
        prefix = prefix_of(settings.job, 0, clustered=scheme.endswith("+cluster"))
        return RedisCache(link.command, prefix, settings.cache_size)
    beside = store_file(settings.frontier_url) or Path(".silkline", f"{settings.job}.db")
    path = beside.with_name(beside.name.removesuffix(".db") + ".cache")
    return SqliteCache(path, settings.cache_size)


def guard_of(settings: Settings, named: NamedHosts) -> Guard | None:
    """What is asked before a socket connects; None for nothing."""
    return None if settings.allow_private else AddressGuard(named)
