"""The ClickHouse sink on a server: ClickHouse's engine behind tests/clickhouse, or a real one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.outcome import Item
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.clickhouse import CREATE, ClickHouseSink
from silkline.sinks.record import fields_of
from tests.clickhouse.running import DATABASE, ClickHouseServer, any_url, client_of, rows_in


class Table:
    """One table."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.name = f"items_{uuid.uuid4().hex[:12]}"
        self.full = f"{DATABASE}.{self.name}"

    def sink(self, *options: str, create: bool = True) -> ClickHouseSink:
        query = "&".join((f"table={self.name}", *options))
        return ClickHouseSink(f"{self.server}/{DATABASE}?{query}", create=create)

    def rows(self) -> list[dict[str, Any]]:
        return rows_in(self.server, self.full)

    def run(self, statement: str) -> Any:
        with client_of(self.server) as client:
            return client.command(statement)

    def make(self, columns: str = "", engine: str = "ReplacingMergeTree(_version, _deleted)") -> None:
        """As a user may do."""
        statement = CREATE.format(table=self.full)
        statement = statement.replace("ReplacingMergeTree(_version, _deleted)", engine)
        self.run(statement.replace("GRANULARITY 1)", f"GRANULARITY 1{columns})"))


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table(any_url())
    yield table
    table.run(f"DROP TABLE IF EXISTS {table.full} SYNC")


@pytest.fixture(scope="module")
def server() -> Iterator[ClickHouseServer]:
    """One that may be killed and told to fail."""
    server = ClickHouseServer().start()
    yield server
    server.remove()


def item(sink: ClickHouseSink, page: int, index: int = 0, key: str | None = None, /, **fields: Any) -> Item:
    return Item(page, index, {sink.name: sink.encode(fields_of(fields))}, key=key)


def own(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name[0] != "_"}


async def test_rows_that_are_replaced_or_removed_are_gone_for_queries_with_final(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 1, n=1, colour="red"), item(sink, 2, n=2), item(sink, 3, n=3)])
    await sink.write([item(sink, 1, n=10)])
    await sink.trim({2: 0, 77: 0})
    assert [own(row) for row in table.rows()] == [{"n": 10, "colour": None}, {"n": 3, "colour": None}]
    await sink.write([item(sink, 2, n=20)])  # it may come again
    await sink.close()
    assert [row["n"] for row in table.rows()] == [10, 20, 3]
    table.run(f"OPTIMIZE TABLE {table.full} FINAL")
    assert table.run(f"SELECT count() FROM {table.full}") == 3


async def test_trimming_leaves_items_with_keys_of_their_own_that_look_like_a_pages(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 7, index, n=index) for index in range(12)])
    await sink.write([item(sink, 7, 99, "0000000000000007-99", n=99)])
    await sink.trim({7: 2, **dict.fromkeys(range(100, 1200), 0)})
    await sink.close()
    assert [row["n"] for row in table.rows()] == [0, 1, 99]


async def test_a_write_is_on_the_disk_when_it_is_answered(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    made = str(table.run(f"SELECT engine_full FROM system.tables WHERE name = '{table.name}'"))
    assert "fsync_after_insert = 1" in made
    assert "fsync_part_directory = 1" in made
    async with sink._asked() as client:
        set_to = await client.command("SELECT getSetting('async_insert'), getSetting('insert_deduplicate')")
    assert [str(value) for value in set_to] == ["false", "false"]
    await sink.close()


async def test_columns_that_a_user_has_declared_take_what_fits_and_refuse_the_rest(table: Table) -> None:
    table.make(
        ", stock UInt8, price Decimal(9, 2), size Enum8('S' = 1, 'L' = 2), tags Array(String),"
        " at DateTime('UTC'), name LowCardinality(String), host IPv4"
    )
    sink = table.sink(create=False)
    await sink.open()
    fine = {
        "stock": 255,
        "price": 9.5,
        "size": "L",
        "tags": ["a'\\", "é\n", "7"],
        "at": datetime(2030, 1, 31, 12, tzinfo=UTC),
        "name": "Chair",
        "host": "10.0.0.1",
    }
    await sink.write([item(sink, 1, **fine), item(sink, 2, **fine | {"name": None, "stock": None})])
    wrong = {"stock": 256, "price": Decimal("0.001"), "size": "XL", "at": datetime(1815, 1, 1), "host": "no"}
    for name, value in wrong.items():
        with pytest.raises(RowsRefused) as caught:
            await sink.write([item(sink, 3, **fine | {name: value})])
        assert len(str(caught.value)) < 200
    await sink.close()
    full, empty = table.rows()
    assert own(full) | {"host": str(full["host"])} == fine | {"price": Decimal("9.50")}
    assert own(empty)["name"] == ""
    assert own(empty)["stock"] == 0


async def test_a_constraint_of_the_users_refuses_a_row(table: Table) -> None:
    table.make(", price Nullable(Int64), CONSTRAINT positive CHECK price > 0")
    sink = table.sink()
    await sink.open()
    with pytest.raises(RowsRefused, match="positive"):
        await sink.write([item(sink, 1, price=5), item(sink, 2, price=-5)])
    await sink.close()
    assert table.rows() == []


@pytest.mark.parametrize("what", ["DROP COLUMN n", "RENAME COLUMN n TO old"])
async def test_a_column_that_goes_while_the_crawl_runs_is_made_anew(table: Table, what: str) -> None:
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 1, n=1)])
    table.run(f"ALTER TABLE {table.full} {what}")
    await sink.write([item(sink, 2, n=2)])
    await sink.close()
    assert [row["n"] for row in table.rows()] == [None, 2]


