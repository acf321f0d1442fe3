"""Many rows of a spool as one Arrow stream (arrow.apache.org/docs/format/Columnar.html), column by column.

Read back, every value is what it was, whatever its column makes of it in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa

from silkline.sinks.record import json_of
from silkline.sinks.schema import MAX_COLUMNS, Column, Kind, Record, column_of
from silkline.sinks.spool import spoolable

ABOUT = b"silkline"
SPARSE = 4
"""Cells to values from which on rows with different fields make no good table."""

KINDS: Mapping[pa.DataType, Kind] = {
    pa.null(): Kind.NOTHING,
    pa.bool_(): Kind.BOOLEAN,
    pa.int64(): Kind.WHOLE,
    pa.float64(): Kind.REAL,
    pa.string(): Kind.TEXT,
    pa.date32(): Kind.DAY,
    pa.timestamp("us"): Kind.CLOCK,
}
EXACT: Mapping[Kind, Callable[[Sequence[Any]], bool]] = {
    Kind.REAL: lambda values: {float, type(None)}.issuperset(map(type, values)),
    Kind.DAY: lambda values: {date, type(None)}.issuperset(map(type, values)),
    Kind.CLOCK: lambda values: column_of(values).kind == Kind.CLOCK,
}
"""Kinds that pyarrow also takes other values for, which would be changed: whether there are none."""
MARKS: Mapping[type, str] = {
    date: Kind.DAY.value,
    datetime: Kind.CLOCK.value,
    Decimal: Kind.DECIMAL.value,
    **dict.fromkeys((list, dict), Kind.NESTED.value),
}
MARKED: Mapping[str, Callable[[Any], Any]] = {
    Kind.DAY.value: date.fromisoformat,
    Kind.CLOCK.value: datetime.fromisoformat,
    Kind.DECIMAL.value: Decimal,
    Kind.NESTED.value: lambda value: value,
}


class Stored(msgspec.Struct, frozen=True):
    """A column of a block: its field, what the values ask for, and whether they are JSON text: of what is
    nested as it is, of all others with a mark for the types that JSON has not.

    nulls: the rows whose field is null, where other rows are without it; None where every row has it.
    """

    name: str
    column: Column
    json: bool = False
    nulls: Sequence[int] | None = None

    @property
    def marked(self) -> bool:
        return self.json and self.column.kind != Kind.NESTED


class Block:
    """Rows that were written together."""

    def __init__(self, data: bytes | memoryview) -> None:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        self.rows: int = table.num_rows
        self.columns = msgspec.json.decode(table.schema.metadata[ABOUT], type=list[Stored])
        self._arrays = dict(zip([stored.name for stored in self.columns], table.columns, strict=True))

    def array(self, stored: Stored) -> pa.ChunkedArray:
        return self._arrays[stored.name]

    def values(self, stored: Stored) -> list[Any]:
        found: list[Any] = self._arrays[stored.name].to_pylist()
        if not stored.json:
            return found
        values = _decode(f"[{','.join('null' if text is None else text for text in found)}]".encode())
        if stored.marked:
            values = [_unmarked(value) if type(value) is dict else value for value in values]
        return values

    def records(self) -> list[Record]:
        """Each with the fields that it had."""
        if not self.columns:
            return [{} for _ in range(self.rows)]
        names = [stored.name for stored in self.columns]
        columns = [self.values(stored) for stored in self.columns]
        records = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        for stored in self.columns:
            if stored.nulls is not None:
                nulls = set(stored.nulls)
                for row, record in enumerate(records):
                    if record[stored.name] is None and row not in nulls:
                        del record[stored.name]
        return records


def block_of(records: Sequence[Mapping[str, Any]]) -> memoryview | None:
    """The block of these rows; None where they make no good table."""
    names, cells = tuple(records[0]), sum(map(len, records))
    columns: Sequence[Sequence[Any]] | None = None
    lacking: dict[str, int] = {}
    if cells == len(names) * len(records):
        with suppress(KeyError):
            columns = [[record[name] for record in records] for name in names]
    if columns is None:
        names = tuple(dict.fromkeys(name for record in records for name in record))
        if len(names) * len(records) > SPARSE * cells:
            return None
        columns = [[record.get(name) for record in records] for name in names]
        there = Counter(chain.from_iterable(records))
        lacking = {name: lack for name in names if (lack := len(records) - there[name])}
    if not 0 < len(names) <= MAX_COLUMNS:
        return None
    about, arrays = [], []
    for name, values in zip(names, columns, strict=True):
        stored, array = _packed(name, values)
        if name in lacking:
            stored = msgspec.structs.replace(stored, nulls=_nulls(records, name, values, lacking[name]))
        about.append(stored)
        arrays.append(array)
    fields = [pa.field(str(place), array.type) for place, array in enumerate(arrays)]
    schema = pa.schema(fields, metadata={ABOUT: msgspec.json.encode(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return memoryview(sink.getvalue())


def _nulls(records: Sequence[Mapping[str, Any]], name: str, values: Sequence[Any], lacking: int) -> list[int]:
    """The rows that have the field with null; mostly there are none, which counting tells."""
    if values.count(None) == lacking:
        return []
    return [row for row, record in enumerate(records) if record.get(name, name) is None]


def _packed(name: str, values: Sequence[Any]) -> tuple[Stored, pa.Array]:
    """As pyarrow's own kind of column where all values are of the one type that it stands for."""
    try:
        array = pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return _as_json(name, values)
    kind = KINDS.get(array.type)
    if kind is None or (kind in EXACT and not EXACT[kind](values)):
        return _as_json(name, values)
    return Stored(name, Column(kind)), array


def _as_json(name: str, values: Sequence[Any]) -> tuple[Stored, pa.Array]:
    values = [spoolable(value) for value in values]
    stored = Stored(name, column_of(values), json=True)
    marks = MARKS if stored.marked else {}
    texts = [None if value is None else _text(value, marks.get(type(value))) for value in values]
    return stored, pa.array(texts, pa.string())


def _text(value: Any, mark: str | None) -> bytes:
    return json_of(value if mark is None else {mark: value})


def _unmarked(value: Mapping[str, Any]) -> Any:
    [(kind, text)] = value.items()
    return MARKED[kind](text)


_decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(list[Any]).decode
