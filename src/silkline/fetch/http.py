"""The default fetcher: HTTP/1.1 over aiohttp, bounded in every direction.

aiohttp gives connections, framing and TLS. Redirects, content codings, limits and errors are ours, so that
they are the same for every fetcher.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp

from silkline.fetch.bounds import MAX_FIELDS
from silkline.fetch.client import Client
from silkline.fetch.connector import Connector
from silkline.fetch.deadlines import Deadlines
from silkline.fetch.engine import Engine
from silkline.fetch.options import FetchOptions
from silkline.fetch.proxy import ProxyAddress
from silkline.fetch.resolver import Resolver
from silkline.fetch.socks import SocksConnector
from silkline.fetch.trust import tls_context

_DNS_CACHE_SECONDS = 300
_IDLE_SECONDS = 15.0
"""Idle connections are closed after that long: servers close theirs at about the same age, and a request on
a connection that is just closing is lost."""


class HttpFetcher(Engine):
    """Request -> Response over aiohttp."""

    def _connect(self) -> Client:
        options = self._options
        deadlines = Deadlines(options.timeout, options.read_timeout)

        def connect(kind: Callable[..., Connector]) -> Connector:
            return kind(
                deadlines,
                self._options.limit,
                options.connect_timeout,
                self._guard,
                resolver=Resolver(),
                ttl_dns_cache=_DNS_CACHE_SECONDS,
                keepalive_timeout=_IDLE_SECONDS,
                ssl=tls_context(options),
            )

        def through(proxy: ProxyAddress) -> aiohttp.ClientSession:
            return _session(connect(partial(SocksConnector, proxy)), options)

        connector = connect(Connector)
        usual = _session(connector, options, headers=options.headers, connector_owner=False)
        return Client(_session(connector, options), usual, connector, deadlines, options, through)


def _session(connector: Connector, options: FetchOptions, **more: Any) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        **more,
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),  # the deadlines and the connector have the limits
        auto_decompress=False,
        max_line_size=options.max_headers,
        max_field_size=options.max_headers,
        max_headers=MAX_FIELDS,
    )
