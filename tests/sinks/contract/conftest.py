from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from silkline.protocols import KeyedSink
from tests.sinks.contract.sql import PostgresqlTarget
from tests.sinks.contract.target import Target

TARGETS: list[type[Target]] = [PostgresqlTarget]
"""Every sink that tells rows apart by their keys; a new one is added here."""

Opened = Callable[..., KeyedSink]


@pytest.fixture(params=TARGETS, ids=lambda kind: kind.kind)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    made: Target = request.param()
    made.drop()
    yield made
    made.drop()


@pytest.fixture
async def sinks() -> AsyncIterator[list[KeyedSink]]:
    """Those that are in here are closed."""
    made: list[KeyedSink] = []
    yield made
    for sink in made:
        await sink.close()


@pytest.fixture
async def sink(target: Target, sinks: list[KeyedSink]) -> KeyedSink:
    """One that is open."""
    made = target.sink()
    sinks.append(made)
    await made.open()
    return made
