"""One file of what counts in several: joined, converted by its ending, there as a whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

import msgspec

from silkline.errors import ConfigError
from silkline.files import is_address, is_slip, shown_output, split_ending
from silkline.outcome import Item
from silkline.sinks.choose import discard, sink_for, wants_types
from silkline.sinks.committed import Committed, JsonLines, Row
from silkline.sinks.format import Format
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.outputfile import creating, remove, starting, sync, sync_directory, told
from silkline.sinks.packed import PackedLinesSink
from silkline.sinks.record import json_of, record_of
from silkline.sinks.sqlite import SqliteSink

BATCH_ROWS, BATCH_BYTES = 2_000, 4_194_304
"""How much is held in memory, and written in one step."""


class Exported(msgspec.Struct, frozen=True):
    """rows, and bytes of the file that they are in."""

    rows: int
    bytes: int


class Target:
    """The file to be written.

    replace: it may be there, and is replaced. excel: CSV for spreadsheets. reserved: files that it must not
    be.

    Raises ConfigError for an ending that no format has, and where something is that may not be replaced.
    """

    def __init__(
        self, path: str, *, replace: bool = False, excel: bool = False, reserved: Iterable[str] = ()
    ) -> None:
        if is_address(path) or is_slip(path):
            raise ConfigError(f"{shown_output(path)!r}: export writes files, not databases and buckets")
        self.shown = path
        self.excel = excel
        self.path = os.path.realpath(path)
        sink = sink_for(path)
        self.frames = sink.frames if isinstance(sink, PackedLinesSink) else None
        self.is_json_lines = isinstance(sink, (JsonLinesSink, PackedLinesSink))
        self.is_database = isinstance(sink, SqliteSink)
        self.ending = split_ending(path)[1]
        if self.path in {os.path.realpath(name) for name in reserved}:
            raise ConfigError(f"{path} is a file of the job itself: choose another name")
        if os.path.exists(self.path):
            if not replace:
                raise ConfigError(f"{path} exists: choose another name, or replace it with --replace")
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise ConfigError(
                    f"{path} is not a regular file and will not be replaced: choose another name"
                )

    @contextmanager
    def replaced(self) -> Iterator[str]:
        """Gives the path of a new file. It takes the target's place in the end; on an error it is removed."""
        folder, name = os.path.split(self.path)
        with starting(), told(self.shown), creating(self.shown):
            os.makedirs(folder, exist_ok=True)
            work = tempfile.mkdtemp(prefix=f".{name[:100]}.", dir=folder)
        fresh = os.path.join(work, f"items{self.ending}")
        try:
            yield fresh
            with told(self.shown):
                if self.is_database:
                    for suffix in ("-wal", "-shm", "-journal"):
                        remove(self.path + suffix)  # an earlier database's would be taken for the new one's
                os.replace(fresh, self.path)
                sync_directory(self.path)
        finally:
            discard(fresh)
            with suppress(OSError):
                os.rmdir(work)


def export(sources: Sequence[Committed], target: Target) -> Exported:
    """Write what counts in the sources, one after the other, with memory for a batch.

    Raises SinkError where a source is not what was committed, or the target cannot be written.
    """
    with target.replaced() as fresh:
        rows = _lines(sources, target, fresh) if target.is_json_lines else _converted(sources, target, fresh)
    return Exported(rows, os.path.getsize(target.path))


def _lines(sources: Sequence[Committed], target: Target, fresh: str) -> int:
    number = 0
    with told(target.shown), open(fresh, "xb", buffering=1_048_576) as file:
        with target.frames.writer(file) if target.frames is not None else nullcontext(file) as out:
            for source in sources:
                for line in lines_of(source):
                    out.write(line)
                    number += 1
        file.flush()
        sync(file.fileno())
    return number


def lines_of(source: Committed) -> Iterator[bytes]:
    """The items as JSON lines; those that are such are not taken apart."""
    if isinstance(source, JsonLines):
        return source.lines()
    return (json_of(row.record) + b"\n" for row in source.rows())


def _converted(sources: Sequence[Committed], target: Target, fresh: str) -> int:
    """As a crawl writes the format. Where a source does not say whose page a row is, a number stands in."""
    sink = sink_for(fresh, Format(columns_of(sources), target.excel))
    typed = wants_types(sink)
    sink.open(None)
    try:
        number, position = 0, sink.write((), None)
        for batch in batches(row for source in sources for row in source.rows()):
            items = []
            for number, row in enumerate(batch, number + 1):  # noqa: B020
                page, index = row.key or (number, 0)
                values = row.record if typed or not row.typed else record_of(row.record)
                items.append(Item(page, index, {sink.name: sink.encode(values)}))
            position = sink.write(items, position)
        sink.finish(position)
    finally:
        sink.close()
    return number


def columns_of(sources: Sequence[Committed]) -> list[str] | None:
    """All columns, where every source knows its own beforehand: then the header has them from the start."""
    columns: dict[str, None] = {}
    for source in sources:
        if source.columns is None:
            return None
        columns |= dict.fromkeys(source.columns)
    return list(columns)


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of a page stay together, and a page that comes again, where a job asked for that, has another
    batch: a table's sink replaces the rows of a page as a whole."""
    batch: list[Row] = []
    pages: set[int] = set()
    size, last = 0, None
    for row in rows:
        page, index = row.key or (None, 0)
        enough = len(batch) >= BATCH_ROWS or size >= BATCH_BYTES or page in pages
        if batch and enough and (page != last or index == 0):
            yield batch
            batch, pages, size = [], set(), 0
        if page is not None:
            pages.add(page)
        batch.append(row)
        size, last = size + row.size, page
    if batch:
        yield batch
