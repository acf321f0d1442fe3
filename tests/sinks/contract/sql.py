"""The tables of SQL databases, read by the synchronous drivers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import psycopg
import pymysql
import pymysql.cursors
from psycopg.rows import dict_row

from silkline.seeds.mysql import options_from
from tests.seeds import databases
from tests.sinks.contract.target import Row, Target
from tests.sqlservers import MariadbServer, PostgresqlServer, SqlServer

ZONE = timezone(timedelta(hours=5, minutes=30))
NUMBER = UUID("12345678-1234-5678-1234-567812345678")
COMMON: Mapping[str, tuple[Any, Any]] = {
    "text": ("Chair", "Chair"),
    "empty": ("", ""),
    "yes": (True, True),
    "no": (False, False),
    "whole": (-(2**63), -(2**63)),
    "huge": (2**64, Decimal(2**64)),
    "double": (0.1 + 0.2, 0.1 + 0.2),
    "tiny": (5e-324, 5e-324),
    "nan": (float("nan"), None),
    "price": (Decimal("9.50"), Decimal("9.50")),
    "moment": (
        datetime(2030, 1, 31, 12, 0, 0, 123456, ZONE),
        datetime(2030, 1, 31, 6, 30, 0, 123456, UTC),
    ),
    "zoneless": (datetime(2030, 1, 31, 12), datetime(2030, 1, 31, 12, tzinfo=UTC)),
    "day": (date(2030, 1, 31), date(2030, 1, 31)),
    "clock": (time(23, 59, 59, 999999), time(23, 59, 59, 999999)),
    "zoned_clock": (time(1, 2, tzinfo=UTC), "01:02:00+00:00"),
    "number": (NUMBER, NUMBER),
    "data": (b"\x00\xff'\\", b"\x00\xff'\\"),
    "list": ([1, "zwei", None, {"a": 1.5}], [1, "zwei", None, {"a": 1.5}]),
    "dict": ({"a": {"b": "\u2028 ' \" \\"}}, {"a": {"b": "\u2028 ' \" \\"}}),
    "nothing": (None, None),
    "span": (timedelta(days=3, microseconds=7), timedelta(days=3, microseconds=7)),
}


class PostgresqlTarget(Target):
    kind = "postgresql"
    refused: ClassVar = {"text": "a\0b"}
    values = COMMON
    most = 330

    def __init__(self, database: str = "") -> None:
        super().__init__()
        if not database:
            databases.postgresql()
        self.database = database or databases.POSTGRESQL
        self.parts = urlsplit(self.database)
        self.host, self.port = self.parts.hostname or "127.0.0.1", self.parts.port or 5432

    def url(self, *, port: int | None = None, **options: str) -> str:
        place = self.parts.netloc if port is None else f"{self.parts.username}@127.0.0.1:{port}"
        return f"postgresql://{place}{self.parts.path}?{urlencode({'table': self.table, **options})}"

    @property
    def quoted(self) -> str:
        return '"' + self.table.replace('"', '""') + '"'

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"postgresql://nobody_such:s3cret@{self.host}:{self.port}"
        return {
            f"postgresql://postgres:s3cret@{self.host}:{self.port}/no_such_database": "createdb",
            f"{place}/test": "",
            f"{self.url()}&fancy=1": "there is no option 'fancy'",
            f"{self.url()}&timeout=soon": "timeout",
            f"{self.url()}&sslmode=perhaps": "sslmode",
            f"{self.url()}&sslmode=verify-full&sslrootcert=/no/such/file": "/no/such/file",
            self.url(table="no_such_schema.items"): "CREATE SCHEMA",
            f"postgresql://postgres:s3cret@{self.host}:99999/test": "host:5432",
            f"postgresql://postgres:s3cret@{self.host}:abc/test": "host:5432",
            f"{self.url()}&table=other": "table= stands there more than once",
        }

    def rows(self) -> list[Row]:
        with psycopg.connect(self.database, options="-c timezone=UTC") as connection:
            cursor = connection.cursor(row_factory=dict_row)
            if not cursor.execute("SELECT to_regclass(%s) AS found", [self.quoted]).fetchone()["found"]:
                return []
            return cursor.execute(f"SELECT * FROM {self.quoted} ORDER BY _key").fetchall()

    def names(self) -> Sequence[str]:
        with psycopg.connect(self.database) as connection:
            found = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'")
            return [name for (name,) in found]

    def run(self, statement: str) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    @classmethod
    @contextmanager
    def on_its_own_server(cls) -> Iterator[tuple[SqlServer, PostgresqlTarget]]:
        with PostgresqlServer() as server:
            yield server, cls(server.url)

    def drop(self) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.quoted}")


class MysqlTarget(Target):
    kind = "mysql"
    refused: ClassVar = {"price": Decimal("1e40")}
    values: ClassVar = COMMON | {
        "yes": (True, 1),
        "no": (False, 0),
        "moment": (COMMON["moment"][0], COMMON["moment"][1].replace(tzinfo=None)),
        "zoneless": (COMMON["zoneless"][0], COMMON["zoneless"][0]),
        "number": (NUMBER, str(NUMBER)),
        "span": (COMMON["span"][0], "P3DT0.000007S"),
        "clock": (COMMON["clock"][0], timedelta(days=1) - timedelta(microseconds=1)),
    }
    most = 150

    def __init__(self, database: str = "") -> None:
        super().__init__()
        if not database:
            databases.mysql()
        self.database = database or databases.MYSQL
        self.parts = urlsplit(self.database)
        self.host, self.port = self.parts.hostname or "127.0.0.1", self.parts.port or 3306

    def url(self, *, port: int | None = None, **options: str) -> str:
        place = self.parts.netloc if port is None else f"{self.parts.username}@127.0.0.1:{port}"
        return f"mysql://{place}{self.parts.path}?{urlencode({'table': self.table, **options})}"

    @property
    def quoted(self) -> str:
        return "`" + self.table.replace("`", "``") + "`"

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"{self.host}:{self.port}"
        return {
            f"mysql://root:s3cret@{place}/test": "check the user and the password",
            f"mysql://nobody_such:s3cret@{place}/test": "check the user and the password",
            self.url().replace("/test?", "/no_such_database?"): "CREATE DATABASE",
            f"mysql://root:s3cret@{place}": "names no database",
            f"mysql://root:s3cret@{self.host}:port/test": "host:3306",
            f"{self.url()}&fancy=1": "there is no option 'fancy'",
            f"{self.url()}&timeout=soon": "timeout",
            f"{self.url()}&ssl=perhaps": "ssl must be true or false",
            f"{self.url()}&ssl_ca=/no/such/file": "/no/such/file",
            f"{self.url()}&ssl=true": "does not speak TLS",
        }

    def _connect(self) -> Any:
        return closing(
            pymysql.connect(
                **options_from(self.database), autocommit=True, cursorclass=pymysql.cursors.DictCursor
            )
        )

    def rows(self) -> list[Row]:
        with self._connect() as connection, connection.cursor() as cursor:
            if self.table not in self.names():
                return []
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM {self.quoted} ORDER BY _key")
            rows = cursor.fetchall()
        jsons = {"list", "dict", "tags", "_more"}
        return [
            row | {"_key": row["_key"].decode()} | {name: loaded(row[name]) for name in jsons & row.keys()}
            for row in rows
        ]

    def names(self) -> Sequence[str]:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT TABLE_NAME AS name FROM information_schema.TABLES")
            return [row["name"] for row in cursor.fetchall()]

    def run(self, statement: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    @classmethod
    @contextmanager
    def on_its_own_server(cls) -> Iterator[tuple[SqlServer, MysqlTarget]]:
        with MariadbServer() as server:
            yield server, cls(server.url)

    def drop(self) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.quoted}")


def loaded(value: Any) -> Any:
    """JSON text as what it says."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
