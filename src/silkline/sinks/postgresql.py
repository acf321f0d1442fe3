"""A PostgreSQL table: one row per item, one column per field."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode
from zlib import crc32

import asyncpg
import msgspec

from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.outcome import MASK
from silkline.sinks.address import (
    CONNECT_SECONDS,
    STATEMENT_SECONDS,
    address_of,
    place_in,
    refuse_unknown,
    split_timeout,
)
from silkline.sinks.columns import FINGERPRINT, INDEX, KEY, Kind
from silkline.sinks.postgresql_columns import KEY_TYPES, KINDS, NAMING, TYPES, quoted
from silkline.sinks.postgresql_dates import ENCODERS
from silkline.sinks.sql import SqlSink
from silkline.sinks.table import Column, Places, Table, names_of, replaced

LOCK_SECONDS = 10.0
COPIED_AT_ONCE = 200_000
"""Values: about 15 ms."""
FILES = frozenset({"passfile", "sslcert", "sslcrl", "sslkey", "sslrootcert"})
OPTIONS = FILES | {
    *("application_name", "host", "service", "target_session_attrs"),
    *("sslmode", "sslpassword", "ssl_min_protocol_version", "ssl_max_protocol_version"),
}

AWAY = ("08", "53", "57", "58", "25006", "40", "55P03")
"""SQLSTATEs of what may pass: the connection, resources, an operator's intervention, the system, a server
that only reads, a transaction that has to be tried again, a lock."""
REFUSED = ("21", "22", "23", "44", "54", "P0001")
"""Of what is the fault of a row: its data, a constraint, a limit, a trigger of the user's."""

TOO_LARGE = "54000"
WIDE = (
    "the table has more columns than a page takes values: choose another one by ?table=, which gets no more "
    "than that, or drop columns of this one"
)
"""Of a table that is not ours, or was made when more columns were."""

COPIED = re.compile(r"COPY silkline_\w+, line \d+, column (.+)", re.M)
"""What an error in the batch's own table says of where it is."""

COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, b.typname, b.typcategory = 'A' AS list,
    a.atthasdef OR a.attidentity <> '' AS kept
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
UNIQUE = """
SELECT EXISTS (
    SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1
        AND i.indpred IS NULL AND a.attname = $2
)
"""
DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""

Record = tuple[Any, ...]


