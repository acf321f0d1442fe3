"""CSV (RFC 4180) and TSV: UTF-8, one header line, "\\n" after each record; see `dialect.py` for the cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from silkline.errors import ItemError, SinkError
from silkline.outcome import Item
from silkline.sinks.dialect import Dialect
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import (
    Mark,
    OutputFile,
    name_of,
    position_of,
    remove,
    starting,
    sync,
    sync_directory,
    temporary,
    told,
)

MAX_COLUMNS = 1_000
MORE = "_more"

Cells = tuple[tuple[str, ...], tuple[bytes, ...], Mapping[str, Any]]
"""The fields of one item, their cells as they stand in the file, and the item."""


class CsvMark(Mark, frozen=True):
    """A committed end of the file, and what its records look like up to there.

    columns: all columns so far, in the order in which they came up; a record has as many cells as there were
        columns when it was written, so later ones have more.
    header: how many of them the header line on disk has.
    records: without the header.
    padding: delimiters that are missing in the records with fewer cells than columns.
    excel: the dialect, which cannot change within a file.
    """

    columns: tuple[str, ...] = ()
    header: int = 0
    records: int = 0
    padding: int = 0
    excel: bool = False

    @property
    def ragged(self) -> bool:
        return self.at > 0 and self.header < len(self.columns)


class CsvSink:
    """Items as records under one header.

    columns: what comes first in the header; None for the fields of the items in the first write. A field
    that comes up later gets a column too: the records have a cell more from then on, and `finish`
    rewrites the file, once, so that the header names it and every record has as many cells. A crawl that was
    interrupted in between leaves records longer than the header; resuming it mends that at its end.

    Once there are 1,000 columns, further fields share one named `_more`, as JSON. excel: for spreadsheets.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        *,
        delimiter: str = ",",
        excel: bool = False,
    ) -> None:
        self.name = name_of(path)
        self.dialect = Dialect(delimiter, excel=excel)
        self._columns = tuple(columns or ())
        self._file = OutputFile(path)
        self._found: tuple[str | None, CsvMark] | None = None

    def open(self, position: str | None) -> None:
        with starting():
            mark = self._resumed(position)
            if mark.excel != self.dialect.excel and mark.at:
                begun, now = ("with", "without") if mark.excel else ("without", "with")
                raise SinkError(
                    f"{self._file.shown} was begun {begun} --excel and cannot go on {now} it: "
                    f"run the command {begun} it, or start over with --fresh"
                )
            self._found = (position, msgspec.structs.replace(mark, excel=self.dialect.excel))
            if not os.access(os.path.dirname(self._file.path), os.W_OK):
                raise SinkError(
                    f"cannot create files beside {self._file.shown}, which a CSV output needs when new "
                    "columns come up: choose a directory that you may write to"
                )

    def encode(self, item: Mapping[str, Any]) -> Cells:
        try:
            return tuple(item), tuple([self.dialect.cell(value) for value in item.values()]), item
        except UnicodeEncodeError as error:
            raise ItemError(f"text with a lone surrogate cannot be written as UTF-8: {error}") from error

    def write(self, items: Sequence[Item], position: str | None) -> str:
        name = self.name
        rows: list[Cells] = [item.data[name] for item in items]
        mark = self._mark(position)
        if rows:
            mark = _with_columns(mark, rows)
        data = self._lines(mark, rows)
        if rows and mark.at == 0:
            mark = msgspec.structs.replace(mark, header=len(mark.columns))
            data = self._header(mark) + data
        mark = msgspec.structs.replace(mark, records=mark.records + len(rows))
        return position_of(self._file.append(mark, data))

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        mark = self._mark(position)
        if mark.ragged:
            return position_of(self._rewrite(mark))
        if mark.at == 0 and mark.columns:
            mark = msgspec.structs.replace(mark, header=len(mark.columns))
            return position_of(self._file.append(mark, self._header(mark)))
        return position_of(self._file.append(mark, b""))

    def close(self) -> None:
        self._file.close()

    def _resumed(self, position: str | None) -> CsvMark:
        if position is None:
            return self._file.create(CsvMark(columns=self._columns, excel=self.dialect.excel))
        return self._file.resume(self._after_rewrite(_mark_at(position)))

    def _mark(self, position: str | None) -> CsvMark:
        """What the position stands for; `open` may have found it in a file that was moved."""
        if self._found is not None and self._found[0] == position:
            mark = self._found[1]
        else:
            mark = self._resumed(None) if position is None else _mark_at(position)
        return self._after_rewrite(mark)

    def _after_rewrite(self, mark: CsvMark) -> CsvMark:
        """A process may have died between putting the rewritten file in place and committing that.

        Then the header on disk has all the columns already, and the mark's own one cannot be
        mistaken for it: it ends where that goes on. What counts in the rewritten file follows from the mark.
        """
        if not mark.ragged or not self._file.starts_with(self._header(mark)):
            return mark
        return self._file.taken_over(_rectangular(mark), self._rewritten_size(mark))

    def rewritten(self, file: BinaryIO, mark: CsvMark) -> int | None:
        """How many bytes count in an opened file if it was rewritten since the mark; None if it was not."""
        header = self._header(mark) if mark.ragged else b""
        if not header or os.pread(file.fileno(), len(header), 0) != header:
            return None
        return self._rewritten_size(mark)

    def _rewritten_size(self, mark: CsvMark) -> int:
        return mark.at - len(self._old_header(mark)) + len(self._header(mark)) + mark.padding

    def _rewrite(self, mark: CsvMark) -> CsvMark:
        self._file.cut(mark)
        path, shown = self._file.path, self._file.shown
        fresh = temporary(path)
        with told(shown):
            remove(fresh)
            try:
                size = self._write_rectangular(mark, path, fresh)
                if size != self._rewritten_size(mark):
                    raise SinkError(
                        f"{shown} was changed while the crawl was writing it: "
                        "put the original back and run the same command again, or start over with --fresh"
                    )
                os.replace(fresh, path)
            except BaseException:
                remove(fresh)
                raise
            sync_directory(path)
        reach("after-replace")
        return self._file.taken_over(_rectangular(mark), size)

    def _write_rectangular(self, mark: CsvMark, path: str, fresh: str) -> int:
        with open(path, "rb") as old, open(fresh, "xb") as new:
            os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o7777)
            old.seek(len(self._old_header(mark)))
            new.write(self._header(mark))
            new.writelines(widened(old, len(mark.columns), self.dialect.delimiter.encode()))
            new.flush()
            sync(new.fileno())
            return new.tell()

    def _lines(self, mark: CsvMark, rows: Iterable[Cells]) -> bytes:
        columns = mark.columns
        known = frozenset(columns)
        lines = []
        for fields, cells, item in rows:
            if fields != columns:
                given = dict(zip(fields, cells, strict=True))
                if not known.issuperset(fields):
                    rest = {field: item[field] for field in fields if field not in known or field == MORE}
                    given[MORE] = self.dialect.cell(rest)
                cells = tuple([given.get(column, b"") for column in columns])
            lines.append(self.dialect.line(cells))
        return b"".join(lines)

    def _header(self, mark: CsvMark) -> bytes:
        return self.dialect.header(mark.columns)

    def _old_header(self, mark: CsvMark) -> bytes:
        """What is on disk before a rewriting."""
        return self.dialect.header(mark.columns[: mark.header])


