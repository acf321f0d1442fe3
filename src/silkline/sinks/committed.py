"""Reading back what counts in an output: up to its committed position, and never beyond.

A worker may be writing the file meanwhile. It leaves alone what counts, but for the one rewriting of a CSV
file at the end of a run, which is recognised.
"""

from __future__ import annotations

import contextlib
import csv
import os
import sqlite3
import urllib.parse
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO, Protocol

import msgspec

from silkline.errors import SinkError
from silkline.sinks.choose import sink_for
from silkline.sinks.columns import KEY
from silkline.sinks.csv import MAX_COLUMNS, MORE, CsvMark, CsvSink
from silkline.sinks.format import Format
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.outputfile import Mark
from silkline.sinks.packed import PackedLinesSink, PackedMark
from silkline.sinks.parquet import ParquetMark, ParquetSink, is_known, rows_of
from silkline.sinks.reading import (
    cells_of_any_size,
    changed,
    check,
    counted,
    lines_until,
    missing,
    opened,
    opened_if_there,
    reading,
    shorter,
    undamaged,
)
from silkline.sinks.spool import Lines, pieces, spool_of
from silkline.sinks.sqlite import INTERNAL, SqliteSink, primary_code, table_exists


class Row(msgspec.Struct, frozen=True):
    """An item as it was read back.

    size: about how many bytes it takes. key: its page's fingerprint and its index on that page, where the
    format keeps them. typed: values may be dates, datetimes and decimals.
    """

    record: dict[str, Any]
    size: int
    key: tuple[int, int] | None = None
    typed: bool = False


class Committed(Protocol):
    """What counts in one file. Reading raises SinkError where it is not there any more."""

    @property
    def path(self) -> str: ...

    @property
    def columns(self) -> Sequence[str] | None:
        """The fields of all rows, where they are known beforehand."""

    def rows(self) -> Iterator[Row]: ...


def committed(path: str, position: str, items: int | None = None) -> Committed:
    """What counts in the file at `path`.

    position: as its sink gave it. items: how many are to be found, None where that is not known.
    """
    sink = sink_for(path)
    if isinstance(sink, JsonLinesSink):
        return CommittedLines(path, position, items)
    if isinstance(sink, PackedLinesSink):
        return CommittedPackedLines(path, position, items, sink)
    if isinstance(sink, CsvSink):
        return CommittedRecords(path, position, items)
    if isinstance(sink, ParquetSink):
        return CommittedParquet(path, position)
    assert isinstance(sink, SqliteSink)
    return CommittedTable(path, position)


class JsonLines(ABC):
    """Of any file of JSON lines."""

    columns = None

    def __init__(self, path: str) -> None:
        self.path = path

    @abstractmethod
    def lines(self) -> Iterator[bytes]:
        """As they stand in the file."""

    def rows(self) -> Iterator[Row]:
        for line in self.lines():
            try:
                yield Row(_record(line), len(line))
            except msgspec.MsgspecError as error:
                raise changed(self.path) from error


class CommittedLines(JsonLines):
    """Of a JSON lines file."""

    def __init__(self, path: str, position: str, items: int | None) -> None:
        super().__init__(path)
        self._mark = msgspec.json.decode(position, type=Mark)
        self._items = items

    def lines(self) -> Iterator[bytes]:
        with reading(self.path), opened(self.path, self._mark) as file:
            yield from counted(lines_until(file, self._mark.at, self.path), self._items, self.path)


class CommittedPackedLines(JsonLines):
    """Of a compressed one."""

    def __init__(self, path: str, position: str, items: int | None, sink: PackedLinesSink) -> None:
        super().__init__(path)
        self._mark = msgspec.json.decode(position, type=PackedMark)
        self._items = items
        self._sink = sink

    def lines(self) -> Iterator[bytes]:
        with reading(self.path), opened(self.path, self._mark) as file:
            lines = iter(self._sink.reader(file, self._mark) if self._mark.at else ())
            yield from counted(undamaged(lines, self.path), self._items, self.path)


class CommittedRecords:
    """Of a CSV or TSV file: all values are text, an empty cell is None, and every row has all columns."""

    def __init__(self, path: str, position: str, items: int | None) -> None:
        self.path = path
        self._mark = msgspec.json.decode(position, type=CsvMark)
        self._items = items
        sink = sink_for(path, Format(excel=self._mark.excel))
        assert isinstance(sink, CsvSink)
        self._sink = sink

    @property
    def columns(self) -> Sequence[str]:
        return self._mark.columns[:MAX_COLUMNS]

    def rows(self) -> Iterator[Row]:
        if not self._mark.at:
            return
        with (
            reading(self.path),
            opened(self.path, self._mark, self._sink.rewritten) as file,
            cells_of_any_size(),
        ):
            at = self._sink.rewritten(file, self._mark) or self._mark.at
            text = (line.decode() for line in lines_until(file, at, self.path))
            try:
                records = csv.reader(text, delimiter=self._sink.dialect.delimiter)
                next(records)
                yield from counted(map(self._row, records), self._items, self.path)
            except (csv.Error, UnicodeDecodeError, msgspec.MsgspecError) as error:
                raise changed(self.path) from error

    def _row(self, cells: list[str]) -> Row:
        record: dict[str, Any] = dict.fromkeys(self.columns)
        value = self._sink.dialect.value
        record |= {name: value(cell) for name, cell in zip(self.columns, cells, strict=False)}
        if len(cells) > MAX_COLUMNS and cells[MAX_COLUMNS]:
            record |= _record(cells[MAX_COLUMNS])
        return Row(record, sum(map(len, cells)))


