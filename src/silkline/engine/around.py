"""Middleware around the whole fetch, as the settings say: sessions that take turns, proxies, a look at the
version of HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from silkline.config import Settings
from silkline.errors import SettingError, about_setting
from silkline.events import ProxyFailed, Trouble
from silkline.fetch.bans import MARKERS, Bans
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.proxies.pool import ProxyPool
from silkline.fetch.proxies.sources import (
    FixedProxies,
    JoinedSources,
    Source,
    Unusable,
    is_provider,
    source_of,
)
from silkline.fetch.session_pool import SessionPool
from silkline.fetch.spoken import SpokenVersion
from silkline.protocols import Hook, Middleware


def around_of(settings: Settings, sessions: Sessions, hook: Hook) -> Sequence[Middleware]:
    """Around each fetch with its redirects, the first one outermost; what is switched off is not in it.

    hook: is told when no proxy works, or their source does not, of each failure of one, and of a host that
        does not speak the version of HTTP that is asked for.

    Raises ConfigError for proxies that are none.
    """

    def tell(line: str) -> None:
        hook(Trouble(line))

    bans = Bans(settings.ban_statuses, (*MARKERS, *settings.ban_markers))
    around: list[Middleware] = []
    if settings.sessions > 1:
        around.append(SessionPool(settings.sessions, sessions, bans))
    if (source := proxies_of(settings)) is not None:
        pool = ProxyPool(
            source,
            region=settings.proxy_region,
            bans=bans,
            sessions=sessions,
            tell=tell,
            failed=lambda proxy, error: hook(ProxyFailed(proxy, error)),
        )
        around.append(pool)
    if settings.http_version in ("2", "3"):
        around.append(SpokenVersion(settings.http_version, tell))
    return around


def proxies_of(settings: Settings) -> Source | None:
    """Where the proxies come from; None for no proxies. Raises ConfigError for what are none."""
    sources: list[Source] = []
    if settings.proxies is not None and not settings.proxies.strip():
        raise SettingError("proxies", "is empty: name a file or URL with proxies, or leave it out")
    if settings.proxy_region and not settings.proxy and settings.proxies is None:
        raise SettingError("proxy_region", "chooses among proxies: give proxy or proxies, too")
    if settings.proxy:
        with about_setting("proxy"):
            sources.append(FixedProxies(settings.proxy, "proxy"))
    if settings.proxies:
        unusable = socks_unusable() if settings.fetcher == "http" else None
        with about_setting("proxies"):
            sources.append(source_of(settings.proxies, settings.proxies_refresh, unusable))
    return JoinedSources(sources) if len(sources) > 1 else next(iter(sources), None)


def socks_unusable() -> Unusable | None:
    """Why this machine cannot use a SOCKS proxy with the engine http; None where it can."""
    from silkline.fetch.socks import MISSING, has_socks  # with aiohttp, which the other engine does without

    return None if has_socks() else lambda proxy: MISSING if proxy.is_socks else ""


def provider_of(settings: Settings) -> Sequence[str]:
    """The URL that is asked for proxies: the user has named its host."""
    return [settings.proxies] if settings.proxies and is_provider(settings.proxies) else []
