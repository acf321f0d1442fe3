"""The backends under test. A new one is one line in BACKENDS: contract and model tests then run over it."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import redis

from silkline.config import FrontierOptions
from silkline.frontier import MemoryFrontier, SqliteFrontier
from silkline.frontier.redis import RedisFrontier
from silkline.outcome import Dead, Done, Lease, LeaseBatch, Outcome, RetryLater
from silkline.protocols import Clock, Frontier, Resolve
from silkline.request import Request
from tests import servers

MakeFrontier = Callable[[Path, FrontierOptions, Clock, Resolve | None], Frontier]


def on_server(make_url: Callable[[], str]) -> MakeFrontier:
    """A job of its own for each directory, on a server that all tests share."""

    def make(
        directory: Path, options: FrontierOptions, clock: Clock, resolve: Resolve | None = None
    ) -> Frontier:
        job = f"job-{zlib.crc32(bytes(directory)):x}"
        options = msgspec.structs.replace(options, job=job)
        return RedisFrontier(make_url(), options, clock=clock, resolve=resolve)

    return make


BACKENDS: dict[str, MakeFrontier] = {
    "memory": lambda directory, options, clock, resolve=None: MemoryFrontier(
        options, clock=clock, resolve=resolve
    ),
    "sqlite": lambda directory, options, clock, resolve=None: SqliteFrontier(
        directory / "job.db", options, clock=clock, resolve=resolve
    ),
    "valkey": on_server(servers.valkey_url),
    "redis": on_server(servers.redis_url),
    "cluster": on_server(servers.cluster_url),
}


class ManualClock:
    """Steps of a quarter second stay exact in every store."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


Opened = Callable[..., AbstractAsyncContextManager[Frontier]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=BACKENDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Opened:
    """`async with opened(per_host=2) as frontier`: one of the backend, with these FrontierOptions."""

    @asynccontextmanager
    async def opened(resolve: Resolve | None = None, **options: object) -> AsyncIterator[Frontier]:
        make, asked = BACKENDS[request.param], FrontierOptions(**options)  # type: ignore[arg-type]
        frontier = make(tmp_path, asked, clock, resolve)
        await frontier.open()
        try:
            yield frontier
        finally:
            await frontier.close()

    return opened


def pages(host: str, count: int, first: int = 0, **fields: object) -> list[Request]:
    return [Request(f"http://{host}/{n}", **fields) for n in range(first, first + count)]  # type: ignore[arg-type]


def urls(leases: LeaseBatch | Sequence[Lease]) -> list[str]:
    leases = leases.leases if isinstance(leases, LeaseBatch) else leases
    return [lease.request.url.removeprefix("http://") for lease in leases]


def done(*leases: Lease, links: Sequence[Request] = ()) -> list[Outcome]:
    return [Outcome(lease, Done(), links=tuple(links)) for lease in leases]


def dead(*leases: Lease, cause: str = "http_404", error: str = "HTTP status 404") -> list[Outcome]:
    return [Outcome(lease, Dead(cause, error)) for lease in leases]


def retry(*leases: Lease, after: float = 10.0) -> list[Outcome]:
    return [Outcome(lease, RetryLater(after, "timeout", "no answer")) for lease in leases]


@pytest.fixture
def job() -> str:
    """A name that no other test's job has."""
    return f"job-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def client() -> redis.Redis:
    """Of the server that all tests share, as any program may have one."""
    return servers.valkey().client()
