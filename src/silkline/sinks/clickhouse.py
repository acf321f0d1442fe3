"""A ClickHouse table: one row per item, one column per field."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from clickhouse_connect.driver import create_async_client
from clickhouse_connect.driver.asyncclient import AsyncClient

from silkline.errors import ConfigError, RowsRefused, SinkError
from silkline.outcome import Batch, Item
from silkline.sinks.address import (
    CONNECT_SECONDS,
    STATEMENT_SECONDS,
    Address,
    address_of,
    refuse_unknown,
    split_timeout,
)
from silkline.sinks.clickhouse_columns import DELETED, NAMING, TYPES, VERSION, column_of, native_of, quoted
from silkline.sinks.clickhouse_errors import is_stale, meaning_of
from silkline.sinks.columns import KEYS, Kind, Prepared, prepared
from silkline.sinks.failing import opening
from silkline.sinks.keyed import OwnSink
from silkline.sinks.rows import Rows
from silkline.sinks.table import Column, Places, Table, columns_of, names_of, places_for

USUAL = Batch(count=10_000, seconds=1.0)
"""Every write makes a part that the server has to merge later: few large ones are what it likes."""
PAGES = 2_000
"""Of one statement that trims."""

SETTINGS = {
    # The batches are large already, and durable when the server answers.
    "async_insert": "0",
    # A replicated table would take a batch that is written once more for one that it has already, and drop
    # it, though others were written in between.
    "insert_deduplicate": "0",
}
FILES = ("ca_cert", "client_cert", "client_cert_key")
OPTIONS = frozenset({*FILES, "compress", "http_proxy", "https_proxy", "server_host_name", "verify"})
SETTING = "ch_"
"""In front of the name of a server's setting."""

CREATE = """
CREATE TABLE IF NOT EXISTS {table} (_key String, _fingerprint Int64, _index Nullable(Int32),
_version UInt64 DEFAULT toUnixTimestamp64Nano(now64(9)), _deleted UInt8 DEFAULT 0,
INDEX _pages _fingerprint TYPE minmax GRANULARITY 1)
ENGINE = ReplacingMergeTree(_version, _deleted) ORDER BY _key
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
"""
"""Most keys begin with their page, so that the index of pages leaves little of the table over."""
TRIM = """
INSERT INTO {table} (_key, _fingerprint, _index, _deleted)
SELECT _key, any(_fingerprint), any(_index), 1 FROM {table}
WHERE _fingerprint IN ({pages}) AND _index >= transform(_fingerprint, [{pages}], [{indexes}], 0)
GROUP BY _key HAVING argMax(_deleted, _version) = 0
"""
COLUMNS = """
SELECT name, type, default_kind FROM system.columns
WHERE database = {database:String} AND table = {table:String} ORDER BY position
"""
ENGINE = "SELECT engine FROM system.tables WHERE database = {database:String} AND name = {table:String}"
INTERNAL = (*KEYS, VERSION, DELETED)

# The driver logs lost connections with a traceback, and raises what matters of them. Where nobody has set up
# logging, that would go to the terminal.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())


