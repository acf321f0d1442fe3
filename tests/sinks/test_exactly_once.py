"""Model-based: whatever sequence of writes, crashes, reopenings and finishes, an output holds what was
committed, once and in order."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import sqlite3
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow.parquet as pq
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from silkline.outcome import Item
from silkline.protocols import Sink
from silkline.sinks.choose import sink_for
from silkline.sinks.committed import committed
from silkline.sinks.format import Format
from silkline.sinks.spool import spool_of
from tests.sinks.conftest import unpacked

NAMES = st.sampled_from(["a", "b", "c", 'quo"ted', "com,ma", "new\nline", "d e", "é"])
TEXT = st.text(st.sampled_from('ab=,"\n\r\t é�'), max_size=5)
RECORDS = st.dictionaries(NAMES, st.none() | TEXT, max_size=5)
BATCHES = st.lists(RECORDS, max_size=4)


class Crawl(RuleBasedStateMachine):
    """Two processes (sink objects) share one output; `self.position` is what the store has."""

    ending = ""
    excel = False
    nothing: tuple[object, ...] = (None,)

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sink-"))
        self.path = self.folder / f"items{self.ending}"
        self.position: str | None = None
        self.committed: list[dict[str, Any]] = []
        self.pages = count(1)
        self.clean = True  # nothing is behind the committed position
        self.processes = [self.begin(), self.begin()]

    def begin(self) -> Sink:
        sink = sink_for(str(self.path), Format(excel=self.excel))
        sink.open(self.position)
        self.position = sink.write((), self.position)
        self.clean = True
        return sink

    def items(self, sink: Sink, batch: list[dict[str, Any]]) -> list[Item]:
        return [Item(next(self.pages), 0, {sink.name: sink.encode(record)}) for record in batch]

    @rule(batch=BATCHES, who=st.integers(0, 1))
    def commit(self, batch: list[dict[str, Any]], who: int) -> None:
        sink = self.processes[who]
        self.position = sink.write(self.items(sink, batch), self.position)
        self.committed += batch
        self.clean = True

    @rule(batch=BATCHES, who=st.integers(0, 1), torn=st.floats(0, 1))
    def die_before_the_commit(self, batch: list[dict[str, Any]], who: int, torn: float) -> None:
        sink = self.processes[who]
        before = self.grown().stat().st_size if self.grown().exists() else 0
        sink.write(self.items(sink, batch), self.position)
        self.tear(before, torn)
        self.clean = False
        self.restart(who)

    @rule(batch=BATCHES, who=st.integers(0, 1))
    def fail_to_commit_and_live(self, batch: list[dict[str, Any]], who: int) -> None:
        sink = self.processes[who]
        sink.write(self.items(sink, batch), self.position)
        self.clean = False

    @rule(who=st.integers(0, 1))
    def finish(self, who: int) -> None:
        self.position = self.processes[who].finish(self.position)
        self.clean = True
        self.check_finished()

    @rule(who=st.integers(0, 1), restarts=st.booleans())
    def die_after_finishing(self, who: int, restarts: bool) -> None:
        self.processes[who].finish(self.position)
        self.clean = False  # a rewritten file that nobody has committed
        if restarts:
            self.restart(who)

    @rule(who=st.integers(0, 1))
    def restart(self, who: int) -> None:
        self.processes[who].close()
        self.processes[who] = self.begin()

    @precondition(lambda self: self.committed)  # before that, a file with another inode is not trusted
    @rule()
    def move_the_file_and_resume(self) -> None:
        """Everything stops, the output is copied to another disk and back, everything starts."""
        for sink in self.processes:
            sink.close()
        for path in {self.path, self.grown()}:
            if path.exists():
                shutil.copy(path, path.with_suffix(".copy"))
                os.replace(path.with_suffix(".copy"), path)
        self.processes = [self.begin(), self.begin()]

    @invariant()
    def what_stands_still_is_right(self) -> None:
        if self.clean:
            committed = [without_nothing(record, self.nothing) for record in self.committed]
            assert self.current() == committed

    def teardown(self) -> None:
        for sink in self.processes:
            sink.close()
        shutil.rmtree(self.folder)

    def tear(self, before: int, torn: float) -> None:
        """A write that a kill cut short. A database takes care of that by itself."""

    def grown(self) -> Path:
        """The file that grows with every write."""
        return self.path

    def check_finished(self) -> None:
        """What holds besides, right after finishing."""

    def current(self) -> list[dict[str, Any]]:
        """The items in the output; a field without a value is left out."""
        raise NotImplementedError


def without_nothing(record: dict[str, Any], nothing: tuple[object, ...]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value not in nothing}


class FileCrawl(Crawl):
    def tear(self, before: int, torn: float) -> None:
        size = self.grown().stat().st_size if self.grown().exists() else 0
        if size > before:
            os.truncate(self.grown(), before + int((size - before) * torn))


class JsonLinesCrawl(FileCrawl):
    ending = ".jsonl"

    def current(self) -> list[dict[str, Any]]:
        lines = unpacked(self.path).split(b"\n")
        assert lines.pop() == b""
        return [without_nothing(json.loads(line), self.nothing) for line in lines]


class GzipCrawl(JsonLinesCrawl):
    ending = ".jsonl.gz"


class ZstdCrawl(JsonLinesCrawl):
    ending = ".jsonl.zst"


class CsvCrawl(FileCrawl):
    ending = ".csv"
    nothing = (None, "")

    def current(self) -> list[dict[str, Any]]:
        """While the crawl runs, records may be longer than the header; cells stand in the columns' order."""
        header, records = self.read()
        columns = list(dict.fromkeys(name for record in self.committed for name in record))
        assert header in (columns[: len(header)], [""])
        return [without_nothing(dict(zip(columns, record, strict=False)), self.nothing) for record in records]

    def check_finished(self) -> None:
        header, records = self.read()
        columns = list(dict.fromkeys(name for record in self.committed for name in record))
        assert header == columns or not columns
        assert all(len(record) == len(header) for record in records)

    def read(self) -> tuple[list[str], list[list[str]]]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            header, *records = list(csv.reader(file)) or [[]]
        return header, records


