"""ClickHouse's types of columns, and what they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from silkline.sinks.columns import FINGERPRINT, FITS, INDEX, KEY, Fit, Json, Kind, Naming, text_of
from silkline.sinks.table import Column

VERSION, DELETED = "_version", "_deleted"
"""Of ReplacingMergeTree: which of several rows with one key counts, and whether it counts as none."""

MAX_COLUMNS = 1_000
MAX_NAME = 200

TYPES = {
    Kind.BOOL: "Nullable(Bool)",
    Kind.INT: "Nullable(Int64)",
    Kind.FLOAT: "Nullable(Float64)",
    Kind.DECIMAL: "Nullable(Decimal(76, 38))",
    Kind.DATETIME: "Nullable(DateTime64(6, 'UTC'))",
    Kind.DATE: "Nullable(Date32)",
    Kind.UUID: "Nullable(UUID)",
    **dict.fromkeys((Kind.TEXT, Kind.JSON, Kind.BYTES, Kind.TIME, Kind.INTERVAL), "Nullable(String)"),
}

_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")
_INTEGER = re.compile(r"(U?)Int(\d+)")
_DECIMAL = re.compile(r"Decimal\((\d+), (\d+)\)")
_KEYS = {KEY: "String", FINGERPRINT: "Int64", INDEX: "Nullable(Int32)"}


def usable(name: str) -> bool:
    """Whether it can be a column's name. `x.null` is a part of the column `x`, and a name in quotation marks
    is taken for one that is quoted already."""
    if not 0 < len(name) <= MAX_NAME or name in (VERSION, DELETED) or "\0" in name:
        return False
    return not name.endswith(".null") and not (name[0] in '`"' and name[-1] == name[0])


NAMING = Naming(lambda name: name, usable, MAX_COLUMNS)


def column_of(name: str, declared: str) -> Column:
    """A column that the table has; types that are not known here take text, which the server reads."""
    kind, fits = _kind_of(_bare(declared))
    return Column(name, declared, kind, fits=fits)


def native_of(column: Column) -> str:
    """The type that values are sent with. Where a column of the user's cannot be empty, the server puts its
    default in place of nothing."""
    if column.name in _KEYS:
        return _KEYS[column.name]
    if column.kind in (Kind.TEXT, Kind.FLOAT):
        return TYPES[column.kind]
    return f"Nullable({_bare(column.declared)})"


def quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _bare(declared: str) -> str:
    while match := _WRAPPED.fullmatch(declared):
        declared = match[1]
    return declared


def _kind_of(bare: str) -> tuple[Kind, Mapping[type, Fit] | None]:
    if match := _INTEGER.fullmatch(bare):
        bits = int(match[2])
        if bare == "Int64":
            return Kind.INT, None
        low, high = (0, 2**bits) if match[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return Kind.INT, dict.fromkeys((int, Decimal), _whole(low, high))
    if match := _DECIMAL.fullmatch(bare):
        fit = _exact(int(match[1]), int(match[2]))
        takes = FITS[Kind.DECIMAL]
        return Kind.DECIMAL, {kind: _after(fit, takes[kind]) for kind in takes}
    if bare in ("Float32", "Float64"):
        return Kind.FLOAT, None
    if bare in ("Bool", "UUID"):
        return Kind[bare.upper()], None
    if bare.startswith("DateTime"):
        wide = bare.startswith("DateTime64")
        first = datetime(1900 if wide else 1970, 1, 1, tzinfo=UTC)
        last = datetime(2300, 1, 1, tzinfo=UTC) if wide else datetime(2106, 2, 7, tzinfo=UTC)
        return Kind.DATETIME, {datetime: _between(first, last, FITS[Kind.DATETIME][datetime])}
    if bare in ("Date", "Date32"):
        first_day, last_day = date(1970, 1, 1), date(2149, 6, 7)
        if bare == "Date32":
            first_day, last_day = date(1900, 1, 1), date(2300, 1, 1)
        return Kind.DATE, {date: _between(first_day, last_day, FITS[Kind.DATE][date])}
    if bare.startswith("Array(") and "String" in bare:
        return Kind.TEXT, {**FITS[Kind.TEXT], Json: _texts}
    return Kind.TEXT, None


def _texts(value: str) -> str:
    """A list as the server reads one of texts, which JSON's quotation marks are nothing to."""
    parts = msgspec.json.decode(value.encode())
    if not isinstance(parts, list):
        raise ValueError(f"{value:.80} is no list")
    return "[" + ", ".join("NULL" if part is None else _literal(text_of(part)) for part in parts) + "]"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _whole(low: int, high: int) -> Fit:
    def fit(value: Any) -> int:
        whole = int(value)
        if whole != value or not low <= whole < high:
            raise ValueError(str(value))
        return whole

    return fit


def _exact(precision: int, scale: int) -> Fit:
    def fit(value: Decimal) -> Decimal | None:
        if not value.is_finite():
            return None  # as of floating point numbers
        _, digits, exponent = value.as_tuple()
        behind = -scale - int(exponent)
        if value and (value.adjusted() >= precision - scale or (behind > 0 and any(digits[-behind:]))):
            raise ValueError(f"{value!s:.80} has more digits than it can hold")
        return value

    return fit


def _after(second: Fit, first: Fit) -> Fit:
    return lambda value: second(first(value))


def _between(first: Any, end: Any, convert: Callable[[Any], Any]) -> Fit:
    def fit(value: Any) -> Any:
        converted = convert(value)
        if not first <= converted < end:
            raise ValueError(str(value))
        return converted

    return fit
