"""A MySQL or MariaDB table: one row per item, one column per field."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import aiomysql
import pymysql

from silkline.errors import RowsRefused, SinkError
from silkline.outcome import MASK
from silkline.sinks.columns import FINGERPRINT, INDEX, KEY, Kind
from silkline.sinks.mysql_connection import Server, meaning_of
from silkline.sinks.mysql_values import JSONS, KEY_TYPES, NAMING, TYPES, column_of, literals, quoted
from silkline.sinks.sql import SqlSink
from silkline.sinks.table import Column, Places, Table, names_of, replaced

AT_MOST = 1024 * 1024
"""Bytes of a statement with more than one row; less where the server's max_allowed_packet says so."""
TRIMMED_AT_ONCE = 200
"""Pages."""
DUPLICATE_COLUMN = 1060
JSON_CHECK = re.compile(r"CONSTRAINT `(?:[^`]+`?\.`?)?([^`.]+)` failed")

COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COLUMN_DEFAULT, EXTRA FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(%s, DATABASE()) AND TABLE_NAME = %s AND EXTRA NOT LIKE '%%INVISIBLE%%'
ORDER BY ORDINAL_POSITION
"""
UNIQUE = """
SELECT INDEX_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = COALESCE(%s, DATABASE()) AND TABLE_NAME = %s AND NON_UNIQUE = 0
GROUP BY INDEX_NAME HAVING COUNT(*) = 1 AND MAX(COLUMN_NAME = '_key' AND SUB_PART IS NULL)
"""


class MysqlSink(SqlSink):
    """Items as rows of a table, made and widened as they need it; see OwnSink and `protocols.KeyedSink`.

    A batch is inserted, or put in place of the rows with the same `_key`, in one transaction. It begins with
    a look at the columns, which keeps other workers from adding some until it ends, so that what is
    replaced is replaced in every column.
    """

    failures = (pymysql.MySQLError, OSError)

    def __init__(self, output: str, *, create: bool = True) -> None:
        """output: mysql://user:password@host:3306/database?table=items. Raises ConfigError."""
        self._server = Server.of(output, create=create)
        super().__init__(self._server.name, self._server.batch, self._server.seconds)
        self._create = create
        schema, dot, self._name = self._server.table.rpartition(".")
        self._schema = schema if dot else None
        self._table = f"{quoted(schema)}.{quoted(self._name)}" if dot else quoted(self._name)
        self._connection: aiomysql.Connection | None = None
        self._most = AT_MOST
        self._clashing: set[str] = set()

    async def trim(self, pages: Mapping[int, int]) -> None:
        left = list(pages.items())
        async with self._asked() as connection:
            for start in range(0, len(left), TRIMMED_AT_ONCE):
                rules = " OR ".join(
                    f"({KEY} > '{page & MASK:016x}-' AND {KEY} < '{page & MASK:016x}.'"
                    f" AND {INDEX} >= {first:d})"
                    for page, first in left[start : start + TRIMMED_AT_ONCE]
                )
                await connection.query(f"DELETE FROM {self._table} WHERE {rules}")

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _insert(
        self,
        connection: aiomysql.Connection,
        table: Table,
        places: Places,
        slices: Sequence[Sequence[tuple[Any, ...]]],
    ) -> bool:
        values = []
        for part in slices:
            values.append(literals(part))
            await asyncio.sleep(0)
        await connection.query("START TRANSACTION")
        async with connection.cursor() as cursor:
            # Until the commit this look keeps everybody from changing the table (a metadata lock).
            await cursor.execute(f"SELECT * FROM {self._table} LIMIT 0")
            if [column[0] for column in cursor.description] != list(table.columns):
                await connection.query("ROLLBACK")
                self._known = None
                return False
        for statement in self._statements(table, places, values):
            await connection.query(statement)
        await connection.query("COMMIT")
        return True

    def _statements(self, table: Table, places: Places, slices: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
        """Of about a megabyte each, and none that the server would not take."""
        listed = ", ".join(quoted(name) for name in names_of(places))
        anew = [
            # Another unique index has found the row: that one is not to be replaced, and this is an error.
            f"{FINGERPRINT} = IF({KEY} = VALUES({KEY}), VALUES({FINGERPRINT}), NULL)",
            *(
                f"{quoted(name)} = VALUES({quoted(name)})"
                for name in replaced(table, places)
                if name != FINGERPRINT
            ),
        ]
        head = f"INSERT INTO {self._table} ({listed}) VALUES ".encode()
        tail = f" ON DUPLICATE KEY UPDATE {', '.join(anew)}".encode()
        room = self._most - len(head) - len(tail)
        statements: list[bytes] = []
        rows: list[bytes] = []
        size = 0
        for row in (row for part in slices for row in part):
            if rows and size + len(row) > room:
                statements.append(head + b",".join(rows) + tail)
                rows, size = [], 0
            rows.append(row)
            size += len(row) + 1
        statements.append(head + b",".join(rows) + tail)
        return statements

    async def _find(self, connection: aiomysql.Connection) -> Table:
        """The table, made if there is none and that is allowed. Raises SinkError where it is not usable."""
        table = await self._read(connection)
        if not table.columns:
            made = (
                f"CREATE TABLE IF NOT EXISTS {self._table} ({KEY} varbinary(768) NOT NULL PRIMARY KEY, "
                f"{FINGERPRINT} bigint NOT NULL, {INDEX} int) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
            )
            if not self._create:
                raise SinkError(f"{self.name}: there is no such table; make it: {made}")
            await connection.query(made)
            table = await self._read(connection)
        missing = table.missing_keys()
        if missing or not await self._fetch(connection, UNIQUE):
            columns = {KEY: "varbinary(768) UNIQUE", FINGERPRINT: "bigint NOT NULL", INDEX: "int"}
            added = ", ".join(f"ADD {name} {columns[name]}" for name in missing) or f"ADD UNIQUE ({KEY})"
            raise SinkError(
                f"{self.name}: the table is not one of silkline's; choose another by ?table=, or prepare "
                f"this one: ALTER TABLE {self._table} {added}"
            )
        for name in table.unfit_keys(KEY_TYPES):
            raise SinkError(
                f"{self.name}: the column {name} is {table.columns[name].declared}; choose another table by "
                f"?table=, or change it: ALTER TABLE {self._table} MODIFY COLUMN {name} {KEY_TYPES[name][0]}"
            )
        self._known = table
        return table

    async def _read(self, connection: aiomysql.Connection) -> Table:
        found = await self._fetch(connection, COLUMNS)
        # MariaDB's JSON is text that is checked.
        jsons = set()
        if "MariaDB" in connection.get_server_info():
            jsons = {name for (name,) in await self._fetch(connection, JSONS)}
        columns = {row[0]: column_of(*row, json=row[0] in jsons) for row in found}
        return Table(columns, NAMING.without(self._clashing))

    async def _fetch(self, connection: aiomysql.Connection, query: str) -> Sequence[tuple[Any, ...]]:
        async with connection.cursor() as cursor:
            await cursor.execute(query, (self._schema, self._name))
            rows: Sequence[tuple[Any, ...]] = await cursor.fetchall()
            return rows

    async def _alter(self, connection: aiomysql.Connection, table: Table, places: Places) -> None:
        """Add the columns that are missing, and widen those that are too narrow."""
        changes = [f"ADD COLUMN {quoted(name)} {TYPES[kind]}" for name, kind in places.added.items()]
        if changes and not self._create:
            name = next(iter(places.added))
            statement = f"ALTER TABLE {self._table} {', '.join(changes)}"
            raise SinkError(f"{self.name}: the table has no column {name!r}; add it: {statement}")
        changes += [f"MODIFY COLUMN {quoted(name)} {TYPES[kind]}" for name, kind in places.widened.items()]
        self._known = None
        try:
            await connection.query(f"ALTER TABLE {self._table} {', '.join(changes)}")
        except pymysql.MySQLError as error:
            if error.args[0] != DUPLICATE_COLUMN:
                raise
            await self._add_singly(connection, table, places)

    async def _add_singly(self, connection: aiomysql.Connection, table: Table, places: Places) -> None:
        """Another worker has added some of the columns; or the server holds a name for another one's."""
        before = await self._read(connection)
        if before.columns.keys() != table.columns.keys():
            return
        for name, kind in places.added.items():
            try:
                await connection.query(f"ALTER TABLE {self._table} ADD COLUMN {quoted(name)} {TYPES[kind]}")
            except pymysql.MySQLError as error:
                if error.args[0] != DUPLICATE_COLUMN:
                    raise
                if name not in (await self._read(connection)).columns:
                    self._clashing.add(name)

    def _may_widen(self, column: Column, kinds: set[Kind]) -> bool:
        """Only what loses nothing: not every double is a decimal number here."""
        return self._create and column.kind is Kind.INT and column.declared.startswith("bigint")

    async def _connected(self) -> aiomysql.Connection:
        if self._connection is None or self._connection.closed:
            self._known = None
            self._connection, packet = await self._server.connected()
            self._most = min(AT_MOST, packet - 1024)
        return self._connection

    def _meaning(self, error: Exception) -> SinkError:
        meaning = meaning_of(self.name, error)
        check = JSON_CHECK.search(str(meaning)) if isinstance(meaning, RowsRefused) else None
        column = self._known.columns.get(check[1]) if check and self._known else None
        if column is not None and column.kind is Kind.JSON:  # what is written to it is JSON: it is too deep
            return RowsRefused(f"{column.name}: MariaDB's JSON nests 32 levels at most ({meaning})")
        return meaning

    async def _rolled_back(self) -> bool:
        """Whether the connection can be used again."""
        self._known = None
        if self._connection is None or self._connection.closed:
            return False
        try:
            async with asyncio.timeout(self._seconds):
                await self._connection.query("ROLLBACK")
        except (pymysql.MySQLError, OSError):
            return False
        return True

    async def _hang_up(self) -> None:
        self._known = None
        await self.close()