class ExcelCrawl(CsvCrawl):
    """Names and values that are formulas come back as they were."""

    excel = True

    def read(self) -> tuple[list[str], list[list[str]]]:
        header, records = super().read()
        assert self.path.read_bytes()[:3] in (b"", b"\xef\xbb\xbf")
        return header, [[unquoted(cell) for cell in record] for record in records]


def unquoted(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" else cell


class ParquetCrawl(FileCrawl):
    ending = ".parquet"

    def grown(self) -> Path:
        return Path(spool_of(str(self.path)))

    def current(self) -> list[dict[str, Any]]:
        """Until it is finished, as silkline reads it."""
        assert self.position is not None
        rows = committed(str(self.path), self.position).rows()
        return [without_nothing(row.record, self.nothing) for row in rows]

    def check_finished(self) -> None:
        rows = [without_nothing(row, self.nothing) for row in pq.read_table(self.path).to_pylist()]
        assert rows == [without_nothing(record, self.nothing) for record in self.committed]
        assert os.listdir(self.folder) == [self.path.name]


class SqliteCrawl(Crawl):
    ending = ".db"

    def current(self) -> list[dict[str, Any]]:
        if not self.path.stat().st_size:
            return []
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.row_factory = sqlite3.Row
            rows = [dict(row) for row in db.execute("SELECT * FROM items ORDER BY _id")]
        internal = ("_id", "_fingerprint", "_index")
        return [without_nothing({n: v for n, v in row.items() if n not in internal}, (None,)) for row in rows]


for machine in (JsonLinesCrawl, GzipCrawl, ZstdCrawl, CsvCrawl, ExcelCrawl, ParquetCrawl, SqliteCrawl):
    machine.TestCase.settings = settings(
        max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )

TestJsonLinesCrawl = JsonLinesCrawl.TestCase
TestGzipCrawl = GzipCrawl.TestCase
TestZstdCrawl = ZstdCrawl.TestCase
TestCsvCrawl = CsvCrawl.TestCase
TestExcelCrawl = ExcelCrawl.TestCase
TestParquetCrawl = ParquetCrawl.TestCase
TestSqliteCrawl = SqliteCrawl.TestCase