@pytest.mark.parametrize(
    ("columns", "engine", "said"),
    [("", "MergeTree", "its engine is MergeTree"), (", x Int8", "Memory", "it has no column _key")],
)
async def test_a_table_that_would_keep_every_version_is_refused(
    table: Table, columns: str, engine: str, said: str
) -> None:
    if columns:
        table.run(f"CREATE TABLE {table.full} (x Int8) ENGINE = {engine}")
    else:
        table.make(engine=engine)
    sink = table.sink()
    with pytest.raises(ConfigError, match=said):
        await sink.open()
    await sink.close()


@pytest.mark.parametrize(
    ("code", "meaning", "said"),
    [
        (241, SinkAwayError, "is away: INSERT fails as it was told to"),
        (242, SinkAwayError, "is away"),
        (243, SinkAwayError, "is away"),
        (497, SinkError, "check the user, the password and the rights"),
        (1000, SinkError, "mend it and run the same command again"),
        (469, RowsRefused, "fails as it was told to"),
    ],
)
async def test_what_a_server_answers_is_waited_for_or_ends_the_crawl_or_refuses_a_row(
    server: ClickHouseServer, code: int, meaning: type[SinkError], said: str
) -> None:
    table = Table(server.url)
    sink = table.sink()
    await sink.open()
    server.fail(code, "INSERT")
    with pytest.raises(SinkError, match=said) as caught:
        await sink.write([item(sink, 1, n=1)])
    assert type(caught.value) is meaning
    assert server.url.rpartition(":")[2] not in str(caught.value).replace(sink.name, "")
    await sink.write([item(sink, 1, n=1)])
    await sink.close()
    assert len(table.rows()) == 1


async def test_a_server_that_is_killed_in_mid_batch_and_restarted_has_every_row(
    server: ClickHouseServer,
) -> None:
    table = Table(server.url)
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 0, n=0)])
    items = [item(sink, n, n=n, text="x" * 2_000) for n in range(20_000)]
    writing = asyncio.create_task(sink.write(items))
    await asyncio.sleep(0.3)
    server.kill()
    with pytest.raises(SinkAwayError, match="is away"):
        await writing
    server.start()
    await sink.write(items)
    await sink.close()
    assert [row["n"] for row in table.rows()] == list(range(20_000))


async def test_who_has_the_password_gets_in_and_nobody_is_told_it() -> None:
    server = ClickHouseServer(("ann", "p@ss/w%d")).start()
    try:
        place = f"127.0.0.1:{server.port}/{DATABASE}"
        sink = ClickHouseSink(f"clickhouse://ann:p%40ss%2Fw%25d@{place}")
        await sink.open()
        await sink.close()
        sink = ClickHouseSink(f"clickhouse://ann:sesame-open@{place}")
        with pytest.raises(ConfigError, match="check the user, the password") as caught:
            await sink.open()
        assert "sesame" not in str(caught.value)
        assert "\n" not in str(caught.value)
        await sink.close()
    finally:
        server.remove()


def test_a_url_of_clickhouse_makes_a_clickhouse_sink() -> None:
    plain = keyed_sink_for("clickhouse://ann:sesame@[::1]:9000/shop?ch_insert_quorum=2&verify=false")
    assert isinstance(plain, ClickHouseSink)
    assert plain.name == "clickhouse://[::1]:9000/shop?table=items"
    assert plain.batch.count == 10_000
    said = plain._arguments
    assert (said["host"], said["port"], said["interface"]) == ("::1", 9000, "http")
    assert said["settings"]["insert_quorum"] == "2"
    secure = keyed_sink_for("clickhouses://cloud.example")
    assert isinstance(secure, ClickHouseSink)
    assert (secure._arguments["port"], secure._arguments["interface"]) == (8443, "https")
