"""One crawl of the pages in a folder: starting it, and comparing store and output with the truth."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from silkline.frontier.sqlite_file import Database, open_reader
from silkline.frontier.sqlite_letters import causes
from silkline.frontier.sqlite_reads import positions, stats
from silkline.outcome import Stats
from silkline.request import Request
from tests.crash.launcher import PATIENCE, Launcher, Running
from tests.crash.pages import Pages

SKIP_AHEAD = """
UPDATE requests SET due = due - (SELECT min(due) FROM requests WHERE state = 'delayed') + ?
WHERE state = 'delayed' AND NOT EXISTS (SELECT 1 FROM requests WHERE state IN ('waiting', 'leased'))
"""

csv.field_size_limit(2**30)

Row = dict[str, str]


class State(msgspec.Struct):
    """What the store says. done: numbers of pages; position: of the output, None where there is none yet."""

    stats: Stats
    dead: Mapping[str, int]
    done: set[int]
    position: str | None


class Crawl:
    """ending: of the output. Every start is the same command, so all but the first one resume."""

    def __init__(
        self, launcher: Launcher, pages: Pages, folder: Path, ending: str, processes: int = 1
    ) -> None:
        self.pages = pages
        self.folder = folder
        self.output = folder / f"items{ending}"
        self.store = folder / "job.db"
        # Pages that are in flight at many kills must not die of it.
        self.env = {"SILKLINE_MAX_DELIVERIES": "10000", "SILKLINE_ALLOW_PRIVATE": "true"}
        self._launcher = launcher
        self._processes = processes
        self._numbers = {Request(pages.url(number)).fingerprint: number for number in range(pages.count)}
        pages.write_seeds(folder / "seeds.txt")

    def start(self, *, max_bytes: int | None = None, **env: str) -> Running:
        return self._launcher.start(
            ["--urls", "seeds.txt", "-o", self.output.name, "--processes", str(self._processes)],
            folder=self.folder,
            env={**self.env, **env},
            max_bytes=max_bytes,
        )

    def finish(self) -> None:
        """Run to the end, and check that nothing was lost or doubled on the way."""
        run = self.start()
        self.hurry(run)
        assert run.ended() == 0, run.log
        assert "crash: finished in " in run.log or "crash: was already finished" in run.log, run.log
        self.check_finished()

    def hurry(self, run: Running, reached: Callable[[], bool] = lambda: False) -> None:
        """Wait until `reached` or the end of the crawl. Whenever the crawl has nothing to do but to wait for
        a delayed request, skip the time until then."""
        assert run.until(self.store.exists), run.log
        deadline = time.monotonic() + PATIENCE
        with contextlib.closing(sqlite3.connect(self.store, timeout=30, isolation_level=None)) as db:
            while not reached() and not run.over(within=0.02):
                assert time.monotonic() < deadline, run.log
                with contextlib.suppress(sqlite3.OperationalError):  # the tables are not there yet
                    db.execute(SKIP_AHEAD, [time.time()])

    def check_finished(self, dead: Mapping[str, int] | None = None) -> None:
        state = self.state()
        assert state is not None
        assert state.dead == (dead or {})
        assert state.stats == Stats(done=len(self.pages.truth()), dead=sum((dead or {}).values()))
        assert state.position is not None
        self._check_all_counts(state.position)
        self._check(self._rows(state.position), state.done)
        temporary = {path.name for path in self.folder.iterdir() if path.name[0] == "."}
        assert not temporary

    def check_killed(self) -> None:
        """All processes are dead: the output, cut where the store says, has the items of all pages that are
        done and nothing else."""
        state = self.state()
        if state is not None and state.position is not None:
            self._check(self._rows(state.position), state.done)

    def state(self) -> State | None:
        """None while there is no store. Read from a copy: the next start must find what the kill left."""
        with self._copied(self.store) as copy, contextlib.closing(open_reader(copy)) as reader:
            if reader.row("SELECT 1 FROM sqlite_schema WHERE name = 'positions'") is None:
                return None
            position = positions(reader).get(str(self.output))
            return State(stats(reader), causes(reader), self._done(reader), position)

    def _done(self, reader: Database) -> set[int]:
        done = reader.rows("SELECT fingerprint FROM seen EXCEPT SELECT fingerprint FROM requests")
        return {self._numbers[fingerprint] for (fingerprint,) in done}

    def _check(self, rows: list[Row], done: set[int]) -> None:
        found: dict[int, list[Row]] = {}
        for row in rows:
            found.setdefault(int(row["page"]), []).append(row)
        truth = self.pages.truth()
        expected = {number: truth[number] for number in done if truth.get(number)}
        assert found.keys() == expected.keys()
        for number, items in expected.items():
            assert found[number] == [text_of(item) for item in items]

    def _rows(self, position: str | None) -> list[Row]:
        """What counts in the output, as text, without empty cells."""
        assert position is not None
        if self.output.suffix == ".db":
            return self._table(int(position))
        mark = json.loads(position)
        data = self.output.read_bytes()
        header = mark.get("columns", [])
        if mark["inode"] == os.stat(self.output).st_ino:
            data = data[: mark["at"]]
        assert data[-1:] in (b"", b"\n"), "half a line"
        if self.output.suffix == ".jsonl":
            return [text_of(json.loads(line)) for line in data.splitlines()]
        records = list(csv.reader(io.StringIO(data.decode(), newline="")))
        assert not records or records[0] == header[: len(records[0])]
        return [text_of(dict(zip(header, record, strict=False))) for record in records[1:]]

    def _table(self, last: int) -> list[Row]:
        with self._copied(self.output) as copy, contextlib.closing(sqlite3.connect(copy)) as db:
            db.row_factory = sqlite3.Row
            if not last:
                return []
            found = [
                dict(row) for row in db.execute("SELECT * FROM items WHERE _id <= ? ORDER BY _id", [last])
            ]
        assert [row["_id"] for row in found] == list(range(1, last + 1))
        return [text_of({name: row[name] for name in row if name[0] != "_"}) for row in found]

    def _check_all_counts(self, position: str) -> None:
        """Nothing stands behind the committed position, and a CSV file is a rectangle under one header."""
        if self.output.suffix == ".db":
            with self._copied(self.output) as copy, contextlib.closing(sqlite3.connect(copy)) as db:
                assert db.execute("SELECT count(*) FROM items").fetchone() == (int(position),)
            return
        assert self.output.stat().st_size == json.loads(position)["at"]
        if self.output.suffix == ".csv":
            with self.output.open(newline="") as file:
                header, *records = csv.reader(file)
            assert header not in records
            assert {len(record) for record in records} == {len(header)}

    @contextlib.contextmanager
    def _copied(self, database: Path) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            for suffix in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(f"{database}{suffix}", folder)
            yield Path(folder) / database.name


def text_of(item: dict[str, Any]) -> Row:
    """Without what is empty, and without what is another thing on every visit."""
    return {name: str(value) for name, value in item.items() if value not in (None, "") and name != "ad"}