class CommittedParquet:
    """Of a Parquet file, and of the spool beside it. Values may be dates, datetimes and decimals.

    Rows that count are never taken away again: a file that was finished since has them first.
    """

    columns = None

    def __init__(self, path: str, position: str) -> None:
        self.path = path
        self._mark = msgspec.json.decode(position, type=ParquetMark)

    def rows(self) -> Iterator[Row]:
        return counted(self._rows(), self._mark.items, self.path)

    def _rows(self) -> Iterator[Row]:
        mark, beside = self._mark, spool_of(self.path)
        with contextlib.ExitStack() as files:
            # First the spool: it is removed once the file that has its items is there.
            spool = files.enter_context(opened_if_there(beside))
            file = files.enter_context(opened_if_there(self.path))
            if file is not None and not is_known(file, mark) and rows_of(file, mark) >= mark.items:
                yield from islice(self._read(file), mark.items)
                return
            if mark.size and (file is None or not is_known(file, mark)):
                raise missing(self.path) if file is None else changed(self.path)
            if mark.size and file is not None:
                yield from self._read(file)
            if mark.at:
                if spool is None:
                    raise missing(beside)
                check(spool, mark, beside)
                yield from self._spooled(spool)

    def _read(self, file: BinaryIO) -> Iterator[Row]:
        from silkline.sinks.parquetfile import ParquetReader, damage_is

        with damage_is(changed(self.path)):
            for record in ParquetReader(file).records():
                yield Row(record, text_in(record), typed=True)

    def _spooled(self, spool: BinaryIO) -> Iterator[Row]:
        from silkline.sinks.block import Block
        from silkline.sinks.parquetfile import damage_is

        with damage_is(changed(spool_of(self.path))):
            for piece in pieces(spool, self._mark.at):
                for record in (piece if isinstance(piece, Lines) else Block(piece)).records():
                    yield Row(record, text_in(record), typed=True)


def text_in(record: Mapping[str, Any]) -> int:
    """About how many bytes it takes."""
    return sum(len(value) if isinstance(value, str) else 8 for value in record.values())


class CommittedTable:
    """Of an SQLite database: booleans are 0 and 1, nested values JSON text, as they are in the table."""

    columns = None

    def __init__(self, path: str, position: str) -> None:
        self.path = path
        self._last = int(position)

    def rows(self) -> Iterator[Row]:
        if not self._last:
            return
        with reading(self.path):
            os.stat(self.path)
        try:
            with contextlib.closing(connected(self.path)) as db:
                yield from self._read(db)
        except sqlite3.Error as error:
            if primary_code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise changed(self.path) from error
            raise SinkError(
                f"cannot read {self.path}: {error}; mend it and run the same command again"
            ) from error

    def _latest(self, db: sqlite3.Connection) -> str:
        """What leaves out rows that a later one with their key takes the place of."""
        if all(row[1] != KEY for row in db.execute("PRAGMA table_info(items)")):
            return ""
        return (
            f" AND NOT EXISTS (SELECT 1 FROM items AS later WHERE later.{KEY} = items.{KEY} "
            f"AND later._id > items._id AND later._id <= {self._last:d})"
        )

    def _read(self, db: sqlite3.Connection) -> Iterator[Row]:
        db.execute("BEGIN")  # one state of the table, whatever its worker does meanwhile
        there = 0
        if table_exists(db):
            there = db.execute("SELECT max(_id) FROM items").fetchone()[0] or 0
        if there < self._last:
            raise shorter(self.path, f"has rows up to {there}", f"{self._last}")
        found = db.execute(
            f"SELECT * FROM items WHERE _id <= ?{self._latest(db)} ORDER BY _id", (self._last,)
        )
        columns = [column for column, *_ in found.description]
        fields = {column: field_of(column) for column in columns if column not in INTERNAL}
        for values in found:
            row = dict(zip(columns, values, strict=True))
            record = {field: row[column] for column, field in fields.items()}
            if more := row.get(MORE):
                record |= _record(more)
            size = sum(len(value) for value in values if isinstance(value, str))
            yield Row(record, size, (row["_fingerprint"], row["_index"]))


def field_of(column: str) -> str:
    """The field that a column is for: its name may have got a checksum, see `sqlite.column_for`."""
    field, _, checksum = column.rpartition("_")
    return field if checksum == f"{zlib.crc32(field.encode()):08x}" else column


def connected(path: str) -> sqlite3.Connection:
    """For reading only. Opened for more where that is allowed: only then SQLite tidies up behind itself."""
    db = sqlite3.connect(
        f"file:{urllib.parse.quote(os.fsencode(path))}?mode=rw", uri=True, timeout=10.0, isolation_level=None
    )
    db.execute("PRAGMA query_only = 1")
    return db


_record: Callable[[bytes | str], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode
