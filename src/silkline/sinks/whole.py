"""Finished files, of which all counts though no position says so."""

from __future__ import annotations

import contextlib
import csv
import os
import sqlite3
import zlib
from typing import BinaryIO

import msgspec

from silkline.errors import SinkError
from silkline.sinks.choose import sink_for
from silkline.sinks.committed import Committed, CommittedTable, committed, connected
from silkline.sinks.csv import CsvMark, CsvSink
from silkline.sinks.dialect import BYTE_ORDER_MARK
from silkline.sinks.outputfile import TAIL, M, Mark, position_of
from silkline.sinks.packed import PackedLinesSink, PackedMark
from silkline.sinks.parquet import ParquetMark, ParquetSink, foot_of
from silkline.sinks.reading import cells_of_any_size, changed, reading
from silkline.sinks.sqlite import SqliteSink, table_exists


def whole_table(path: str) -> Committed:
    """What is in the table `items` of an SQLite database, however it is called. Raises SinkError."""
    return CommittedTable(path, str(_last_row(path)))


def whole(path: str, items: int | None = None) -> Committed:
    """What is in the file, read by its ending. items: how many are to be found, None where that is not known.

    Raises SinkError where it is not in its format.
    """
    sink = sink_for(path)
    if isinstance(sink, SqliteSink):
        return whole_table(path)
    with reading(path), open(path, "rb") as file:
        if isinstance(sink, PackedLinesSink):
            return committed(path, position_of(_end_of(file, PackedMark)), items)
        if isinstance(sink, CsvSink):
            return committed(path, position_of(_with_header(file, path, sink)), items)
        if isinstance(sink, ParquetSink):
            return committed(path, position_of(_with_rows(file, path)), items)
        return committed(path, position_of(_end_of(file, Mark)), items)


def _end_of(file: BinaryIO, kind: type[M]) -> M:
    size = os.fstat(file.fileno()).st_size
    start = max(0, size - TAIL)
    return kind(at=size, tail=zlib.crc32(os.pread(file.fileno(), size - start, start)))


def _with_header(file: BinaryIO, path: str, sink: CsvSink) -> CsvMark:
    excel = file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK
    if not excel:
        file.seek(0)
    dialect = CsvSink(path, delimiter=sink.dialect.delimiter, excel=excel).dialect
    try:
        with cells_of_any_size():
            lines = (line.decode() for line in file)
            header = next(csv.reader(lines, delimiter=dialect.delimiter), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise changed(path) from error
    columns = tuple(dialect.value(cell) or "" for cell in header)
    mark = _end_of(file, CsvMark)
    return msgspec.structs.replace(mark, columns=columns, header=len(columns), excel=excel)


def _with_rows(file: BinaryIO, path: str) -> ParquetMark:
    from silkline.sinks.parquetfile import ParquetReader, damage_is

    with damage_is(changed(path)):
        reader = ParquetReader(file)
    size = os.fstat(file.fileno()).st_size
    return ParquetMark(id=reader.about.id, rows=reader.rows, size=size, foot=foot_of(file))


def _last_row(path: str) -> int:
    with reading(path):
        os.stat(path)
    try:
        with contextlib.closing(connected(path)) as db:
            if not table_exists(db):
                raise SinkError(f"{path} has no table items")
            return int(db.execute("SELECT max(_id) FROM items").fetchone()[0] or 0)
    except sqlite3.Error as error:
        raise SinkError(f"cannot read {path}: {error}") from error
