"""Parquet: a file that is written as a whole at the end, out of a spool that is durable with every commit.

pyarrow is imported only where an output is opened, or a file is read.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from silkline.errors import SinkError
from silkline.outcome import Item
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import (
    Mark,
    OutputFile,
    foreign,
    foreign_spool,
    name_of,
    position_of,
    prepare,
    remove,
    starting,
    sync,
    sync_directory,
    temporary,
    told,
)
from silkline.sinks.schema import Column, Schema
from silkline.sinks.spool import Lines, framed, line_of, pieces, spool_of

MANY = 6
"""Items that are a block: of fewer, JSON lines are shorter and sooner made."""


class ParquetMark(Mark, frozen=True):
    """How much of the spool counts, and which finished file holds the items before it.

    id: of this output, said in its files, too. spooled: items in the spool. rows: of the finished file; size,
    file and foot: by what that is known again (bytes, inode, CRC-32 of its footer), 0 where there is none.
    """

    id: str = ""
    spooled: int = 0
    rows: int = 0
    size: int = 0
    file: int = 0
    foot: int = 0

    @property
    def items(self) -> int:
        return self.rows + self.spooled


class ParquetSink:
    """Items as rows of a Parquet file, with the columns and types that all of them ask for.

    During the crawl they are appended to a spool beside the file. `finish` writes a new file of the rows that
    the old one has and those in the spool, under a temporary name, puts it in place, and removes the
    spool; what comes later begins a new one. A file that was put in place by a process that died before the
    commit is known by its `id` and its number of rows: a job's items only become more, in their order.
    """

    typed = True
    """`encode` is to get values with the types that the item has, see `record.fields_of`."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> None:
        self.name = name_of(path)
        self._columns = tuple(columns or ())
        self._shown = os.fspath(path)
        self._path = os.path.realpath(path)
        self._spool = OutputFile(spool_of(self._path))
        self._found: tuple[str | None, ParquetMark] | None = None

    def open(self, position: str | None) -> None:
        with starting(), told(self._shown):
            prepare(self._path, self._shown)
            if not os.access(os.path.dirname(self._path), os.W_OK):
                raise SinkError(
                    f"cannot create files beside {self._shown}, which a Parquet output needs: "
                    "choose a directory that you may write to"
                )
            import silkline.sinks.block  # noqa: F401  not at the first write: the event loop would wait for it

            self._found = position, self._begun() if position is None else self._resumed(_mark_at(position))

    def encode(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return item

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = self._mark(position)
        if not items:
            if mark.at:
                self._spool.cut(mark)
            return position_of(mark)
        if not mark.at:
            mark = self._spool.renewed(mark)
        mark = msgspec.structs.replace(mark, spooled=mark.spooled + len(items))
        name = self.name
        return position_of(self._spool.append(mark, _spooled([item.data[name] for item in items])))

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        mark = self._mark(position)
        with told(self._shown):
            if mark.at or not mark.size:
                self._replace(mark)
                reach("after-replace")
                with open(self._path, "rb") as file:
                    mark = _taken_over(file, mark)
            self._spool.close()
            remove(self._spool.path)
        return position_of(mark)

    def close(self) -> None:
        self._spool.close()

    def _begun(self) -> ParquetMark:
        for path, refusal in (
            (self._path, foreign(self._shown)),
            (self._spool.path, foreign_spool(self._spool.shown)),
        ):
            if os.path.exists(path) and os.path.getsize(path):
                raise SinkError(refusal)
        return ParquetMark(id=secrets.token_hex(8))

    def _resumed(self, mark: ParquetMark) -> ParquetMark:
        mark = self._known(mark, running=False)
        return self._spool.resume(mark) if mark.at else mark

    def _mark(self, position: str | None) -> ParquetMark:
        """What the position stands for; `open` may have found the files moved."""
        if self._found is not None and self._found[0] == position:
            mark = self._found[1]
        else:
            mark = self._begun() if position is None else _mark_at(position)
        with told(self._shown):
            return self._known(mark, running=True)

    def _known(self, mark: ParquetMark, *, running: bool) -> ParquetMark:
        """The mark for the file that is in place. Raises SinkError where that is none of this output's.

        running: what the file says of itself is not looked at again.
        """
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            if mark.size:
                raise
            return mark
        if not (found.st_size or mark.size):
            return mark
        if running and (found.st_ino, found.st_size) == (mark.file, mark.size):
            return mark
        with open(self._path, "rb") as file:
            if is_known(file, mark):
                return msgspec.structs.replace(mark, file=found.st_ino)
            if rows_of(file, mark) == mark.items:
                return _taken_over(file, mark)
        if not mark.size:
            raise SinkError(foreign(self._shown))
        when = "while the crawl was running" if running else "since this job wrote it"
        raise SinkError(
            f"{self._shown} was changed {when}: put the original back, or start over with --fresh"
        )

    def _replace(self, mark: ParquetMark) -> None:
        fresh = temporary(self._path)
        remove(fresh)
        try:
            with contextlib.ExitStack() as opened:
                old = opened.enter_context(open(self._path, "rb")) if mark.size else None
                new = opened.enter_context(open(fresh, "xb"))
                if old is not None:
                    os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o7777)
                rows = self._write(mark, old, new)
                new.flush()
                sync(new.fileno())
            if rows != mark.items:
                raise self._edited()
            os.replace(fresh, self._path)
        except BaseException:
            remove(fresh)
            raise
        sync_directory(self._path)

    def _write(self, mark: ParquetMark, old: BinaryIO | None, new: BinaryIO) -> int:
        """Twice through the spool: the columns must be known before the first row is written. A small one is
        read once."""
        from silkline.sinks.block import Block
        from silkline.sinks.parquetfile import GROUP_BYTES, About, ParquetReader, ParquetWriter, damage_is

        with damage_is(self._edited()):
            reader = ParquetReader(old) if old is not None else None
            columns = reader.about.columns if reader is not None else {}
            schema = Schema(columns or dict.fromkeys(self._columns, Column()))
            held = list(self._pieces(mark)) if mark.at <= GROUP_BYTES else None
            for piece in held or self._pieces(mark):
                if isinstance(piece, Lines):
                    schema.see(piece.records())
                else:
                    block = Block(piece)
                    if not schema.grow({stored.name: stored.column for stored in block.columns}):
                        schema.see(block.records())
            writer = ParquetWriter(new, About(mark.id, schema.columns))
            for table in reader.tables() if reader is not None else ():
                writer.copy(table, columns)
            for piece in held or self._pieces(mark):
                if isinstance(piece, Lines):
                    writer.add(piece.records())
                else:
                    writer.add_block(Block(piece))
            writer.close()
            return writer.rows

    def _edited(self) -> SinkError:
        return SinkError(
            f"{self._shown} or {self._spool.shown} was changed while the crawl was writing it: "
            "put the original back and run the same command again, or start over with --fresh"
        )

    def _pieces(self, mark: ParquetMark) -> Iterator[Lines | bytes]:
        if mark.at:
            with open(self._spool.path, "rb") as file:
                yield from pieces(file, mark.at)


