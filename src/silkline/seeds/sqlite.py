"""Read a query of an SQLite file, row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from silkline.errors import ConfigError, SourceError
from silkline.resolve import redacted
from silkline.seeds.query import Fetched, failure

MAY_PASS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
PRIMARY_CODE = 0xFF


def fetch(database: str, sql: str, batch: int) -> Iterator[Fetched]:
    """See `query.Fetch`. The file is opened for reading only."""
    name = database.partition("://")[2]
    path = Path(name.removeprefix("/"))
    if not name.startswith("/") or not path.name:
        raise ConfigError(f"{redacted(database)!r} is no SQLite file: write sqlite:///path/to/file.db")
    if not path.is_file():
        raise ConfigError(f"{database}: no such file")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            cursor = connection.execute(sql)
            columns = tuple(column[0] for column in cursor.description or ())
            while rows := cursor.fetchmany(batch):
                yield Fetched(columns, rows)
            yield Fetched(columns, ())
    except (sqlite3.Error, sqlite3.Warning) as error:
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
        kind = SourceError if code in MAY_PASS else ConfigError
        raise kind(failure(database, error)) from error
