from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer, Script, Serve
from site_of_pages import Engine, MockSite, OpenSite, Pages, ServedSite, Site

from silkline.fetch.curl import CurlFetcher
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.protocols import Guard, Middleware


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start servers: `await serve({"/": bytes or script})`, with `tls=context` over TLS."""
    servers: list[RawServer] = []

    async def start(
        routes: Mapping[str, bytes | Script] | None = None, tls: ssl.SSLContext | None = None
    ) -> RawServer:
        server = await RawServer(routes).start(tls)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


def http(hops: Sequence[Middleware] = (), guard: Guard | None = None, **options: Any) -> HttpFetcher:
    return HttpFetcher(FetchOptions(**options), hops=hops, guard=guard)


def curl(hops: Sequence[Middleware] = (), guard: Guard | None = None, **options: Any) -> CurlFetcher:
    return CurlFetcher(FetchOptions(**options), hops=hops, guard=guard)


ENGINES: dict[str, Engine] = {"http": http, "curl": curl}
"""Every fetcher that speaks to the network; the parity suite runs over each."""


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """Make fetchers with the options given; they are closed after the test."""
    fetchers: list[Any] = []

    def make(**options: Any) -> Any:
        fetchers.append(ENGINES[request.param](**options))
        return fetchers[-1]

    yield make
    for fetcher in fetchers:
        await fetcher.close()


@pytest.fixture(params=[*ENGINES, "mock"])
async def open_site(request: pytest.FixtureRequest, serve: Serve) -> AsyncIterator[OpenSite]:
    """`await open_site(pages)`: the pages over a socket, for each engine, and in a MockFetcher."""
    sites: list[Site] = []

    async def start(pages: Pages, **options: Any) -> Site:
        if request.param == "mock":
            site: Site = MockSite(pages, **options)
        else:
            site = ServedSite(await serve(), ENGINES[request.param](**options), pages)
        sites.append(site)
        return site

    yield start
    for site in sites:
        await site.fetcher.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run(
        [*command.split(), "-addext", names, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture
def tls_context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context
