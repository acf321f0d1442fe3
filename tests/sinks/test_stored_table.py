"""Tables of databases are read back as the items that they were, in constant memory."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import pytest

from silkline.errors import ConfigError
from silkline.seeds.query import fetch_for
from silkline.sinks.export import Target as File
from silkline.sinks.export import export
from silkline.sinks.stored_table import StoredTable, _for_mysql, _plain
from tests.sinks.conftest import read_rows
from tests.sinks.contract.sql import MysqlTarget, PostgresqlTarget
from tests.sinks.contract.target import item

Sql = PostgresqlTarget | MysqlTarget
LOST: dict[str, Any] = {
    "postgresql": {},
    "mysql": {
        "yes": True,
        "no": False,
        "moment": datetime(2030, 1, 31, 6, 30, 0, 123456, UTC),
        "zoneless": datetime(2030, 1, 31, 12, tzinfo=UTC),
        "clock": time(23, 59, 59, 999999),
    },
}
"""What the tables themselves say in other words."""


@pytest.fixture(params=[PostgresqlTarget, MysqlTarget], ids=lambda kind: kind.kind)
def target(request: pytest.FixtureRequest) -> Iterator[Sql]:
    made: Sql = request.param()
    made.drop()
    yield made
    made.drop()


async def put(target: Sql, *items: tuple[dict[str, Any], int, int, str | None]) -> None:
    sink = target.sink()
    await sink.open()
    await sink.write(
        [item(sink, fields, page=page, index=index, key=key) for fields, page, index, key in items]
    )
    await sink.close()


def stored(target: Sql, url: str = "") -> StoredTable:
    url = url or target.url()
    return StoredTable(url, fetch_for(url))


async def test_values_come_back_with_their_types(target: Sql) -> None:
    await put(target, ({name: value for name, (value, _) in target.values.items()}, 1, 0, None))
    [row] = stored(target).rows()
    expected = {name: value for name, (_, value) in target.values.items() if value is not None}
    expected |= LOST[target.kind]
    found = {name: value for name, value in row.record.items() if value is not None}
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }


async def test_fields_without_a_column_of_their_name_are_the_same_again(target: Sql) -> None:
    fields = {"_key": "mine", "a" * 200: [1], "Name": "x"}
    await put(target, (fields, 1, 0, None))
    [row] = stored(target).rows()
    assert row.record == {**fields, "_more": None} or row.record == fields


async def test_pages_stay_together_and_keep_their_fingerprints_in_another_database(
    target: Sql, tmp_path: Path
) -> None:
    rows = [({"n": n}, page, n, None) for n in range(12) for page in (5, -7)]
    await put(target, *rows, ({"n": 99}, 5, 3, "sku"))
    result = export([stored(target)], File(str(tmp_path / "all.db")))
    assert result.rows == 25
    with closing(sqlite3.connect(tmp_path / "all.db")) as db:
        found = db.execute("SELECT _fingerprint, _index, n FROM items WHERE n < 99").fetchall()
    assert found == [(page, n, n) for page in (-7, 5) for n in range(12)]


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
async def test_a_table_becomes_a_file_of_any_format(target: Sql, tmp_path: Path, ending: str) -> None:
    await put(target, *(({"n": n, "name": f"Thing {n}", "tags": ["a", n]}, n, 0, None) for n in range(2_500)))
    path = tmp_path / f"all{ending}"
    assert export([stored(target)], File(str(path))).rows == 2_500
    rows = read_rows(path)
    assert sorted(int(row["n"]) for row in rows) == list(range(2_500))
    tags = rows[7]["tags"]
    assert (tags if ending == ".jsonl" else json.loads(tags)) == ["a", int(rows[7]["n"])]


async def test_memory_does_not_grow_with_the_table(target: Sql, tmp_path: Path) -> None:
    for start in range(0, 8_000, 2_000):
        await put(target, *(({"text": 4_000 * "x"}, n, 0, None) for n in range(start, start + 2_000)))
    tracemalloc.start()
    try:
        assert export([stored(target)], File(str(tmp_path / "all.jsonl"))).rows == 8_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16_000_000  # of 32 MB


async def test_a_table_of_anybodys_is_read_too(target: Sql) -> None:
    target.run(f"CREATE TABLE {target.quoted} (name varchar(20), seen date)")
    target.run(f"INSERT INTO {target.quoted} VALUES ('Chair', NULL)")
    [row] = stored(target).rows()
    assert (row.record, row.key) == ({"name": "Chair", "seen": None}, None)


async def test_a_table_that_is_not_there_is_one_line_without_the_password(target: Sql) -> None:
    with pytest.raises(ConfigError, match=target.table) as caught:
        list(stored(target).rows())
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="there is no option 'fancy'"):
        stored(target, f"{target.url()}&fancy=1")


def test_a_driver_gets_no_option_of_an_output() -> None:
    url = "postgresql://u:p%40@h/db?table=a&sslmode=require&batch=5&batch_bytes=1MB&batch_seconds=1&timeout=9"
    assert _plain(url) == "postgresql://u:p%40@h/db?sslmode=require"
    assert _for_mysql("mysql://h/db?ssl=true") == "mysql://h/db?ssl_verify_cert=false"
    assert _for_mysql("mysql://h/db?ssl=true&ssl_ca=x") == "mysql://h/db?ssl_ca=x"
    assert _for_mysql("mysql://h/db?ssl=false") == "mysql://h/db?ssl_disabled=true"
    assert _for_mysql(_plain("mysql://h/db?table=a")) == "mysql://h/db"