class ClickHouseSink(OwnSink):
    """Items as rows of a ReplacingMergeTree, made and widened as it needs it; see OwnSink and
    `protocols.KeyedSink`.

    A row that is written again is a new row of the same `_key` with a later `_version` (the server's clock);
    merges drop the older ones, and queries with FINAL never see them. What is removed is replaced by a row
    that is marked as deleted, since deleting rewrites whole parts of the table.
    """

    def __init__(self, output: str, *, create: bool = True) -> None:
        """output: clickhouse://user:password@host:8123/database?table=items, or clickhouses:// for TLS.

        Raises ConfigError.
        """
        address = address_of(output, create=create, usual=USUAL)
        self._address, self._seconds = split_timeout(address, STATEMENT_SECONDS)
        super().__init__(address.shown, address.batch)
        self._arguments = _arguments(self._address, self._seconds)
        self._database = address.path or "default"
        self._table = f"{quoted(self._database)}.{quoted(address.table)}"
        self._client: AsyncClient | None = None
        self._known: Table | None = None

    def encode(self, fields: Mapping[str, Any]) -> Prepared:
        return prepared(fields)

    async def open(self) -> None:
        with opening():
            async with self._asked() as client:
                self._known = await self._find(client)

    async def write(self, items: Sequence[Item]) -> None:
        if not items:
            return
        rows = await Rows.of(items, self.name)
        for first in (True, False):
            try:
                async with self._asked() as client:
                    await self._insert(client, rows)
                return
            except SinkError as error:
                # Somebody has changed the table since it was looked at.
                if not (first and is_stale(error)):
                    raise
                self._known = None

    async def trim(self, pages: Mapping[int, int]) -> None:
        listed = list(pages.items())
        for start in range(0, len(listed), PAGES):
            part = listed[start : start + PAGES]
            numbers = ", ".join(str(int(page)) for page, _ in part)
            indexes = ", ".join(str(int(index)) for _, index in part)
            async with self._asked() as client:
                await client.command(TRIM.format(table=self._table, pages=numbers, indexes=indexes))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _insert(self, client: AsyncClient, rows: Rows) -> None:
        while True:
            table = self._known or await self._find(client)
            places = places_for(rows, table, self._may_widen)
            if places.fit:
                break
            await self._alter(client, table, places)
        names = names_of(places)
        columns = await columns_of(rows, table, places)
        await client.insert(
            self._table,
            columns,
            column_names=names,
            column_type_names=[native_of(table.columns[name]) for name in names],
            column_oriented=True,
        )

    async def _find(self, client: AsyncClient) -> Table:
        """The table, made if there is none and that is allowed. Raises SinkError where it is not usable."""
        table = await self._read(client)
        if not table.columns:
            made = " ".join(CREATE.format(table=self._table).split())
            if not self._address.create:
                raise SinkError(f"{self.name}: there is no such table; make it: {made}")
            await client.command(made)
            table = await self._read(client)
        return table

    async def _check(self, client: AsyncClient, columns: Mapping[str, Column]) -> None:
        missing = [name for name in INTERNAL if name not in columns]
        engine = await client.command(ENGINE, parameters=self._place)
        # A view, or a table that spreads the rows over several servers, knows best where they go.
        if missing or (str(engine).endswith("MergeTree") and "Replacing" not in str(engine)):
            reason = f"it has no column {missing[0]}" if missing else f"its engine is {engine}"
            raise SinkError(
                f"{self.name}: the table is not one of silkline's ({reason}): choose another by ?table=, or "
                "let silkline make it and alter it then"
            )

    async def _read(self, client: AsyncClient) -> Table:
        found = await client.query(COLUMNS, parameters=self._place)
        columns = {
            name: column_of(name, declared)
            for name, declared, default in found.result_rows
            if default not in ("MATERIALIZED", "ALIAS")
        }
        if columns:
            await self._check(client, columns)
        # What is the engine's own is no column for a field.
        return Table({n: column for n, column in columns.items() if n not in (VERSION, DELETED)}, NAMING)

    async def _alter(self, client: AsyncClient, table: Table, places: Places) -> None:
        changes = [
            f"ADD COLUMN IF NOT EXISTS {quoted(name)} {TYPES[kind]}" for name, kind in places.added.items()
        ]
        changes += [f"MODIFY COLUMN {quoted(name)} {TYPES[kind]}" for name, kind in places.widened.items()]
        statement = f"ALTER TABLE {self._table} " + ", ".join(changes)
        if not self._address.create:
            self._known = None  # to be read again
            raise SinkError(
                f"{self.name}: the table has no column {next(iter(places.added))!r}; add it: {statement}"
            )
        await client.command(statement, settings={"alter_sync": "1", "mutations_sync": "1"})
        self._known = await self._read(client)

    def _may_widen(self, column: Column, kinds: set[Kind]) -> bool:
        """Only what can be made of every value without a loss."""
        return self._address.create and column.kind is Kind.INT and column.declared == TYPES[Kind.INT]

    @property
    def _place(self) -> dict[str, str]:
        return {"database": self._database, "table": self._address.table}

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[AsyncClient]:
        """A connection, and errors as what they mean."""
        try:
            async with asyncio.timeout(self._seconds):
                if self._client is None:
                    self._client = await create_async_client(**self._arguments)
                yield self._client
        except SinkError:
            raise
        except Exception as error:
            meaning = meaning_of(self.name, error)
            if meaning is None:
                raise
            if not isinstance(meaning, RowsRefused):
                self._known = None
            raise meaning from error


def _arguments(address: Address, seconds: float) -> dict[str, Any]:
    """What the driver is called with. Raises ConfigError."""
    host, _, port = address.hosts.rpartition(":") if address.hosts[-1:] != "]" else ("", "", "")
    if not port.isdecimal():
        host, port = address.hosts, ""
    if not host or "," in host:
        raise ConfigError(f"output {address.shown!r}: name one server, as in clickhouse://localhost/shop")
    settings = dict(SETTINGS)
    options: dict[str, Any] = {}
    own = {name for name in address.options if name.startswith(SETTING)}
    refuse_unknown(address, OPTIONS | own, ", and ch_NAME for a setting of the server")
    for name, value in address.options.items():
        if name in own:
            settings[name.removeprefix(SETTING)] = value
        elif name in FILES and value != "certifi" and not os.path.isfile(value):
            raise ConfigError(f"output {address.shown!r}: there is no file {value!r} for {name}")
        else:
            options[name] = value
    secure = address.scheme == "clickhouses"
    return {
        "interface": "https" if secure else "http",
        "host": host.strip("[]"),
        "port": int(port) if port else 8443 if secure else 8123,
        "username": address.user,
        "password": address.password or "",
        "database": address.path or None,
        "settings": settings,
        "connect_timeout": min(CONNECT_SECONDS, seconds),
        "send_receive_timeout": seconds,
        "client_name": "silkline",
        "autogenerate_session_id": False,
        "show_clickhouse_errors": True,
        **options,
    }
