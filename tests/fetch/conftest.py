from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from raw_server import RawServer, Script

from silkline.fetch.http import HttpFetcher

Serve = Callable[..., Awaitable[RawServer]]


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


@pytest.fixture
async def http() -> AsyncIterator[Callable[..., HttpFetcher]]:
    """Make HttpFetchers that are closed after the test."""
    fetchers: list[HttpFetcher] = []

    def make(**options: object) -> HttpFetcher:
        fetchers.append(HttpFetcher(**options))  # type: ignore[arg-type]
        return fetchers[-1]

    yield make
    for fetcher in fetchers:
        await fetcher.close()


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
