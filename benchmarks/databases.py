"""Rows a second of `sink.write`, against what a driver alone does with the same rows.

    python -m benchmarks.databases                       every contestant whose server is there
    python -m benchmarks.databases postgresql --rounds 9

The two take turns on tables of their own, each time first with new rows and then with the same ones again.
The interpreter is tuned as for a crawl.
Servers: TEST_POSTGRESQL_URL and TEST_MYSQL_URL, or those on this machine; SILKLINE_TEST_MONGODB and
SILKLINE_TEST_CLICKHOUSE, or the small ones that the tests have, which are slow.

Beside the rates stands this process's CPU time, which says something where other programs run, too; and the
longest that the event loop was held up: the CPU time of its thread between two turns of another task.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from tests.clickhouse import running as clickhouse
from tests.mongodb import running as mongodb

from silkline.engine.interpreter import tuned_interpreter
from silkline.errors import SilklineError
from silkline.outcome import Item
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.record import fields_of, size_of

POSTGRESQL = os.environ.get("TEST_POSTGRESQL_URL", "postgresql://postgres@127.0.0.1:5432/test")
MYSQL = os.environ.get("TEST_MYSQL_URL", "mysql://root@127.0.0.1:3306/test")
TABLE = "silkline_benchmark"
TEXTS = [f"text_{n}" for n in range(8)]
FIELDS = ["n", "name", "price", *TEXTS]

Row = tuple[Any, ...]
Write = Callable[[Sequence[Row]], Awaitable[None]]
"""Make these rows durable: the key, the page, the place and the fields."""


class Contestant(NamedTuple):
    """Both make a table, write to it, and remove it."""

    ours: Callable[[], AbstractAsyncContextManager[Write]]
    alone: Callable[[], AbstractAsyncContextManager[Write]]


def rows_of(count: int, start: int) -> list[Row]:
    words = "lorem ipsum dolor sit amet"
    return [
        (f"{page:016x}-0", page, 0, page, f"Chair {page}", page / 4, *(f"{words} {n}" for n in range(8)))
        for page in range(start, start + count)
    ]


@asynccontextmanager
async def silkline(url: str, drop: Callable[[], Awaitable[None]]) -> AsyncIterator[Write]:
    """The sink as the engine uses it: the items are made with their pages, which is not timed."""
    sink = keyed_sink_for(f"{url}?table={TABLE}")
    await sink.open()
    ready: dict[int, list[Item]] = {}

    def made(rows: Sequence[Row]) -> list[Item]:
        fields = [fields_of(dict(zip(FIELDS, row[3:], strict=True))) for row in rows]
        return [
            Item(row[1], 0, {sink.name: sink.encode(each)}, size=size_of(each))
            for row, each in zip(rows, fields, strict=True)
        ]

    async def write(rows: Sequence[Row]) -> None:
        await sink.write(ready.pop(id(rows)))

    write.prepare = lambda rows: ready.__setitem__(id(rows), made(rows))  # type: ignore[attr-defined]
    try:
        yield write
    finally:
        await sink.close()
        await drop()


async def drop_in_postgresql() -> None:
    import asyncpg

    connection = await asyncpg.connect(POSTGRESQL)
    await connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
    await connection.close()


@asynccontextmanager
async def asyncpg_alone() -> AsyncIterator[Write]:
    """COPY into a temporary table and INSERT ... ON CONFLICT, in a transaction."""
    import asyncpg

    await drop_in_postgresql()
    connection = await asyncpg.connect(POSTGRESQL)
    names = ["_key", "_fingerprint", "_index", *FIELDS]
    kinds = ["bigint", "text", "double precision", *["text"] * 8]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(FIELDS, kinds, strict=True))
    await connection.execute(
        f'CREATE TABLE {TABLE} (_key text COLLATE "C" PRIMARY KEY, _fingerprint bigint NOT NULL, '
        f"_index integer, {columns}); CREATE TEMP TABLE batch (LIKE {TABLE}) ON COMMIT DELETE ROWS"
    )
    anew = ", ".join(f"{name} = EXCLUDED.{name}" for name in names[1:])

    async def write(rows: Sequence[Row]) -> None:
        async with connection.transaction():
            await connection.copy_records_to_table("batch", records=rows, columns=names)
            await connection.execute(
                f"INSERT INTO {TABLE} SELECT * FROM batch ON CONFLICT (_key) DO UPDATE SET {anew}"
            )

    try:
        yield write
    finally:
        await connection.close()
        await drop_in_postgresql()


async def mysql_connection() -> Any:
    import aiomysql

    parts = urlsplit(MYSQL)
    return await aiomysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username,
        password=parts.password or "",
        db=parts.path[1:],
        charset="utf8mb4",
    )


async def drop_in_mysql() -> None:
    connection = await mysql_connection()
    await connection.query(f"DROP TABLE IF EXISTS {TABLE}")
    connection.close()


@asynccontextmanager
async def aiomysql_alone() -> AsyncIterator[Write]:
    """executemany of INSERT ... ON DUPLICATE KEY UPDATE, which the driver makes large statements of."""
    await drop_in_mysql()
    connection = await mysql_connection()
    names = ["_key", "_fingerprint", "_index", *FIELDS]
    kinds = ["bigint", "longtext", "double", *["longtext"] * 8]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(FIELDS, kinds, strict=True))
    await connection.query(
        f"CREATE TABLE {TABLE} (_key varbinary(768) NOT NULL PRIMARY KEY, _fingerprint bigint NOT NULL, "
        f"_index int, {columns}) DEFAULT CHARSET=utf8mb4"
    )
    marks = ", ".join(["%s"] * len(names))
    anew = ", ".join(f"{name} = VALUES({name})" for name in names[1:])
    sql = f"INSERT INTO {TABLE} ({', '.join(names)}) VALUES ({marks}) ON DUPLICATE KEY UPDATE {anew}"

    async def write(rows: Sequence[Row]) -> None:
        async with connection.cursor() as cursor:
            await cursor.executemany(sql, rows)
        await connection.commit()

    try:
        yield write
    finally:
        connection.close()
        await drop_in_mysql()


async def drop_in_mongodb() -> None:
    await asyncio.to_thread(mongodb.drop, mongodb.any_url(), TABLE)


def mongodb_sink() -> AbstractAsyncContextManager[Write]:
    return silkline(f"{mongodb.any_url()}/{mongodb.DATABASE}", drop_in_mongodb)


@asynccontextmanager
async def pymongo_alone() -> AsyncIterator[Write]:
    """A bulk write of ReplaceOne with upsert, which the driver makes large messages of."""
    import pymongo

    await drop_in_mongodb()
    options = {"w": "majority", "journal": True}
    client: pymongo.AsyncMongoClient[dict[str, Any]] = pymongo.AsyncMongoClient(mongodb.any_url(), **options)
    names = ["_id", "_fingerprint", "_index", *FIELDS]

    async def write(rows: Sequence[Row]) -> None:
        documents = (dict(zip(names, row, strict=True)) for row in rows)
        replaced = [pymongo.ReplaceOne({"_id": each["_id"]}, each, upsert=True) for each in documents]
        await client[mongodb.DATABASE][TABLE].bulk_write(replaced, ordered=False)

    try:
        yield write
    finally:
        await client.close()
        await drop_in_mongodb()


async def drop_in_clickhouse() -> None:
    def drop() -> None:
        with clickhouse.client_of(clickhouse.any_url()) as client:
            client.command(f"DROP TABLE IF EXISTS {clickhouse.DATABASE}.{TABLE}")

    await asyncio.to_thread(drop)


def clickhouse_sink() -> AbstractAsyncContextManager[Write]:
    return silkline(f"{clickhouse.any_url()}/{clickhouse.DATABASE}", drop_in_clickhouse)


@asynccontextmanager
async def clickhouse_connect_alone() -> AsyncIterator[Write]:
    """`insert` of the rows into a ReplacingMergeTree, as durable as silkline's."""
    import clickhouse_connect

    await drop_in_clickhouse()
    parts = urlsplit(clickhouse.any_url())
    client = await clickhouse_connect.get_async_client(
        host=parts.hostname,
        port=parts.port or 8123,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        database=clickhouse.DATABASE,
        autogenerate_session_id=False,
    )
    names = ["_key", "_fingerprint", "_index", *FIELDS]
    kinds = ["Int64", "String", "Float64", *["String"] * 8]
    columns = ", ".join(f"{name} Nullable({kind})" for name, kind in zip(FIELDS, kinds, strict=True))
    await client.command(
        f"CREATE TABLE {TABLE} (_key String, _fingerprint Int64, _index Nullable(Int32), {columns}, "
        "_version UInt64 DEFAULT toUnixTimestamp64Nano(now64(9))) ENGINE = ReplacingMergeTree(_version) "
        "ORDER BY _key SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"
    )

    async def write(rows: Sequence[Row]) -> None:
        await client.insert(TABLE, rows, column_names=names)

    try:
        yield write
    finally:
        await client.close()
        await drop_in_clickhouse()


CONTESTANTS = {
    "postgresql": Contestant(lambda: silkline(POSTGRESQL, drop_in_postgresql), asyncpg_alone),
    "mysql": Contestant(lambda: silkline(MYSQL, drop_in_mysql), aiomysql_alone),
    "mongodb": Contestant(mongodb_sink, pymongo_alone),
    "clickhouse": Contestant(clickhouse_sink, clickhouse_connect_alone),
}


class Times(NamedTuple):
    """Seconds for new rows, and for the same again; of this process's CPU for both; and the longest that the
    event loop was held up."""

    new: float
    again: float
    cpu: float
    held: float


class Turns:
    """Seconds of CPU that the event loop's thread works between two turns of a task that asks for many."""

    longest = 0.0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._turn())
        await asyncio.sleep(0)
        yield
        await asyncio.sleep(0)
        task.cancel()

    async def _turn(self) -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.0005)
            self.longest = max(self.longest, time.thread_time() - began)


async def seconds(make: Callable[[], AbstractAsyncContextManager[Write]], count: int) -> Times:
    """The first batch, which makes the columns, is not timed."""
    async with make() as write:
        times, cpu, turns = [], [], Turns()
        first, rows = rows_of(count, 0), rows_of(count, count)
        for batch in (first, rows, rows):
            getattr(write, "prepare", lambda rows: None)(batch)
            async with turns.watched():
                began, used = time.perf_counter(), time.process_time()
                await write(batch)
                times.append(time.perf_counter() - began)
                cpu.append(time.process_time() - used)
        return Times(times[1], times[2], cpu[1] + cpu[2], turns.longest)


async def compare(name: str, contestant: Contestant, rounds: int, count: int) -> None:
    measured: dict[str, list[Times]] = {"ours": [], "alone": []}
    for number in range(rounds):
        pair = [("ours", contestant.ours), ("alone", contestant.alone)]
        for who, make in pair if number % 2 else reversed(pair):
            measured[who].append(await seconds(make, count))
    for place, what in enumerate(("new rows", "again")):
        ours, alone = ([times[place] for times in measured[who]] for who in ("ours", "alone"))
        share = statistics.median(ours) / statistics.median(alone) - 1
        print(f"{name:12} {what:9} {rate(ours, count)}  {rate(alone, count)}  {share:+8.1%}")
    spent = [[times.cpu / 2 for times in measured[who]] for who in ("ours", "alone")]
    share = statistics.median(spent[0]) / statistics.median(spent[1]) - 1
    print(f"{name:12} CPU ms    {milliseconds(spent[0])}  {milliseconds(spent[1])}  {share:+8.1%}")
    held = [[times.held for times in measured[who]] for who in ("ours", "alone")]
    print(f"{name:12} held ms   {milliseconds(held[0])}  {milliseconds(held[1])}")


def rate(times: Sequence[float], count: int) -> str:
    middle = count / statistics.median(times)
    return f"{middle:9,.0f} ({count / max(times):9,.0f} to {count / min(times):9,.0f})"


def milliseconds(times: Sequence[float]) -> str:
    low, middle, high = (f * 1000 for f in (min(times), statistics.median(times), max(times)))
    return f"{middle:9.1f} ({low:9.1f} to {high:9.1f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CONTESTANTS)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=10_000, help="of a batch")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - CONTESTANTS.keys()
    if unknown:
        parser.error(f"there is no {unknown.pop()!r}; there are: {', '.join(CONTESTANTS)}")
    print(f"{'':12} {'':9} {'silkline, rows/s':>35}  {'driver alone, rows/s':>35}  {'time':>8}")
    for name in arguments.names or CONTESTANTS:
        try:
            with tuned_interpreter():
                asyncio.run(compare(name, CONTESTANTS[name], arguments.rounds, arguments.rows))
        except (SilklineError, OSError, pytest.skip.Exception) as error:
            print(f"{name:12} not measured: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