class PostgresqlSink(SqlSink):
    """Items as rows of a table, made and widened as they need it; see OwnSink and `protocols.KeyedSink`.

    A batch is copied into a temporary table and from there inserted, or put in place of the rows with the
    same `_key`, in one transaction. The columns are read in that transaction, under a lock that keeps
    other workers from adding some, so that what is replaced is replaced in every column.
    """

    failures = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
        ValueError,
    )

    def __init__(self, output: str, *, create: bool = True) -> None:
        """output: postgresql://user:password@host:5432/database?table=schema.table. Raises ConfigError."""
        address, seconds = split_timeout(address_of(output, create=create), STATEMENT_SECONDS)
        self._address = address = msgspec.structs.replace(address, scheme="postgresql")
        super().__init__(address.shown, address.batch, seconds)
        options = dict(address.options)
        refuse_unknown(address, OPTIONS)
        if not address.path and "service" not in options and not os.environ.get("PGDATABASE"):
            raise ConfigError(
                f"output {self.name!r} names no database: write postgresql://user:password@host:5432/database"
            )
        for name in FILES & options.keys():
            if not os.path.isfile(options[name]):
                raise ConfigError(f"output {self.name!r}: there is no file {options[name]!r} for {name}")
        for place in address.hosts.split(",") if address.hosts else ():
            place_in(self.name, place, 5432)
        self._tls = options.get("sslmode", os.environ.get("PGSSLMODE", ""))
        options.setdefault("application_name", "silkline")
        self._dsn = f"postgresql://{address.hosts}/{quote(address.path, safe='')}?{urlencode(options)}"
        schema, dot, table = address.table.rpartition(".")
        self._table = f"{quoted(schema)}.{quoted(table)}" if dot else quoted(table)
        self._batch_table = f"silkline_{crc32(self._table.encode()):08x}"
        self._connection: asyncpg.Connection | None = None
        self._copied: Table | None = None

    async def trim(self, pages: Mapping[int, int]) -> None:
        if not pages:
            return
        prefixes = [f"{page & MASK:016x}" for page in pages]
        async with self._asked() as connection:
            await connection.execute(
                f"DELETE FROM {self._table} t USING unnest($1::text[], $2::int[]) AS p(page, first) "
                f"WHERE t.{KEY} > p.page || '-' AND t.{KEY} < p.page || '.' AND t.{INDEX} >= p.first",
                prefixes,
                list(pages.values()),
            )

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await connection.close(timeout=2)

    async def _insert(
        self,
        connection: asyncpg.Connection,
        table: Table,
        places: Places,
        slices: Sequence[Sequence[Record]],
    ) -> bool:
        """Returns False where the table has changed meanwhile; then nothing was written."""
        await self._make_batch_table(connection, table)
        await connection.execute(f"BEGIN; LOCK TABLE {self._table} IN ROW EXCLUSIVE MODE")
        self._known = await self._read(connection)
        if self._known != table:
            await connection.execute("ROLLBACK")
            return False
        names = names_of(places)
        try:
            for records in _copied(slices, len(names)):
                await connection.copy_records_to_table(
                    self._batch_table, schema_name="pg_temp", columns=names, records=records
                )
        except (TypeError, ValueError, OverflowError) as error:  # a column of the user's own, mostly
            raise RowsRefused(_line(error)) from error
        except asyncpg.InternalClientError as error:
            if "encoder" in str(error):
                raise SinkError(f"{self.name}: {error}; choose another type for the column") from error
            raise
        listed = ", ".join(quoted(name) for name in names)
        anew = ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in replaced(table, places))
        await connection.execute(
            f"INSERT INTO {self._table} ({listed}) SELECT {listed} FROM pg_temp.{self._batch_table} "
            f"ON CONFLICT ({KEY}) DO UPDATE SET {anew}; COMMIT"
        )
        return True

    async def _make_batch_table(self, connection: asyncpg.Connection, table: Table) -> None:
        """Of the columns of the table, without its constraints; emptied by every commit."""
        if self._copied == table:
            return
        listed = ", ".join(quoted(name) for name in table.columns)
        await connection.execute(
            f"DROP TABLE IF EXISTS pg_temp.{self._batch_table}; "
            f"CREATE TEMPORARY TABLE {self._batch_table} ON COMMIT DELETE ROWS AS "
            f"SELECT {listed} FROM {self._table} WITH NO DATA"
        )
        await connection.reload_schema_state()
        self._copied = table

    async def _find(self, connection: asyncpg.Connection) -> Table:
        """The table, made if there is none and that is allowed. Raises SinkError where it is not usable."""
        table = await self._read(connection)
        if not table.columns:
            made = (
                f'CREATE TABLE IF NOT EXISTS {self._table} ({KEY} text COLLATE "C" PRIMARY KEY, '
                f"{FINGERPRINT} bigint NOT NULL, {INDEX} integer)"
            )
            if not self._address.create:
                raise SinkError(f"{self.name}: there is no such table; make it: {made}")
            await self._change(connection, made)
            table = await self._read(connection)
        missing = table.missing_keys()
        if missing or not await connection.fetchval(UNIQUE, self._table, KEY):
            columns = {KEY: 'text COLLATE "C" UNIQUE', FINGERPRINT: "bigint", INDEX: "integer"}
            added = ", ".join(f"ADD {name} {columns[name]}" for name in missing) or f"ADD UNIQUE ({KEY})"
            raise SinkError(
                f"{self.name}: the table is not one of silkline's; choose another by ?table=, or prepare "
                f"this one: ALTER TABLE {self._table} {added}"
            )
        for name in table.unfit_keys(KEY_TYPES):
            needed = KEY_TYPES[name][0]
            using = f"TYPE {needed} USING {name}::{needed.partition(' ')[0]}"
            raise SinkError(
                f"{self.name}: the column {name} is {table.columns[name].declared}; choose another table by "
                f"?table=, or change it: ALTER TABLE {self._table} ALTER COLUMN {name} {using}"
            )
        self._known = table
        return table

    async def _read(self, connection: asyncpg.Connection) -> Table:
        columns = {}
        for name, kind, base, is_list, kept in await connection.fetch(COLUMNS, self._table):
            takes = Kind.ARRAY if is_list else KINDS.get(base, Kind.TEXT)
            columns[name] = Column(name, kind, takes, kept)
        return Table(columns, NAMING)

    async def _alter(self, connection: asyncpg.Connection, table: Table, places: Places) -> None:
        """Add the columns that are missing, and widen those that are too narrow."""
        added = [
            f"ADD COLUMN IF NOT EXISTS {quoted(name)} {TYPES[kind]}" for name, kind in places.added.items()
        ]
        if added:
            statement = f"ALTER TABLE {self._table} {', '.join(added)}"
            if not self._address.create:
                name = next(iter(places.added))
                raise SinkError(f"{self.name}: the table has no column {name!r}; add it: {statement}")
            await self._change(connection, statement)
        for name, kind in places.widened.items():
            using = f"USING {quoted(name)}::text::{TYPES[kind]}"  # the text of a double has all its digits
            try:
                await self._change(
                    connection,
                    f"ALTER TABLE {self._table} ALTER COLUMN {quoted(name)} TYPE {TYPES[kind]} {using}",
                )
            except (asyncpg.FeatureNotSupportedError, asyncpg.DependentObjectsStillExistError) as error:
                raise RowsRefused(
                    f"{name}: {kind.value} do not fit its column, and {_line(error)}"
                ) from error
        self._known = await self._read(connection)

    async def _change(self, connection: asyncpg.Connection, statement: str) -> None:
        """Change the schema, one worker at a time."""
        lock = crc32(self._table.encode())
        await connection.execute(
            f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS:.0f}s'; "
            f"SELECT pg_advisory_xact_lock({lock}); {statement}; COMMIT"
        )

    def _may_widen(self, column: Column, kinds: set[Kind]) -> bool:
        return self._address.create and column.declared == TYPES[column.kind]

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            await self._hang_up()
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await asyncpg.connect(
                    self._dsn, user=self._address.user, password=self._address.password
                )
                self._connection = connection
                await connection.execute(
                    f"SET timezone = 'UTC'; SET client_min_messages = error; "
                    f"SET statement_timeout = {self._seconds * 1000:.0f}"
                )
                await connection.execute(DURABLE)
                for name, encoder in ENCODERS.items():
                    await connection.set_type_codec(
                        name, schema="pg_catalog", encoder=encoder, decoder=bytes, format="binary"
                    )
        return self._connection

    async def _rolled_back(self) -> bool:
        """Whether the connection can be used again."""
        connection = self._connection
        if connection is None or connection.is_closed():
            return False
        self._known = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connection.execute("ROLLBACK")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False
        return True

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self._known = self._copied = None
        if connection is not None:
            connection.terminate()

    def _meaning(self, error: Exception) -> SinkError:
        if isinstance(error, SinkError):
            return error
        if isinstance(error, TimeoutError):
            return SinkAwayError(f"{self.name} does not answer")
        state = getattr(error, "sqlstate", None) or ""
        line = _line(error)
        if _is_setting(error):
            advice = ""
            if isinstance(error, OSError):
                advice = "; it does not speak TLS, which sslmode asks for"
                if self._tls in ("", "prefer"):  # then a PostgreSQL without TLS is good enough
                    advice = "; it does not speak PostgreSQL's protocol: check the port"
            return SinkError(f"{self.name}: {line}{advice}")
        if state == TOO_LARGE and line.startswith("row is too big"):
            return RowsRefused(f"{line}; {WIDE}")
        if state.startswith(REFUSED):
            return RowsRefused(line)
        # Without a state it is the driver's own: the connection is closed, or about to be.
        if isinstance(error, OSError) or state.startswith(AWAY) or not state:
            return SinkAwayError(f"{self.name} is away: {line}")
        return SinkError(f"{self.name}: {line}{_advice(state)}")