def _spooled(records: Sequence[Mapping[str, Any]]) -> bytes:
    if len(records) >= MANY:
        from silkline.sinks.block import block_of

        block = block_of(records)
        if block is not None:
            return framed(block)
    return b"".join(map(line_of, records))


def _taken_over(file: BinaryIO, mark: ParquetMark) -> ParquetMark:
    """The mark for an opened file that holds all that counts."""
    found = os.fstat(file.fileno())
    return ParquetMark(id=mark.id, rows=mark.items, size=found.st_size, file=found.st_ino, foot=foot_of(file))


def is_known(file: BinaryIO, mark: ParquetMark) -> bool:
    """Whether an opened file is the finished one that the mark knows; it may have been moved."""
    return os.fstat(file.fileno()).st_size == mark.size and foot_of(file) == mark.foot


def rows_of(file: BinaryIO, mark: ParquetMark) -> int:
    """How many rows an opened file has, if it is one that this output wrote; -1 if not."""
    from silkline.sinks.parquetfile import DAMAGE, ParquetReader

    with contextlib.suppress(*DAMAGE):
        reader = ParquetReader(file)
        if reader.about.id == mark.id:
            return reader.rows
    return -1


def foot_of(file: BinaryIO) -> int:
    """CRC-32 of the footer, which tells files with other rows apart."""
    size = os.fstat(file.fileno()).st_size
    end = os.pread(file.fileno(), 8, max(0, size - 8))
    length = int.from_bytes(end[:4], "little") if end[4:] == b"PAR1" else 0
    return zlib.crc32(os.pread(file.fileno(), length, max(0, size - 8 - length)))


def _mark_at(position: str) -> ParquetMark:
    return msgspec.json.decode(position, type=ParquetMark)
