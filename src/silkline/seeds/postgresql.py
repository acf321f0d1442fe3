"""Read a PostgreSQL query through a server-side cursor: rows stay on the server until they are fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

from silkline.errors import ConfigError, SourceError
from silkline.seeds.query import Fetched, failure

DEFAULTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "fallback_application_name": "silkline seed",
}
"""libpq's own would wait for ever for a server that does not answer; the URL may say otherwise."""
REFUSED = ("28", "3D", "42")
"""SQLSTATE classes of what the user has to mend: authorization, catalog name, syntax or access rule."""


def fetch(database: str, sql: str, batch: int) -> Iterator[Fetched]:
    """See `query.Fetch`. The transaction is read only and lasts as long as the reading does."""
    scheme, _, rest = database.partition("://")
    url = f"{scheme.partition('+')[0].lower()}://{rest}"
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:  # its message may quote the password
        raise ConfigError(
            f"{failure(database, 'is no PostgreSQL URL')}; write postgresql://user:password@host:5432/name, "
            "with %XX for special characters"
        ) from error
    secrets = [str(value) for name, value in given.items() if "password" in name and value]
    options: dict[str, Any] = {**DEFAULTS, **given, "client_encoding": "utf8"}
    try:
        with psycopg.connect("", **options) as connection:
            connection.read_only = True
            _read_all_dates(connection)
            with connection.cursor(name="silkline_seed") as cursor:
                cursor.execute(sql.encode())  # as it is written: psycopg leaves bytes alone
                columns = tuple(column.name for column in cursor.description or ())
                while rows := cursor.fetchmany(batch):
                    yield Fetched(columns, rows)
                yield Fetched(columns, ())
    except psycopg.Error as error:
        line = failure(database, error, *secrets)
        if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "")[:2] not in REFUSED:
            raise SourceError(line) from error
        raise ConfigError(line) from error


def _read_all_dates(connection: psycopg.Connection[Any]) -> None:
    """Dates beyond those of Python (infinity, before Christ) are read as the server writes them."""
    connection.adapters.register_loader("date", _Date)
    connection.adapters.register_loader("timestamp", _Timestamp)
    connection.adapters.register_loader("timestamptz", _Timestamptz)


class _Date(DateLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Timestamp(TimestampLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Timestamptz(TimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


def _or_text(load: Any, data: Buffer) -> Any:
    try:
        return load(data)
    except psycopg.DataError:
        return bytes(data).decode()
