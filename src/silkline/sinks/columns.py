"""Which column a field of the items gets, and what its column makes of a value."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from silkline.errors import RowsRefused
from silkline.sinks.record import json_of

KEY, FINGERPRINT, INDEX = KEYS = ("_key", "_fingerprint", "_index")
"""Of tables whose rows are told apart by `Item.identity`."""
MORE = "_more"
"""The column of fields that can have none, as JSON."""
EXACT = 2**53
"""Up to here a double has every whole number."""


class Naming(msgspec.Struct, frozen=True):
    """What a database allows. fold: equal for names that it holds for the same. usable: whether it can be a
    column's name. most: columns of a table."""

    fold: Callable[[str], Any]
    usable: Callable[[str], bool]
    most: int


def column_for(field: str, taken: Mapping[Any, str], naming: Naming) -> str | None:
    """The column of a field: its own name, or that with a checksum where another column has it already.

    Follows from the columns that the table has, since it must come out the same in every process and run.
    None where the field has to go into `_more`. `taken`: columns by folded name, "" for internal ones.
    """
    for column in (field, f"{field}_{zlib.crc32(field.encode()):08x}"):
        owner = taken.get(naming.fold(column))
        if owner == column:
            return column
        if owner is None and naming.usable(column) and len(taken) < naming.most:
            return column
    return None


class Json(str):
    """The JSON text of a list or a dict."""

    __slots__ = ()


class Kind(Enum):
    """What kind of values a column takes."""

    BOOL = "true or false"
    INT = "whole numbers"
    FLOAT = "floating point numbers"
    DECIMAL = "decimal numbers"
    DATETIME = "moments"
    LOCAL = "moments without a time zone, taken for UTC"
    DATE = "dates"
    TIME = "times of day"
    INTERVAL = "spans of time"
    UUID = "UUIDs"
    BYTES = "bytes"
    TEXT = "text"
    JSON = "JSON"
    ARRAY = "lists"


NUMBERS = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL})
KIND_OF: dict[type, Kind] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    datetime: Kind.DATETIME,
    date: Kind.DATE,
    time: Kind.TIME,
    timedelta: Kind.INTERVAL,
    UUID: Kind.UUID,
    bytes: Kind.BYTES,
    str: Kind.TEXT,
    Json: Kind.JSON,
}


class Shape:
    """The fields of an item and the types of their values, NoneType for None; what is planned once for all
    items of a kind. Equal ones are one object, as long as they are in use."""

    def __init__(self, names: tuple[str, ...], types: tuple[type, ...]) -> None:
        self.names = names
        self.types = types
        self.converted = [(place, CONVERT[kind]) for place, kind in enumerate(types) if kind in CONVERT]


shape_of = lru_cache(10_000)(Shape)

Prepared = tuple[Shape, tuple[Any, ...]]
"""One item's fields and their values."""


def prepared(fields: Mapping[str, Any]) -> Prepared:
    """With values of the types in KIND_OF or None: integers beyond 64 bits are Decimal, a time of day with a
    zone is text. Raises ItemError."""
    names, values = tuple(fields), tuple(fields.values())
    shape = shape_of(names, tuple(map(type, values)))
    if shape.converted:
        ready = list(values)
        for place, convert in shape.converted:
            ready[place] = convert(values[place])
        values = tuple(ready)
        shape = shape_of(names, tuple(map(type, values)))
    return shape, values


def _whole(value: int) -> int | Decimal:
    return value if -(2**63) <= value < 2**63 else Decimal(value)


def _time(value: time) -> time | str:
    return value if value.tzinfo is None else value.isoformat()


def _json(value: Any) -> Json:
    return Json(json_of(value).decode())


CONVERT: Mapping[type, Callable[[Any], Any]] = {int: _whole, time: _time, list: _json, dict: _json}


def kinds_of(types: Iterable[type]) -> set[Kind]:
    return {KIND_OF[kind] for kind in types if kind is not type(None)}


def kind_for(kinds: set[Kind]) -> Kind:
    """The kind of column that takes all of these kinds of values."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= NUMBERS:
        return Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.FLOAT
    return Kind.JSON if Kind.JSON in kinds else Kind.TEXT


def text_of(value: Any) -> str:
    """A value as text columns have it: as in a JSON line, without the quotes."""
    plain = msgspec.to_builtins(value)
    return plain if isinstance(plain, str) else json_of(plain).decode()


def json_text(value: Any) -> str:
    return value if type(value) is Json else json_of(value).decode()


def more_of(fields: Mapping[str, Any]) -> Json | None:
    """What stands in `_more` for fields without a column; nothing for those without a value."""
    left = {
        name: msgspec.Raw(value.encode()) if type(value) is Json else value
        for name, value in fields.items()
        if value is not None
    }
    return Json(json_of(left).decode()) if left else None


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _local(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _double(value: int) -> float:
    if -EXACT <= value <= EXACT:
        return float(value)
    raise ValueError(f"{value} has more digits than it can hold")


def _same(value: Any) -> Any:
    return value


Fit = Callable[[Any], Any]
"""Makes of a value what a column takes, without loss. Raises ValueError or OverflowError."""

FITS: dict[Kind, dict[type, Fit]] = {
    Kind.BOOL: {bool: _same},
    Kind.INT: {int: _same},
    Kind.FLOAT: {float: _same, int: _double},
    Kind.DECIMAL: {Decimal: _same, int: Decimal, float: lambda value: Decimal(repr(value))},
    Kind.DATETIME: {datetime: _utc},
    Kind.LOCAL: {datetime: _local},
    Kind.DATE: {date: _same},
    Kind.TIME: {time: _same},
    Kind.INTERVAL: {timedelta: _same},
    Kind.UUID: {UUID: _same},
    Kind.BYTES: {bytes: _same},
    Kind.TEXT: dict.fromkeys(KIND_OF, text_of) | {str: _same, Json: str},
    Kind.JSON: dict.fromkeys(KIND_OF, json_text) | {Json: _same},
    Kind.ARRAY: {Json: lambda value: msgspec.json.decode(value.encode())},
}


def fits_all(types: Iterable[type], fits: Mapping[type, Fit]) -> bool:
    """Whether values of these types are what a column takes, as they are."""
    return all(fits.get(kind) is _same for kind in types if kind is not type(None))


def fitted(
    values: Sequence[Any], types: Iterable[type], fits: Mapping[type, Fit], column: str
) -> Sequence[Any]:
    """The values as a column takes them. types: of the values. column: its name and type, for messages.

    Raises RowsRefused for one that does not fit.
    """
    if fits_all(types, fits):
        return values
    for value in values:
        if value is not None and type(value) not in fits:
            kind = KIND_OF[type(value)].name.lower()
            raise RowsRefused(f"{kind} {value!s:.80} does not fit the column {column}")
    try:
        return [None if value is None else fits[type(value)](value) for value in values]
    except (ValueError, OverflowError) as error:
        raise RowsRefused(f"{error}, which does not fit the column {column}") from error
