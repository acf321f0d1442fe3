"""What is kept of items until a file can be written as a whole: JSON lines beside it, that only grow.

A line is the item as a JSON object; where values are of types that JSON has not, an array of the object and
those fields' kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from silkline.sinks.record import json_of
from silkline.sinks.schema import Kind, Record

BATCH = 5_000
BATCH_BYTES = 4_194_304

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
    kinds = {name: kind.value for name, value in item.items() if (kind := _kind(value)) is not None}
    record = json_of(item)
    return b"[%b,%b]\n" % (record, json_of(kinds)) if kinds else record + b"\n"


def _kind(value: object) -> Kind | None:
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return TYPED.get(type(value))


def batches(lines: Iterable[bytes]) -> Iterator[list[Record]]:
    """The items of a spool. Raises msgspec.MsgspecError where a line is none of one."""
    batch: list[Record] = []
    size = 0
    for line in lines:
        batch.append(_record(line))
        size += len(line)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _record(line: bytes) -> Record:
    if line[:1] != b"[":
        return _plain(line)
    record, kinds = _typed(line)
    for name, kind in kinds.items():
        record[name] = READ[kind](record[name])
    return record


_plain: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode
_typed: Callable[[bytes], tuple[Record, dict[str, str]]] = msgspec.json.Decoder(
    tuple[Record, dict[str, str]]
).decode