def widened(lines: Iterable[bytes], width: int, delimiter: bytes) -> Iterator[bytes]:
    """Records, filled up to `width` with empty cells. A record has several lines where a quote stays open."""
    parts: list[bytes] = []
    quotes = cells = 0
    for line in lines:
        # What is outside of quotes is every other part; a doubled quote is an empty part and changes nothing.
        outside = line.split(b'"')[quotes % 2 :: 2]
        cells += sum(part.count(delimiter) for part in outside)
        quotes += line.count(b'"')
        parts.append(line)
        if quotes % 2 == 0:
            parts[-1] = line[:-1]
            yield b"".join(parts) + delimiter * (width - cells - 1) + b"\n"
            parts, quotes, cells = [], 0, 0


def _with_columns(mark: CsvMark, rows: Iterable[Cells]) -> CsvMark:
    """The mark with the columns that these rows bring."""
    columns = dict.fromkeys(mark.columns)
    for fields, *_ in rows:
        if fields != mark.columns:
            for field in fields:
                columns.setdefault(field if len(columns) < MAX_COLUMNS or field in columns else MORE)
    more = max(1, len(columns)) - max(1, len(mark.columns))
    return msgspec.structs.replace(mark, columns=tuple(columns), padding=mark.padding + more * mark.records)


def _rectangular(mark: CsvMark) -> CsvMark:
    return msgspec.structs.replace(mark, header=len(mark.columns), padding=0)


def _mark_at(position: str) -> CsvMark:
    return msgspec.json.decode(position, type=CsvMark)
