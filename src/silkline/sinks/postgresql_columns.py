"""Types and names of columns as PostgreSQL has them."""

from __future__ import annotations

from silkline.sinks.columns import FINGERPRINT, INDEX, KEY, Kind, Naming
from silkline.sinks.table import Column, KeyTypes

MAX_COLUMNS = 330
"""With so many, any row fits in a page of 8 kB, whatever is in it. The server keeps a value of up to 24 bytes
in the row, and of a longer one a pointer: 330 * 24, and 72 for the row's head and the bitmap of its nulls,
are less than the 8,160 bytes that a row may have. Of columns alone it allows 1,600, with those that were
dropped."""
MAX_NAME = 63
"""Bytes: beyond them the server would cut a name off."""
SYSTEM = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})
"""Columns that every table has."""
SMALL = frozenset({"smallint", "integer"})
"""Too small for a fingerprint."""

TYPES = {
    Kind.BOOL: "boolean",
    Kind.INT: "bigint",
    Kind.FLOAT: "double precision",
    Kind.DECIMAL: "numeric",
    Kind.DATETIME: "timestamp with time zone",
    Kind.DATE: "date",
    Kind.TIME: "time without time zone",
    Kind.INTERVAL: "interval",
    Kind.UUID: "uuid",
    Kind.BYTES: "bytea",
    Kind.TEXT: "text",
    Kind.JSON: "jsonb",
}
KINDS = {
    "bool": Kind.BOOL,
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INT),
    **dict.fromkeys(("float4", "float8"), Kind.FLOAT),
    "numeric": Kind.DECIMAL,
    "timestamptz": Kind.DATETIME,
    "timestamp": Kind.LOCAL,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "interval": Kind.INTERVAL,
    "uuid": Kind.UUID,
    "bytea": Kind.BYTES,
    **dict.fromkeys(("json", "jsonb"), Kind.JSON),
}
"""By the server's own names of types; arrays are lists, and the others take text."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _usable(name: str) -> bool:
    return 0 < len(name.encode()) <= MAX_NAME and "\0" not in name and name not in SYSTEM


def _is_whole(column: Column) -> bool:
    return column.kind in (Kind.INT, Kind.DECIMAL)


NAMING = Naming(lambda name: name, _usable, MAX_COLUMNS)
KEY_TYPES: KeyTypes = {
    KEY: ('text COLLATE "C"', lambda column: column.kind is Kind.TEXT),
    FINGERPRINT: ("bigint", lambda column: _is_whole(column) and column.declared not in SMALL),
    INDEX: ("integer", _is_whole),
}
