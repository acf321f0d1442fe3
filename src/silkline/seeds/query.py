"""The rows of a database query as seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any, NamedTuple

from silkline.errors import ConfigError, TaskError
from silkline.request import Request
from silkline.resolve import redacted
from silkline.seeds.entries import BATCH
from silkline.seeds.rows import RowReader
from silkline.seeds.source import Refusals


class Fetched(NamedTuple):
    """Some rows of a query's answer. There is at least one, if an empty one, for each query."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


Fetch = Callable[[str, str, int], Iterator[Fetched]]
"""Run a query on the database at a URL, reading so many rows at once, in memory that does not grow with
their number. Closing the iterator ends the connection.

Raises ConfigError for what the user has to mend and SourceError for what may pass. Neither shows a password.
"""


class _Home(NamedTuple):
    module: str
    driver: str
    extra: str


_POSTGRESQL = _Home("silkline.seeds.postgresql", "psycopg", "postgresql")
_MYSQL = _Home("silkline.seeds.mysql", "pymysql", "mysql")
_HOMES = {
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": _Home("silkline.seeds.sqlite", "sqlite3", ""),
}


class Query:
    """The rows of a query, one request each: see SeedSource; what the columns mean is said by RowReader.

    database: postgresql://user:password@host:5432/name, mysql://user:password@host:3306/name (also for
        MariaDB) or sqlite:///path/to/file.db. The database is only read.
    sql: what gives the rows, with a column `url`.
    batch: rows that are fetched at once.
    """

    def __init__(self, database: str, sql: str, *, batch: int = BATCH) -> None:
        """Raises ConfigError for another kind of database, and where its driver is not installed."""
        self._fetch = fetch_for(database)
        self._database = database
        self._sql = sql
        self._batch = batch
        self._refusals = Refusals()

    @property
    def invalid(self) -> int:
        return self._refusals.invalid

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._refusals.reasons

    def __iter__(self) -> Iterator[list[Request]]:
        """Raises ConfigError for a database that refuses the user or the query, and an answer without a
        column url or a valid row; SourceError for one that cannot be reached or goes away."""
        reader: RowReader | None = None
        number, valid, known = 0, 0, self.invalid
        fetched = self._fetch(self._database, self._sql, self._batch)
        with closing(fetched):  # type: ignore[type-var]
            for columns, rows in fetched:
                reader = reader or RowReader(columns)
                batch = []
                for number, row in enumerate(rows, number + 1):  # noqa: B020 - goes on from the last one
                    try:
                        batch.append(reader.request(row))
                    except TaskError as error:
                        self._refusals.add(f"row {number}", error)
                if batch:
                    valid += len(batch)
                    yield batch
        if number and not valid:
            raise ConfigError(f"the query gives no valid URL; {self._refusals.first_since(known)}")


def fetch_for(database: str) -> Fetch:
    """What asks the database at this URL. Raises ConfigError for another kind of database, and where its
    driver is not installed."""
    scheme = database.partition("://")[0].partition("+")[0].lower() if "://" in database else ""
    if scheme not in _HOMES:
        raise ConfigError(
            f"{redacted(database)!r} is no database that can be read: write postgresql://user@host/name, "
            "mysql://user@host/name or sqlite:///path/to/file.db"
        )
    home = _HOMES[scheme]
    try:
        module = import_module(home.module)
    except ModuleNotFoundError as error:
        if error.name != home.driver:
            raise
        raise ConfigError(
            f"{scheme}:// needs the driver {home.driver}: pip install 'silkline[{home.extra}]'"
        ) from error
    fetch: Fetch = module.fetch
    return fetch


def failure(database: str, error: object, *secrets: str | None) -> str:
    """What went wrong with a database, in one line, without its passwords."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    for secret in filter(None, secrets):
        line = line.replace(secret, "***")
    return f"{redacted(database)}: {line}"