def _copied(slices: Sequence[Sequence[Record]], width: int) -> Iterator[list[Record]]:
    """The records of each COPY: the driver makes no pause for the event loop in one."""
    records: list[Record] = []
    for part in slices:
        if records and (len(records) + len(part)) * width > COPIED_AT_ONCE:
            yield records
            records = []
        records += part
    yield records


def _is_setting(error: Exception) -> bool:
    """Whether what the URL says cannot be used: an option, or the server's certificate with it."""
    if isinstance(error, ssl.SSLError):
        return isinstance(error, ssl.SSLCertVerificationError)
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error):  # sslmode=require
        return True
    return isinstance(error, (asyncpg.ClientConfigurationError, ValueError))


def _line(error: Exception) -> str:
    detail = getattr(error, "detail", None)
    message = getattr(error, "message", None) or str(error)
    inner = isinstance(error, asyncpg.InternalClientError) and "encoder" not in message
    if inner or "connection_lost()" in message:
        message = "the connection broke off"  # what the driver says is of its inner states
    column = COPIED.search(getattr(error, "context", None) or "")
    if column and f'"{column[1]}"' not in message:
        message = f"{column[1]}: {message}"
    line = f"{message} ({detail})" if detail else message
    return (" ".join(line.split()) or type(error).__name__)[:300]


def _advice(state: str) -> str:
    if state.startswith("28"):
        return "; check the user and the password in the URL, $PGPASSWORD or ~/.pgpass"
    if state == "3D000":
        return "; create it: createdb NAME"
    if state == "3F000":
        return "; create it: CREATE SCHEMA NAME"
    if state == "42P01":
        return "; if it was dropped, run the same command again: it is made anew, for what comes from then on"
    if state == "42501":
        return "; grant it, or use another user"
    return ""
