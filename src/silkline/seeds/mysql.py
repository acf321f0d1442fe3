"""Read a MySQL or MariaDB query through an unbuffered cursor, which takes rows one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import SSCursor

from silkline.errors import ConfigError, SourceError
from silkline.seeds.query import Fetched, failure

NUMBERS = {"connect_timeout", "read_timeout", "write_timeout"}
TEXTS = {"unix_socket", "charset", "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password"}
FLAGS = {"ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"}
YEAR = 31_536_000
GREETING = 10
"""Seconds for the server's first words, where the URL does not say connect_timeout."""
MAY_PASS = {
    ER.CON_COUNT_ERROR,
    ER.SERVER_SHUTDOWN,
    ER.LOCK_WAIT_TIMEOUT,
    ER.LOCK_DEADLOCK,
    ER.QUERY_INTERRUPTED,
    ER.QUERY_TIMEOUT,
    ER.STATEMENT_TIMEOUT,
    1927,  # MariaDB: connection was killed
    0,  # PyMySQL: the connection is closed
}
"""Errors of the server that may be gone the next time; those of the client (2000 to 2999) may all."""


def fetch(database: str, sql: str, batch: int) -> Iterator[Fetched]:
    """See `query.Fetch`."""
    options = options_from(database)
    secrets = (options["password"], options.get("ssl_key_password"))
    connection = cursor = None
    try:
        connection = _connected(database, options)
        # A reader may pause, for as long as a frontier is full: the server must not give up on it.
        with connection.cursor() as settings:
            settings.execute(f"SET SESSION net_write_timeout = {YEAR}")
            settings.execute("SET SESSION TRANSACTION READ ONLY")
        cursor = SSCursor(connection)
        cursor.execute(sql)
        columns = tuple(column[0] for column in cursor.description or ())
        while rows := cursor.fetchmany(batch):
            yield Fetched(columns, rows)
        yield Fetched(columns, ())
    except pymysql.Error as error:
        code = error.args[0] if error.args else 0
        line = failure(database, error.args[-1] if error.args else error, *secrets)
        passing = code in MAY_PASS or (isinstance(code, int) and CR.CR_ERROR_FIRST <= code < 3_000)
        raise (SourceError if passing else ConfigError)(line) from error
    finally:
        if cursor is not None and cursor._result is not None:
            # Hang up without reading what is left of the answer, which may be gigabytes.
            cursor._result.unbuffered_active = False
        if connection is not None and connection.open:
            connection.close()


def _connected(database: str, options: dict[str, Any]) -> Any:
    patience = options.get("read_timeout")
    try:
        # What answers may be no MySQL, and never say a word: the greeting has as long as the connection.
        connection = pymysql.connect(**{**options, "read_timeout": options.get("connect_timeout", GREETING)})
        connection._read_timeout = patience
        return connection
    except (OSError, RuntimeError) as error:  # a certificate's file, a package that the login needs
        raise ConfigError(failure(database, error)) from error


def options_from(database: str) -> dict[str, Any]:
    """The arguments of pymysql.connect that a URL means. Raises ConfigError."""
    try:
        parts = urlsplit(database)
        port = parts.port
    except ValueError as error:
        raise ConfigError(
            f"{failure(database, 'is no MySQL URL')}; write mysql://user:password@host:3306/name, "
            "with %XX for special characters"
        ) from error
    options: dict[str, Any] = {
        "host": unquote(parts.hostname or "127.0.0.1"),
        "port": port or 3306,
        "user": unquote(parts.username or "") or None,
        "password": unquote(parts.password or "") or os.environ.get("MYSQL_PWD", ""),
        "database": unquote(parts.path.removeprefix("/")) or None,
        "charset": "utf8mb4",
        "program_name": "silkline seed",
    }
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in TEXTS:
            options[name] = value
        elif name in NUMBERS and value.isdigit():
            options[name] = int(value)
        elif name in FLAGS and value in ("true", "false"):
            options[name] = value == "true"
        elif name in NUMBERS | FLAGS:
            kind = "a whole number" if name in NUMBERS else "true or false"
            raise ConfigError(failure(database, f"{name} must be {kind}"))
        else:
            known = ", ".join(sorted(NUMBERS | TEXTS | FLAGS))
            raise ConfigError(failure(database, f"there is no parameter {name!r}; there are: {known}"))
    return options
