"""PostgreSQL and MySQL beyond the contract of all sinks: tables of others, and dropped ones."""

from __future__ import annotations

import pytest

from silkline.errors import ConfigError, SinkError
from tests.sinks.contract.sql import MysqlTarget, PostgresqlTarget
from tests.sinks.contract.target import item, own

KINDS = [PostgresqlTarget, MysqlTarget]
TAKEN = "_key varbinary(768) PRIMARY KEY"


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (PostgresqlTarget, "_key integer PRIMARY KEY, _fingerprint bigint, _index integer"),
        (PostgresqlTarget, "_key text PRIMARY KEY, _fingerprint integer, _index integer"),
        (PostgresqlTarget, "_key text PRIMARY KEY, _fingerprint bigint, _index text"),
        (MysqlTarget, "_key bigint PRIMARY KEY, _fingerprint bigint, _index int"),
        (MysqlTarget, f"{TAKEN}, _fingerprint bigint unsigned, _index int"),
        (MysqlTarget, f"{TAKEN}, _fingerprint int, _index int"),
        (MysqlTarget, f"{TAKEN}, _fingerprint bigint, _index text"),
    ],
)
async def test_a_key_column_of_another_type_is_refused_with_what_changes_it(
    kind: type[PostgresqlTarget | MysqlTarget], columns: str
) -> None:
    target = kind()
    target.drop()
    target.run(f"CREATE TABLE {target.quoted} ({columns})")
    sink = target.sink()
    try:
        with pytest.raises(ConfigError, match="the column _") as caught:
            await sink.open()
        target.run(str(caught.value).partition("change it: ")[2])
        await sink.open()
        await sink.write([item(sink, {"sku": "a"})])
        assert [own(row) for row in target.rows()] == [{"sku": "a"}]
    finally:
        await sink.close()
        target.drop()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_table_that_is_dropped_is_told_with_what_comes_next(
    kind: type[PostgresqlTarget | MysqlTarget],
) -> None:
    target = kind()
    sink = target.sink()
    try:
        await sink.open()
        await sink.write([item(sink, {"n": 1})])
        target.drop()
        with pytest.raises(SinkError, match="if it was dropped, run the same command again"):
            await sink.write([item(sink, {"n": 2})])
    finally:
        await sink.close()
        target.drop()
