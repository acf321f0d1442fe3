from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from silkline.protocols import KeyedSink
from tests.sinks.contract.clickhouse import ClickHouseTarget
from tests.sinks.contract.mongodb import MongodbTarget
from tests.sinks.contract.sql import MysqlTarget, PostgresqlTarget
from tests.sinks.contract.stream import RedisStreamTarget
from tests.sinks.contract.target import Target

TARGETS: list[type[Target]] = [
    PostgresqlTarget,
    MysqlTarget,
    MongodbTarget,
    ClickHouseTarget,
    RedisStreamTarget,
]
"""Every sink that tells rows apart by their keys; a new one is added here."""

Opened = Callable[..., KeyedSink]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what does not apply to a kind of sink: `@pytest.mark.needs("columns")` names the attribute of
    the target that says so. Not the same as a skip, which means that something is missing here."""
    items[:] = [item for item in items if applies(item)]


def applies(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    kind = callspec.params.get("target") if callspec is not None else None
    return all(getattr(kind, mark.args[0]) for mark in item.iter_markers("needs"))


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
