"""Parquet files, by pyarrow: written as a whole, in row groups, from rows that come in batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from silkline.errors import SinkError
from silkline.sinks.block import Block
from silkline.sinks.record import json_of
from silkline.sinks.schema import MAX_COLUMNS, MORE, Column, Kind, Record, Schema

DAMAGE = (pa.ArrowException, msgspec.MsgspecError)
"""What reading raises where a file is not what was written."""

GROUP_ROWS = 100_000
GROUP_BYTES = 33_554_432
"""How much a row group has, about, and how much is held in memory until it is written."""

BATCH = 5_000
ABOUT = b"silkline"

TYPES: Mapping[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.WHOLE: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.DAY: pa.date32(),
    Kind.INSTANT: pa.timestamp("us", "UTC"),
    Kind.CLOCK: pa.timestamp("us"),
}


@contextlib.contextmanager
def damage_is(error: SinkError) -> Iterator[None]:
    """Raise this where a file is not what was written."""
    try:
        yield
    except DAMAGE as damage:
        raise error from damage


class About(msgspec.Struct, frozen=True):
    """What a file says of itself, in its key-value metadata. id: of the output."""

    id: str
    columns: dict[str, Column]


class ParquetReader:
    """An open file of ours. Reading raises one of DAMAGE."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = pq.ParquetFile(file)
        said = (self._file.schema_arrow.metadata or {}).get(ABOUT)
        self.about = msgspec.json.decode(said, type=About) if said is not None else About("", {})
        self.rows: int = self._file.metadata.num_rows

    def tables(self) -> Iterator[pa.Table]:
        for group in range(self._file.num_row_groups):
            yield self._file.read_row_group(group, use_threads=False)

    def records(self) -> Iterator[Record]:
        """The rows; nested values are such again."""
        columns = self.about.columns
        nested = [name for name, column in columns.items() if column.kind == Kind.NESTED]
        over = len(columns) > MAX_COLUMNS
        for batch in self._file.iter_batches(BATCH, use_threads=False):
            for record in batch.to_pylist():
                for name in nested:
                    if record[name] is not None:
                        record[name] = msgspec.json.decode(record[name])
                if over and record.get(MORE):
                    record |= record[MORE]
                yield record


class ParquetWriter:
    """A new file with these columns; `close` makes it whole."""

    def __init__(self, file: BinaryIO, about: About) -> None:
        self._schema = Schema(about.columns)
        said = {ABOUT: msgspec.json.encode(about)}
        fields = [pa.field(name, _type_of(column)) for name, column in about.columns.items()]
        self._arrow = pa.schema(fields, metadata=said)
        self._writer = pq.ParquetWriter(file, self._arrow, compression="zstd")
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0
        self.rows = 0

    def add(self, records: Sequence[Record]) -> None:
        columns = self._schema.columns
        arrays = [_array(values, columns[name]) for name, values in self._schema.transposed(records).items()]
        self._put(arrays)

    def add_block(self, block: Block) -> None:
        if self._schema.over:
            self.add(block.records())
            return
        there = {stored.name: stored for stored in block.columns}
        arrays = []
        for name, column in self._schema.columns.items():
            stored = there.get(name)
            if stored is None or stored.column.kind == Kind.NOTHING:
                arrays.append(pa.nulls(block.rows, _type_of(column)))
            elif stored.column.kind == column.kind and stored.json == (column.kind == Kind.NESTED):
                arrays.append(block.array(stored))
            elif stored.column.kind == Kind.WHOLE and column.kind == Kind.REAL:
                arrays.append(block.array(stored).cast(pa.float64(), safe=False))
            else:
                arrays.append(_array(block.values(stored), column))
        self._put(arrays)

    def copy(self, table: pa.Table, columns: Mapping[str, Column]) -> None:
        """Rows of a file with these columns, which this one has, too."""
        arrays = []
        for name, column in self._schema.columns.items():
            before = columns.get(name, Column())
            if before.kind == Kind.NOTHING:
                arrays.append(pa.nulls(table.num_rows, _type_of(column)))
            elif before == column:
                arrays.append(table.column(name))
            else:
                arrays.append(_array(table.column(name).to_pylist(), column, was=before.kind))
        self._put(arrays)

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _put(self, arrays: Sequence[pa.Array]) -> None:
        table = pa.Table.from_arrays(arrays, schema=self._arrow)
        self.rows += table.num_rows
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += table.nbytes
        if self._pending_rows >= GROUP_ROWS or self._pending_bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            table = pa.concat_tables(self._pending)
            self._pending = []
            self._pending_rows = self._pending_bytes = 0
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))


def _type_of(column: Column) -> pa.DataType:
    """Text for what is nested, mixed, or not known yet: every reader takes that."""
    if column.kind == Kind.DECIMAL:
        precision = column.digits + column.scale
        kind = pa.decimal128 if precision <= 38 else pa.decimal256
        return kind(precision, column.scale)
    return TYPES.get(column.kind, pa.string())


def _array(values: Sequence[Any], column: Column, was: Kind | None = None) -> pa.Array:
    """was: the kind of the column that the values are from."""
    kind = column.kind
    if kind == Kind.REAL:
        values = [value if value is None else float(value) for value in values]
    elif kind == Kind.NESTED or (kind == Kind.MIXED and was not in (Kind.TEXT, Kind.NESTED, Kind.MIXED)):
        values = [None if value is None else _text(value) for value in values]
    return pa.array(values, _type_of(column))


def _text(value: object) -> str:
    """JSON, but text as it is."""
    if isinstance(value, str):
        return value
    text = json_of(value).decode()
    return text[1:-1] if text.startswith('"') else text
