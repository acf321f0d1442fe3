"""The rows of a table in PostgreSQL, MySQL or MariaDB, read back as the items that they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from silkline.sinks.address import COMMON, address_of
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.columns import FINGERPRINT, INDEX, KEYS, MORE, Kind
from silkline.sinks.committed import Row, field_of

Fetch = Callable[[str, str, int], Iterator[tuple[Sequence[str], Sequence[Sequence[Any]]]]]
"""`fetch(url, sql, rows)` gives the columns and so many rows at once, at least once, in memory that does not
grow with their number."""

Convert = Callable[[Any], Any]

SCHEMES = ("postgresql", "postgres", "mysql", "mariadb")
AT_ONCE = 1_000
KNOWN = frozenset(
    [
        *(type(None), bool, int, float, str, list, dict),
        *(Decimal, date, datetime, time, timedelta, UUID, bytes),
    ]
)
"""Types of values that outputs have words for; of all others they get the text."""


class StoredTable:
    """All rows of a table that is an output, pages in the order of their fingerprints. The table of anybody
    else does, too.

    output: as for `-o`. fetch: asks the database.
    """

    columns = None

    def __init__(self, output: str, fetch: Fetch) -> None:
        """Raises ConfigError for a URL that could be no output, either."""
        self.path = keyed_sink_for(output).name
        self._fetch = fetch
        address = address_of(output)
        schema, dot, self._name = address.table.rpartition(".")
        self._schema = schema if dot else None
        self._is_mysql = address.scheme in ("mysql", "mariadb")
        self._url = _for_mysql(_plain(output)) if self._is_mysql else _plain(output)

    def rows(self) -> Iterator[Row]:
        """Raises what `fetch` does."""
        converts = self._mysql_converts() if self._is_mysql else {}
        columns = self._columns()
        order = ", ".join(name for name in (FINGERPRINT, INDEX) if name in columns)
        sql = f"SELECT * FROM {self._table}" + (f" ORDER BY {order}" if order else "")
        reader = RowReader(columns, converts)
        for _, rows in self._fetch(self._url, sql, AT_ONCE):
            yield from map(reader.row, rows)

    def _columns(self) -> Sequence[str]:
        ((columns, _), *_) = self._fetch(self._url, f"SELECT * FROM {self._table} LIMIT 0", 1)
        return columns

    @property
    def _table(self) -> str:
        if self._is_mysql:
            from silkline.sinks.mysql_values import quoted
        else:
            from silkline.sinks.postgresql_columns import quoted
        return ".".join(quoted(name) for name in (self._schema, self._name) if name is not None)

    def _mysql_converts(self) -> Mapping[str, Convert]:
        """By column: what was lost in the server's types."""
        from silkline.sinks.mysql import COLUMNS
        from silkline.sinks.mysql_values import JSONS, LITERALS, column_of

        def asked(sql: str) -> list[Sequence[Any]]:
            return [row for _, rows in self._fetch(self._url, sql, AT_ONCE) for row in rows]

        place = tuple(LITERALS[type(name)](name) for name in (self._schema, self._name))
        [[version]] = asked("SELECT VERSION()")
        jsons = {name for (name,) in asked(JSONS % place)} if "MariaDB" in version else set()
        converts = {}
        for row in asked(COLUMNS % place):
            column = column_of(*row, json=row[0] in jsons)
            kind = Kind.TEXT if column.declared.startswith("timestamp") else column.kind
            if (convert := MYSQL.get(kind)) is not None:
                converts[column.name] = convert
        return converts


class RowReader:
    """Makes items of rows with these columns. converts: for some of the columns."""

    def __init__(self, columns: Sequence[str], converts: Mapping[str, Convert]) -> None:
        places = {name: place for place, name in enumerate(columns)}
        self._page, self._index = places.get(FINGERPRINT), places.get(INDEX)
        self._more = places.get(MORE)
        self._fields = [
            (field_of(name), place, converts.get(name, _same))
            for name, place in places.items()
            if name not in (*KEYS, MORE)
        ]

    def row(self, values: Sequence[Any]) -> Row:
        record = {}
        size = 0
        for field, place, convert in self._fields:
            value = values[place]
            if value is not None:
                value = convert(value)
                if type(value) not in KNOWN:
                    value = bytes(value) if isinstance(value, memoryview) else str(value)
                size += len(value) if isinstance(value, (str, bytes)) else len(repr(value))
            record[field] = value
        if self._more is not None and (more := values[self._more]):
            record |= _json(more)
        return Row(record, size, self._key(values), typed=True)

    def _key(self, values: Sequence[Any]) -> tuple[int, int] | None:
        """None for an item with a key of its own, which has no place on its page."""
        if self._page is None or self._index is None:
            return None
        page, index = values[self._page], values[self._index]
        return None if page is None or index is None else (int(page), int(index))


def _plain(output: str) -> str:
    """The URL without the options that are no driver's."""
    place, _, query = output.partition("?")
    own = {"table", *COMMON}
    kept = [option for option in query.split("&") if option and option.partition("=")[0] not in own]
    return f"{place}?{'&'.join(kept)}" if kept else place


def _for_mysql(url: str) -> str:
    """With the words that the reading driver has for TLS."""
    place, _, query = url.partition("?")
    options = [option for option in query.split("&") if option and not option.startswith("ssl=")]
    if "ssl=false" in query.split("&"):
        options.append("ssl_disabled=true")
    elif "ssl=true" in query.split("&") and not any(option.startswith("ssl_") for option in options):
        options.append("ssl_verify_cert=false")
    return f"{place}?{'&'.join(options)}" if options else place


def _same(value: Any) -> Any:
    return value


def _json(value: Any) -> Any:
    """Of a driver that has taken it apart already, or that has not."""
    return msgspec.json.decode(value) if isinstance(value, (str, bytes)) else value


def _clock(value: Any) -> Any:
    if isinstance(value, timedelta) and timedelta() <= value < timedelta(days=1):
        return (datetime.min + value).time()
    return value


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _number(value: Any) -> Any:
    """Without the zeros that fill the column up."""
    return Decimal(f"{value.normalize():f}") if isinstance(value, Decimal) else value


MYSQL: Mapping[Kind, Convert] = {
    Kind.BOOL: bool,
    Kind.JSON: _json,
    Kind.TIME: _clock,
    Kind.LOCAL: _utc,
    Kind.DECIMAL: _number,
}
