"""Reading back what counts in an output: up to its committed position, and never beyond.

A worker may be writing the file meanwhile. It leaves alone what counts, but for the one rewriting of a CSV
file at the end of a run, which is recognised.
"""

from __future__ import annotations

import contextlib
import csv
import os
import sqlite3
import sys
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol, TypeVar

import msgspec

from silkline.errors import SinkError
from silkline.sinks.choose import sink_for
from silkline.sinks.csv import MAX_COLUMNS, MORE, CsvMark, CsvSink
from silkline.sinks.frames import DAMAGE
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.outputfile import TAIL, Mark
from silkline.sinks.packed import PackedLinesSink, PackedMark
from silkline.sinks.sqlite import INTERNAL, SqliteSink, primary_code, table_exists

T = TypeVar("T")


class Row(msgspec.Struct, frozen=True):
    """An item as it was read back.

    size: about how many bytes it takes. key: its page's fingerprint and its index on that page, where the
    format keeps them.
    """

    record: dict[str, Any]
    size: int
    key: tuple[int, int] | None = None


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
    assert isinstance(sink, SqliteSink)
    return CommittedTable(path, position)


class JsonLines:
    """Of any file of JSON lines."""

    columns = None

    def __init__(self, path: str) -> None:
        self.path = path

    def lines(self) -> Iterator[bytes]:
        """As they stand in the file."""
        raise NotImplementedError

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
        sink = sink_for(path, excel=self._mark.excel)
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

    def _read(self, db: sqlite3.Connection) -> Iterator[Row]:
        db.execute("BEGIN")  # one state of the table, whatever its worker does meanwhile
        there = 0
        if table_exists(db):
            there = db.execute("SELECT max(_id) FROM items").fetchone()[0] or 0
        if there < self._last:
            raise shorter(self.path, f"has rows up to {there}", f"{self._last}")
        found = db.execute("SELECT * FROM items WHERE _id <= ? ORDER BY _id", (self._last,))
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


@contextlib.contextmanager
def opened(
    path: str, mark: Mark, rewritten: Callable[[BinaryIO, Any], int | None] = lambda file, mark: None
) -> Iterator[BinaryIO]:
    """The file, checked against its mark; the descriptor keeps that file, whatever takes its place.

    rewritten: how many bytes count in a file that was rewritten since the mark; None where it was not.
    """
    with open(path, "rb") as file:
        size, again = os.fstat(file.fileno()).st_size, rewritten(file, mark)
        if size < (again or mark.at):
            raise shorter(path, f"has {size} bytes", f"{again or mark.at}")
        start = max(0, mark.at - TAIL)
        if again is None and zlib.crc32(os.pread(file.fileno(), mark.at - start, start)) != mark.tail:
            raise changed(path)
        yield file


def lines_until(file: BinaryIO, end: int, path: str) -> Iterator[bytes]:
    """The lines of the first `end` bytes."""
    left = end
    while left:
        line = file.readline(left)
        if not line.endswith(b"\n"):
            raise changed(path)
        left -= len(line)
        yield line


def undamaged(lines: Iterator[bytes], path: str) -> Iterator[bytes]:
    """The lines of a compressed file."""
    while True:
        try:
            line = next(lines, b"")
        except DAMAGE as error:
            raise changed(path) from error
        if not line:
            return
        if not line.endswith(b"\n"):
            raise changed(path)
        yield line


def counted(rows: Iterator[T], expected: int | None, path: str) -> Iterator[T]:
    """The same, if there are as many as expected."""
    number = 0
    for row in rows:
        number += 1
        yield row
    if expected is not None and number != expected:
        raise changed(path)


@contextlib.contextmanager
def cells_of_any_size() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def changed(path: str) -> SinkError:
    return SinkError(f"{path} was changed since its worker wrote it: put the original back, or copy it again")


def shorter(path: str, there: str, committed: str) -> SinkError:
    return SinkError(
        f"{path} {there}, but {committed} were committed: it was cut, or copied before that; "
        "put the original back, or copy it again"
    )


def unreadable(path: str, reason: str) -> SinkError:
    return SinkError(f"cannot read {path}: {reason}; mend it and run the same command again")


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from error


_record: Callable[[bytes | str], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode
