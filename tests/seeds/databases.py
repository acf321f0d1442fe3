"""Real databases for tests: SQLite files, and the servers on this machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest

from silkline.seeds.mysql import options_from

POSTGRESQL = os.environ.get("TEST_POSTGRESQL_URL", "postgresql://postgres@127.0.0.1:5432/test")
MYSQL = os.environ.get("TEST_MYSQL_URL", "mysql://root@127.0.0.1:3306/test")

TABLE = f"silkline_products_{os.getpid()}"
"""Of this process: others may run the same tests on the same server."""

ROWS = (
    (1, "https://shop.example/p/1", 5, "9.50", b"\x00\xff", "2030-01-31"),
    (2, "https://shop.example/p/2", None, None, None, None),
    (3, "shop.example/p/3", 0, "1.00", b"", "2030-02-01"),
)
COLUMNS = "id integer, url varchar(100), priority integer, price {decimal}, image {bytes}, day date"
BILLION = 1_000_000_000


class Database(NamedTuple):
    """url: for --sql. run: do a statement. billion: a query that gives a billion rows, one by one."""

    url: str
    run: Callable[..., None]
    billion: str

    @property
    def kind(self) -> str:
        return urlsplit(self.url).scheme


def postgresql() -> Database:
    try:
        psycopg.connect(POSTGRESQL, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL at {POSTGRESQL} (TEST_POSTGRESQL_URL names another): {error}")

    def run(sql: str, *rows: Any) -> None:
        with psycopg.connect(POSTGRESQL, autocommit=True) as connection:
            if rows:
                connection.cursor().executemany(sql, rows)  # type: ignore[arg-type]
            else:
                connection.execute(sql)  # type: ignore[call-overload]

    return Database(POSTGRESQL, run, f"SELECT 'https://a.example/' || generate_series(1, {BILLION}) AS url")


def mysql() -> Database:
    try:
        pymysql.connect(**options_from(MYSQL)).close()
    except pymysql.OperationalError as error:
        pytest.skip(f"no MySQL or MariaDB at {MYSQL} (TEST_MYSQL_URL names another): {error}")

    def run(sql: str, *rows: Any) -> None:
        with closing(pymysql.connect(**options_from(MYSQL), autocommit=True)) as connection:
            if rows:
                connection.cursor().executemany(sql, rows)
            else:
                connection.cursor().execute(sql)

    numbers = " CROSS JOIN ".join(f"(SELECT {n} UNION ALL SELECT 1) AS t{n}" for n in range(2, 32))
    return Database(MYSQL, run, f"SELECT concat('https://a.example/', uuid()) AS url FROM {numbers}")


def sqlite(path: Path) -> Database:
    def run(sql: str, *rows: Any) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany(sql.replace("%s", "?"), rows) if rows else connection.execute(sql)

    counting = f"SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {BILLION}"
    return Database(
        f"sqlite:///{path}",
        run,
        f"WITH RECURSIVE c(n) AS ({counting}) SELECT 'https://a.example/' || n AS url FROM c",
    )


def opened(kind: str, folder: Path) -> Iterator[Database]:
    """A database of that kind that holds ROWS in TABLE."""
    database = {"postgresql": postgresql, "mysql": mysql}.get(kind, lambda: sqlite(folder / "shop.db"))()
    types = {"decimal": "decimal(10, 2)", "bytes": "bytea" if kind == "postgresql" else "blob"}
    if kind == "sqlite":
        types["decimal"] = "text"
    database.run(f"DROP TABLE IF EXISTS {TABLE}")
    database.run(f"CREATE TABLE {TABLE} ({COLUMNS.format(**types)})")
    database.run(f"INSERT INTO {TABLE} VALUES (%s, %s, %s, %s, %s, %s)", *ROWS)
    yield database
    database.run(f"DROP TABLE {TABLE}")
