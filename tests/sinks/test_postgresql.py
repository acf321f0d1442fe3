"""What is PostgreSQL's own: types and schemas of the user's, views, and errors by their states."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest

from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.protocols import KeyedSink
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.postgresql import PostgresqlSink
from tests.seeds.databases import POSTGRESQL, postgresql
from tests.sinks.contract.sql import PostgresqlTarget
from tests.sinks.contract.target import item, own
from tests.sqlservers import PostgresqlServer


@pytest.fixture
def target() -> Iterator[PostgresqlTarget]:
    made = PostgresqlTarget()
    yield made
    made.drop()


@pytest.fixture
async def sink(target: PostgresqlTarget) -> AsyncIterator[KeyedSink]:
    made = target.sink(timeout="5")
    await made.open()
    yield made
    await made.close()


def prepared(target: PostgresqlTarget, columns: str) -> None:
    keys = "_key text PRIMARY KEY, _fingerprint bigint, _index integer"
    target.run(f"CREATE TABLE {target.quoted} ({keys}, {columns})")


async def test_types_of_the_users_own_count(target: PostgresqlTarget) -> None:
    target.run("DROP DOMAIN IF EXISTS silkline_domain")
    target.run("CREATE DOMAIN silkline_domain AS integer CHECK (VALUE > 0)")
    prepared(
        target,
        "small smallint, code varchar(3), exact numeric(6,2), tags text[], plain timestamp, net inet, "
        "j json, stock silkline_domain, id serial, note text DEFAULT 'mine', "
        "double integer GENERATED ALWAYS AS (small * 2) STORED",
    )
    sink = target.sink()
    try:
        await sink.open()
        fields = {
            "small": 7,
            "code": "abc",
            "exact": Decimal("1.50"),
            "tags": ["a", "b"],
            "net": "10.0.0.1",
            "j": {"a": [1]},
            "stock": 3,
        }
        await sink.write([item(sink, fields)])
        for wrong in ({"small": 70_000}, {"code": "abcd"}, {"stock": -1}, {"net": "x"}, {"tags": [1]}):
            with pytest.raises(RowsRefused) as caught:
                await sink.write([item(sink, {"small": 1}, page=2), item(sink, wrong, page=3)])
            assert "\n" not in str(caught.value)
        target.run(f"UPDATE {target.quoted} SET note = 'changed'")
        await sink.write([item(sink, {"small": 8})])
        [row] = target.rows()
        assert own(row) == {"small": 8, "id": 1, "note": "changed", "double": 16}
    finally:
        await sink.close()
        target.drop()
        target.run("DROP DOMAIN silkline_domain")


async def test_the_first_and_last_dates_are_no_infinities(target: PostgresqlTarget) -> None:
    prepared(target, "local timestamp")
    sink = target.sink()
    await sink.open()
    west, east = (timezone(timedelta(hours=hours)) for hours in (-5, 5))
    try:
        for page, (day, moment) in enumerate(
            [
                (date.min, datetime.min),
                (date.max, datetime.max),
                (date(1999, 12, 31), datetime(1999, 12, 31, 23, 59, 59, 999_999, west)),
                (date.min, datetime.min.replace(tzinfo=east)),
            ],
            1,
        ):
            local = moment.replace(tzinfo=None)
            await sink.write([item(sink, {"day": day, "moment": moment, "local": local}, page=page)])
    finally:
        await sink.close()
    with psycopg.connect(POSTGRESQL, options="-c timezone=UTC") as connection:
        rows = connection.execute(
            f"SELECT day::text, moment::text, local::text FROM {target.quoted} ORDER BY _fingerprint"
        ).fetchall()
    assert rows == [
        ("0001-01-01", "0001-01-01 00:00:00+00", "0001-01-01 00:00:00"),
        ("9999-12-31", "9999-12-31 23:59:59.999999+00", "9999-12-31 23:59:59.999999"),
        ("1999-12-31", "2000-01-01 04:59:59.999999+00", "1999-12-31 23:59:59.999999"),
        ("0001-01-01", "0001-12-31 19:00:00+00 BC", "0001-01-01 00:00:00"),
    ]


async def test_a_table_in_another_schema(target: PostgresqlTarget) -> None:
    target.run("CREATE SCHEMA silkline_schema")
    sink = target.sink_for(target.url(table="silkline_schema.odd name"))
    try:
        await sink.open()
        await sink.write([item(sink, {"n": 1}, page=5)])
        await sink.write([item(sink, {"n": 2}, page=5), item(sink, {"n": 3}, page=6)])
        await sink.trim({6: 0})
        with psycopg.connect(POSTGRESQL) as connection:
            assert connection.execute('SELECT n FROM silkline_schema."odd name"').fetchall() == [(2,)]
    finally:
        await sink.close()
        target.run("DROP SCHEMA silkline_schema CASCADE")


async def test_a_view_that_forbids_to_widen_costs_the_row_alone(
    target: PostgresqlTarget, sink: KeyedSink
) -> None:
    await sink.write([item(sink, {"n": 1}, page=1)])
    target.run(f"CREATE VIEW silkline_view AS SELECT n FROM {target.quoted}")
    try:
        with pytest.raises(RowsRefused, match=r"^n: decimal numbers do not fit .* used by a view"):
            await sink.write([item(sink, {"n": 1.5}, page=2)])
        await sink.write([item(sink, {"n": 2, "new": "x"}, page=2)])
    finally:
        target.run("DROP VIEW silkline_view")
    assert [own(row) for row in target.rows()] == [{"n": 1}, {"n": 2, "new": "x"}]


async def test_doubles_lose_no_digit_when_their_column_is_widened(
    target: PostgresqlTarget, sink: KeyedSink
) -> None:
    await sink.write([item(sink, {"n": 0.1 + 0.2}, page=1)])
    await sink.write([item(sink, {"n": Decimal("0.1234567890123456789")}, page=2)])
    assert [str(row["n"]) for row in target.rows()] == ["0.30000000000000004", "0.1234567890123456789"]


async def test_a_foreign_table_is_refused_with_what_would_prepare_it(target: PostgresqlTarget) -> None:
    target.run(f"CREATE TABLE {target.quoted} (sku text)")
    sink = target.sink()
    try:
        with pytest.raises(ConfigError, match="not one of silkline's") as caught:
            await sink.open()
        target.run(str(caught.value).partition("prepare this one: ")[2])
        await sink.open()
        await sink.write([item(sink, {"sku": "a"})])
    finally:
        await sink.close()
    assert [own(row) for row in target.rows()] == [{"sku": "a"}]


async def test_a_backend_that_is_ended_between_two_batches_is_away_or_replaced(
    target: PostgresqlTarget, sink: KeyedSink
) -> None:
    for page in range(20):
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'silkline'"
        target.run(f"{ended} AND query LIKE '%{target.table}%'")
        for _ in range(page % 4):
            await asyncio.sleep(0)
        while True:
            with suppress(SinkAwayError):
                await sink.write([item(sink, {"n": page}, page=page)])
                break
    assert [row["n"] for row in target.rows()] == list(range(20))


ERRORS: list[tuple[str, Any]] = [
    ("57P01", SinkAwayError),
    ("53100", SinkAwayError),
    ("53300", SinkAwayError),
    ("25006", SinkAwayError),
    ("40P01", SinkAwayError),
    ("08006", SinkAwayError),
    ("22001", RowsRefused),
    ("23514", RowsRefused),
    ("54000", RowsRefused),
    ("P0001", RowsRefused),
    ("42501", SinkError),
    ("42P01", SinkError),
]


@pytest.mark.parametrize(("state", "meaning"), ERRORS)
async def test_errors_mean_what_their_state_says(
    target: PostgresqlTarget, sink: KeyedSink, state: str, meaning: type[SinkError]
) -> None:
    await sink.write([item(sink, {"n": 1})])
    raising = f"BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END"
    target.run(f"CREATE FUNCTION {target.table}_f() RETURNS trigger LANGUAGE plpgsql AS $${raising}$$")
    target.run(
        f"CREATE TRIGGER t BEFORE INSERT ON {target.quoted} FOR EACH ROW EXECUTE FUNCTION {target.table}_f()"
    )
    try:
        with pytest.raises(SinkError, match="so it is") as caught:
            await sink.write([item(sink, {"n": 2})])
        assert type(caught.value) is meaning
    finally:
        target.run(f"DROP FUNCTION {target.table}_f CASCADE")
    await sink.write([item(sink, {"n": 3})])
    assert [own(row) for row in target.rows()] == [{"n": 3}]


@pytest.mark.parametrize(
    "value",
    ["x" * 23, "y" * 24, "z" * 200, Decimal("9" * 40), 2**62, [1, 2, 3, 4, 5], 1.5, timedelta(days=1)],
    ids=lambda value: f"{type(value).__name__}-{len(str(value))}",
)
async def test_a_row_of_as_many_columns_as_are_made_fits_in_a_page(
    target: PostgresqlTarget, sink: KeyedSink, value: Any
) -> None:
    fields = {f"f{n}": value for n in range(1_100)}
    await sink.write([item(sink, fields, page=1)])
    await sink.write([item(sink, fields, page=2, key="k" * 500)])
    await sink.write([item(sink, {"late": 1}, page=3)])
    assert sorted(len(own(row)) + len(row["_more"]) for row in target.rows()) == [1, 1_100, 1_100]


async def test_a_value_in_every_other_column_of_another_width_fits_too(
    target: PostgresqlTarget, sink: KeyedSink
) -> None:
    """Numbers begin at a multiple of eight bytes."""
    fields = {f"f{n}": n if n % 2 else "x" for n in range(1_100)}
    await sink.write([item(sink, fields | {f"f{n}": timedelta(days=1) for n in range(0, 900, 5)})])
    assert len(target.rows()) == 1


async def test_a_table_that_is_too_wide_for_a_row_is_told(target: PostgresqlTarget) -> None:
    prepared(target, ", ".join(f"f{n} text" for n in range(600)))
    sink = target.sink()
    try:
        await sink.open()
        with pytest.raises(RowsRefused, match=r"^row is too big: .*choose another one by \?table="):
            await sink.write([item(sink, {f"f{n}": "x" * 24 for n in range(600)})])
        await sink.write([item(sink, {f"f{n}": "x" for n in range(600)})])
        assert len(target.rows()) == 1
    finally:
        await sink.close()


async def test_a_user_who_may_not_is_told_so() -> None:
    postgresql()
    target = PostgresqlTarget()
    target.run("DROP ROLE IF EXISTS silkline_nobody")
    target.run("CREATE ROLE silkline_nobody LOGIN")
    sink = target.sink_for(target.url().replace("postgres@", "silkline_nobody@"))
    try:
        with pytest.raises(ConfigError, match=r"permission denied .*; grant it, or use another user"):
            await sink.open()
    finally:
        await sink.close()
        target.run("DROP ROLE silkline_nobody")


async def test_fields_named_like_system_columns_get_columns_of_their_own(
    target: PostgresqlTarget, sink: KeyedSink
) -> None:
    fields = {"ctid": "a", "xmin": 1, "xmax": 2, "cmin": 3, "cmax": 4, "tableoid": 5, "oid": 6}
    await sink.write([item(sink, fields)])
    await sink.write([item(sink, fields)])
    [row] = target.rows()
    found = {name.rpartition("_")[0] or name: value for name, value in own(row).items()}
    assert found == fields


async def test_what_does_not_fit_names_its_column(target: PostgresqlTarget) -> None:
    prepared(target, '"code, of it" varchar(3), e varchar(3)')
    sink = target.sink()
    try:
        await sink.open()
        with pytest.raises(RowsRefused, match=r"^code, of it: value too long for type"):
            await sink.write([item(sink, {"code, of it": "abcd"})])
        with pytest.raises(RowsRefused, match=r"^e: value too long for type"):
            await sink.write([item(sink, {"e": "abcd"})])
    finally:
        await sink.close()


async def test_a_server_without_tls_that_has_to_have_it_is_not_waited_for() -> None:
    with PostgresqlServer() as server:
        sink = keyed_sink_for(f"{server.url}?sslmode=require")
        try:
            with pytest.raises(ConfigError, match="does not speak TLS"):
                await sink.open()
        finally:
            await sink.close()


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("", "it does not speak PostgreSQL's protocol: check the port"),
        ("sslmode=require", "sslmode asks for"),
    ],
)
async def test_a_port_of_another_protocol_is_told(option: str, advice: str) -> None:
    sink = PostgresqlSink(f"postgresql://root@127.0.0.1:3306/test?{option}")
    with pytest.raises(ConfigError, match=advice):
        await sink.open()
    await sink.close()


@pytest.mark.parametrize("url", ["postgresql://", "postgresql:///", "postgres://user:secret@host?table=a"])
def test_a_url_without_a_database_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="names no database: write postgresql://user:password@") as caught:
        PostgresqlSink(url)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("PGDATABASE", "shop")
    PostgresqlSink(url)


def test_inner_states_of_the_driver_are_not_shown(target: PostgresqlTarget) -> None:
    sink = target.sink()
    assert isinstance(sink, PostgresqlSink)
    error = sink._meaning(asyncpg.InternalClientError("cannot switch to state 15; another operation"))
    assert isinstance(error, SinkAwayError)
    assert str(error).endswith("is away: the connection broke off")
