"""An item's fields as a BSON document (bsonspec.org) that every MongoDB server takes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import bson
import msgspec
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions
from bson.decimal128 import Decimal128
from bson.int64 import Int64

from silkline.outcome import Item
from silkline.sinks.columns import KEYS, MORE
from silkline.sinks.record import json_of
from silkline.sinks.rows import identities

INTERNAL = ("_id", *KEYS, MORE)
MAX_DEPTH = 100
"""Levels of nesting that a server stores."""

OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(uuid_representation=UuidRepresentation.STANDARD)
DOT, DOLLAR, NUL = "．", "＄", "␀"
"""Stand-ins for what servers take for the syntax of paths and operators, and what ends a name in BSON."""


class Unstorable(str):
    """Why there is no document for an item."""


class _TooDeep(Exception):
    pass


def body_of(fields: Mapping[str, Any]) -> dict[str, Any] | Unstorable:
    """The document of the fields.

    Where two fields want one name, the later one goes into `_more`, as JSON text.
    """
    document: dict[str, Any] = {}
    more: dict[str, Any] = {}
    try:
        for field, value in fields.items():
            name = name_of(field)
            if name in document:
                more[field] = value
                continue
            convert = CONVERT.get(type(value))
            document[name] = value if convert is None else convert(value)
    except _TooDeep as error:
        return Unstorable(error)
    if more:
        document[MORE] = json_of(more).decode()
    return document


def documents_of(items: Sequence[Item], sink: str) -> list[dict[str, Any]]:
    """The whole documents, from what `body_of` gave."""
    return [
        {
            "_id": identity,
            "_fingerprint": Int64(item.fingerprint),
            "_index": item.index if item.key is None else None,
            **item.data[sink],
        }
        for identity, item in zip(identities(items), items, strict=True)
    ]


def size_of(document: Mapping[str, Any]) -> int:
    """Bytes that it takes."""
    return len(bson.encode(document, codec_options=OPTIONS))


@lru_cache(10_000)
def name_of(field: str) -> str:
    """The name in the document: the field's own, with stand-ins for dots, a dollar in front and NUL. A name
    that is silkline's, or has a stand-in of its own, gets a checksum behind it."""
    name = field.replace(".", DOT).replace("\0", NUL)
    if name[:1] == "$":
        name = DOLLAR + name[1:]
    if field in INTERNAL or field[:1] == DOLLAR or DOT in field or NUL in field:
        name += f"_{zlib.crc32(field.encode()):08x}"
    return name


def _list(values: list[Any], depth: int = 2) -> list[Any]:
    return [_nested(value, depth) for value in values]


def _dict(values: dict[str, Any], depth: int = 2) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in values.items():
        name = name_of(field)
        while name in found:
            name += "_"
        found[name] = _nested(value, depth)
    return found


def _nested(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is int:
        return _int(value)
    if kind is list or kind is dict:
        if depth >= MAX_DEPTH:
            raise _TooDeep(f"a value is nested deeper than the {MAX_DEPTH} levels that MongoDB can hold")
        return _list(value, depth + 1) if kind is list else _dict(value, depth + 1)
    return value


def _int(value: int) -> Any:
    return value if -(2**63) <= value < 2**63 else _decimal(Decimal(value))


def _decimal(value: Decimal) -> Any:
    """Decimal128 where that has room for every digit, else text."""
    try:
        return Decimal128(value)
    except (ArithmeticError, ValueError):
        return str(value)


def _datetime(value: datetime) -> Any:
    """In UTC, where a time without a zone is taken to be; BSON keeps milliseconds."""
    try:
        return value if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return value.isoformat()


CONVERT: dict[type, Callable[[Any], Any]] = {
    int: _int,
    list: _list,
    dict: _dict,
    Decimal: _decimal,
    datetime: _datetime,
    date: msgspec.to_builtins,
    time: msgspec.to_builtins,
    timedelta: msgspec.to_builtins,
}
