"""What is kept of items until a file can be written as a whole: JSON lines beside it, that only grow.

A line is the item as a JSON object; where values are of types that JSON has not, an array of the object and
those fields' kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec

from silkline.sinks.record import json_of
from silkline.sinks.schema import Kind, Record

BATCH = 2_097_152
"""Bytes of a spool that are taken apart at once."""

TYPED: Mapping[type, Kind] = {date: Kind.DAY, datetime: Kind.CLOCK, Decimal: Kind.DECIMAL}
READ: Mapping[str, Callable[[str], Any]] = {
    Kind.DAY.value: date.fromisoformat,
    Kind.CLOCK.value: datetime.fromisoformat,
    Kind.DECIMAL.value: Decimal,
}


def spool_of(path: str) -> str:
    """Where the items of the file at `path` are until it is written."""
    return path + ".spool"


def line_of(item: Mapping[str, Any]) -> bytes:
    """Raises ItemError."""
    record = json_of(item)
    if TYPED.keys().isdisjoint(map(type, item.values())):
        return record + b"\n"
    kinds = {name: kind.value for name, value in item.items() if (kind := _kind(value)) is not None}
    return b"[%b,%b]\n" % (record, json_of(kinds))


def _kind(value: object) -> Kind | None:
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return TYPED.get(type(value))


def batches(file: BinaryIO, end: int) -> Iterator[list[Record]]:
    """The items in the first `end` bytes of a spool. Raises msgspec.MsgspecError where those are none."""
    left, rest = end, b""
    while left:
        data = file.read(min(left, BATCH))
        left -= len(data)
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if not data or (rest and not left):
            raise msgspec.DecodeError("the last line has no end")
        if newline:
            yield _records(whole)


def _records(lines: bytes) -> list[Record]:
    found = _decode(lines)
    if set(map(type, found)) <= {dict}:
        return found
    return [record if type(record) is dict else _typed(record) for record in found]


def _typed(line: object) -> Record:
    record, kinds = msgspec.convert(line, tuple[Record, dict[str, str]])
    for name, kind in kinds.items():
        try:
            record[name] = READ[kind](record[name])
        except (LookupError, ValueError, ArithmeticError, TypeError) as error:
            raise msgspec.ValidationError(f"field {name!r} is no {kind}") from error
    return record


_decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder().decode_lines
