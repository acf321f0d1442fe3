"""What is kept of items until a file can be written as a whole, beside it: lines and blocks, that only grow.

A few items are JSON lines. A line is the item as a JSON object; where values are of types that JSON has not,
an array of the object and the kinds of those fields. Many items are a block, see `block.py`: a byte that no
line has, the length in eight bytes, the CRC-32 in four, and the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO
from zlib import crc32

import msgspec

from silkline.sinks.record import json_of
from silkline.sinks.schema import KINDS, Kind, Record

BATCH = 2_097_152
"""Bytes of a spool that are taken apart at once."""

BLOCK = b"\xff"
"""What UTF-8 never has."""
HEAD = len(BLOCK) + 8 + 4

TYPED: Mapping[type, Kind] = {date: Kind.DAY, datetime: Kind.CLOCK, Decimal: Kind.DECIMAL}
READ: Mapping[str, Callable[[str], Any]] = {
    Kind.DAY.value: date.fromisoformat,
    Kind.CLOCK.value: datetime.fromisoformat,
    Kind.DECIMAL.value: Decimal,
}


def spool_of(path: str) -> str:
    """Where the items of the file at `path` are until it is written."""
    return path + ".spool"


def spoolable(value: Any) -> Any:
    """The value, or what JSON has for it where a spool has no type for it. Raises ItemError."""
    if type(value) in KINDS and not (type(value) is Decimal and not value.is_finite()):
        return value
    return msgspec.json.decode(json_of(value))


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


def framed(block: memoryview) -> bytes:
    return b"".join([BLOCK, len(block).to_bytes(8, "little"), crc32(block).to_bytes(4, "little"), block])


class Lines(bytes):
    """Some whole ones of a spool."""

    def records(self) -> list[Record]:
        """Raises msgspec.MsgspecError where there are none."""
        found = _decode(self)
        if set(map(type, found)) <= {dict}:
            return found
        return [record if type(record) is dict else _typed(record) for record in found]


def pieces(file: BinaryIO, end: int) -> Iterator[Lines | bytes]:
    """What is in the first `end` bytes of a spool: lines, and blocks as they are.

    Raises msgspec.MsgspecError where these are none.
    """
    at = 0
    while at < end:
        file.seek(at)
        if file.read(1) == BLOCK:
            size, crc = (int.from_bytes(file.read(length), "little") for length in (8, 4))
            block = file.read(size) if size <= end - at - HEAD else b""
            if len(block) < size or crc32(block) != crc:
                raise msgspec.DecodeError("a block is not what was written")
            at += HEAD + size
            yield block
        else:
            file.seek(at)
            lines = _lines(file, end - at)
            at += len(lines)
            yield lines


def _lines(file: BinaryIO, most: int) -> Lines:
    """About BATCH bytes of them, and none that is behind a block."""
    found = b""
    while b"\n" not in found:
        data = file.read(min(BATCH, most - len(found)))
        found += data
        if not data or (BLOCK in data and b"\n" not in found.partition(BLOCK)[0]):
            raise msgspec.DecodeError("the last line has no end")
    whole, newline, _ = found.partition(BLOCK)[0].rpartition(b"\n")
    return Lines(whole + newline)


def _typed(line: object) -> Record:
    record, kinds = msgspec.convert(line, tuple[Record, dict[str, str]])
    for name, kind in kinds.items():
        try:
            record[name] = READ[kind](record[name])
        except (LookupError, ValueError, ArithmeticError, TypeError) as error:
            raise msgspec.ValidationError(f"field {name!r} is no {kind}") from error
    return record


_decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder().decode_lines
