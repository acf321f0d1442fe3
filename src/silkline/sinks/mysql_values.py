"""Types, names and values as MySQL and MariaDB have them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pymysql.converters import escape_date, escape_datetime, escape_string, escape_time

from silkline.sinks.columns import FINGERPRINT, FITS, INDEX, KEY, Json, Kind, Naming
from silkline.sinks.table import Column, KeyTypes

MAX_COLUMNS = 150
"""InnoDB keeps a part of every text in the row, whose size is limited to half a page."""
MAX_NAME = 64
DIGITS, PLACES = 65, 30
"""Of decimal numbers: in all, and behind the point."""

TYPES = {
    Kind.BOOL: "boolean",
    Kind.INT: "bigint",
    Kind.FLOAT: "double",
    Kind.DECIMAL: f"decimal({DIGITS},{PLACES})",
    Kind.DATETIME: "datetime(6)",
    Kind.DATE: "date",
    Kind.TIME: "time(6)",
    Kind.INTERVAL: "longtext",
    Kind.UUID: "char(36)",
    Kind.BYTES: "longblob",
    Kind.TEXT: "longtext",
    Kind.JSON: "json",
}
KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), Kind.INT),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    "decimal": Kind.DECIMAL,
    **dict.fromkeys(("datetime", "timestamp"), Kind.LOCAL),
    "date": Kind.DATE,
    "time": Kind.TIME,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Kind.BYTES),
    "json": Kind.JSON,
}
"""By the server's own names of types; the others take text."""

JSONS = """
SELECT CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = COALESCE(%s, DATABASE()) AND TABLE_NAME = %s
    AND CHECK_CLAUSE = CONCAT('json_valid(`', CONSTRAINT_NAME, '`)')
"""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def folded(name: str) -> str:
    """Names that the server holds for the same are equal; it looks at neither case nor accents."""
    return "".join(unicodedata.normalize("NFD", letter)[0].upper()[0] for letter in name)


def usable(name: str) -> bool:
    """Names have the characters of the Basic Multilingual Plane, without NUL, and end with no space."""
    return 0 < len(name) <= MAX_NAME and name[-1] != " " and "\0" not in name and max(name) <= "\uffff"


class Names(Naming, frozen=True):
    def without(self, clashing: Iterable[str]) -> Naming:
        """The same, but for some names that turned out to be taken."""
        taken = frozenset(clashing)
        return Naming(self.fold, lambda name: name not in taken and self.usable(name), self.most)


NAMING = Names(folded, usable, MAX_COLUMNS)


def _decimal(value: Decimal) -> Decimal:
    """A number that the server need not round."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no number")
    if value and (-exponent > PLACES or len(digits) + exponent > DIGITS - PLACES):
        raise ValueError(f"{value} has too many digits")
    return value


DECIMALS = {
    Decimal: _decimal,
    int: lambda value: _decimal(Decimal(value)),
    float: lambda value: _decimal(Decimal(repr(value))),
}


def _is_signed(column: Column) -> bool:
    return column.kind is Kind.DECIMAL or (
        column.kind is Kind.INT and column.declared.startswith("bigint") and "unsigned" not in column.declared
    )


KEY_TYPES: KeyTypes = {
    KEY: ("varbinary(768) NOT NULL", lambda column: column.declared.startswith(("varbinary", "varchar"))),
    FINGERPRINT: ("bigint NOT NULL", _is_signed),
    INDEX: ("int", lambda column: column.kind in (Kind.INT, Kind.DECIMAL)),
}


def column_of(name: str, kind: str, declared: str, default: Any, extra: str, *, json: bool = False) -> Column:
    """A column from what information_schema.COLUMNS says of it."""
    takes = KINDS.get(kind.lower(), Kind.TEXT)
    if declared.lower() == "tinyint(1)":
        takes = Kind.BOOL
    elif json:
        takes = Kind.JSON
    kept = default not in (None, "NULL") or "GENERATED" in extra.upper() or "auto_increment" in extra
    return Column(name, declared, takes, kept, DECIMALS if takes is Kind.DECIMAL else FITS[takes])


def _text(value: str) -> str:
    return f"'{escape_string(value)}'"


LITERALS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "NULL",
    bool: lambda value: "1" if value else "0",
    int: str,
    float: lambda value: repr(value) if "e" in repr(value) else f"{value!r}e0",
    Decimal: lambda value: f"{value:f}",
    str: _text,
    Json: _text,
    bytes: lambda value: f"x'{value.hex()}'",
    datetime: escape_datetime,
    date: escape_date,
    time: escape_time,
}


def literals(records: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Rows as they stand behind VALUES, in a session without NO_BACKSLASH_ESCAPES."""
    return [
        f"({','.join([LITERALS[type(value)](value) for value in record])})".encode() for record in records
    ]
