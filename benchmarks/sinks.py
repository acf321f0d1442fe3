"""Outputs beside the libraries that they write with, in batches of 10,000 items.

    .venv/bin/python -m benchmarks.sinks                       # all of them
    .venv/bin/python -m benchmarks.sinks --only csv --runs 9

Both sides get the same records, one at a time as a crawl yields them, and end with the same rows on the disk,
synced after every batch. "write()" is what a sink does inside the commit; "in all" has the encoding of the
items, which a worker does page by page, and the finishing, too. What is the engine's is not timed: an item is
checked and made plain before, and put beside its page after, the same for all outputs. The library alone
encodes and writes the way its documentation shows. The sides take turns, in an interpreter that is tuned as
for a crawl, and the median counts. CPU is of all threads; unlike the rates it says something on a machine
that does other things, too.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.table import machine
from silkline.engine.interpreter import tuned_interpreter
from silkline.outcome import Item
from silkline.sinks.choose import sink_for
from silkline.sinks.frames import GZIP_LEVEL, ZSTD_LEVEL

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SIZE = 10_000
Record = dict[str, Any]
Batches = Sequence[Sequence[Record]]


class Spent(NamedTuple):
    """Seconds: inside of `write`, in all, and of CPU in all."""

    write: float
    total: float
    cpu: float


class Watch:
    """Seconds by the clock and of this process's CPU, while it is entered."""

    wall = cpu = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *error: object) -> None:
        wall, cpu = self._began
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


class Case(NamedTuple):
    """ours, alone: write all batches to a file that does not exist yet; both leave the same rows. What needs
    no file, such as a database, ignores the path."""

    ours: Callable[[Path, Batches], Spent]
    alone: Callable[[Path, Batches], None]


def by_sink(path: Path, batches: Batches) -> Spent:
    """As a worker does: encode each item, write each batch behind the last one's position, finish."""
    sink = sink_for(str(path))
    writing, rest, page = Watch(), Watch(), 0
    with closing(sink):
        sink.open(None)
        position = sink.write((), None)
        for batch in batches:
            with rest:
                encoded = [sink.encode(record) for record in batch]
            items = [Item(page, 0, {sink.name: data}) for page, data in enumerate(encoded, page + 1)]
            page += len(items)
            with writing:
                position = sink.write(items, position)
        with rest:
            sink.finish(position)
    return Spent(writing.wall, writing.wall + rest.wall, writing.cpu + rest.cpu)


@contextmanager
def synced(path: Path) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A new binary file, and what makes it durable."""
    with path.open("wb") as file:

        def sync() -> None:
            file.flush()
            os.fdatasync(file.fileno())

        yield file, sync


def lines_by(encoder: msgspec.json.Encoder, batch: Sequence[Record]) -> bytes:
    """Item by item; `encode_lines` would take a third less, and lose the whole batch to one item."""
    return b"\n".join([*map(encoder.encode, batch), b""])


def json_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync):
        for batch in batches:
            file.write(lines_by(encoder, batch))
            sync()


def gzip_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync), gzip.GzipFile("", "wb", GZIP_LEVEL, file) as packer:
        for batch in batches:
            packer.write(lines_by(encoder, batch))
            packer.flush()
            sync()


def zstd_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync), zstd.ZstdFile(file, "wb", level=ZSTD_LEVEL) as packer:
        for batch in batches:
            packer.write(lines_by(encoder, batch))
            packer.flush()
            sync()


def csv_records(path: Path, batches: Batches) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, batches[0][0].keys())
        writer.writeheader()
        for batch in batches:
            writer.writerows(batch)
            file.flush()
            os.fdatasync(file.fileno())


def parquet_rows(path: Path, batches: Batches) -> None:
    schema = pa.Table.from_pylist(batches[0][:100]).schema
    with synced(path) as (file, sync), pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_pylist(batch, schema))
            sync()


def sqlite_rows(path: Path, batches: Batches) -> None:
    names = list(batches[0][0])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"CREATE TABLE items (_id INTEGER PRIMARY KEY, page INTEGER UNIQUE, {', '.join(names)})")
        insert = f"INSERT INTO items (page, {', '.join(names)}) VALUES ({', '.join('?' * (len(names) + 1))})"
        page = 0
        for batch in batches:
            db.execute("BEGIN")
            db.executemany(insert, ((page + n, *record.values()) for n, record in enumerate(batch)))
            db.execute("COMMIT")
            page += len(batch)


CASES: Mapping[str, Case] = {
    "items.jsonl": Case(by_sink, json_lines),
    "items.jsonl.gz": Case(by_sink, gzip_lines),
    "items.jsonl.zst": Case(by_sink, zstd_lines),
    "items.csv": Case(by_sink, csv_records),
    "items.parquet": Case(by_sink, parquet_rows),
    "items.db": Case(by_sink, sqlite_rows),
}

WORDS = tuple("walnut oak brass linen chair lamp table round small tall dark pale café naïve".split())  # noqa: SIM905


def records(count: int) -> list[Record]:
    """Products of a shop, the same at every run."""
    chance = random.Random(7)
    return [
        {
            "url": f"https://shop.example/products/{n}",
            "sku": f"S{n:07}",
            "name": " ".join(chance.choices(WORDS, k=3)),
            "price": chance.randrange(100, 99_999) / 100,
            "stock": chance.randrange(500),
            "new": chance.random() < 0.1,
            "text": " ".join(chance.choices(WORDS, k=15)),
            "weight": None if chance.random() < 0.3 else chance.randrange(100, 9_000),
        }
        for n in range(count)
    ]


class Rates(NamedTuple):
    """Of each run: items a second, and microseconds of CPU an item in all, ours and the library's."""

    write: list[float]
    total: list[float]
    alone: list[float]
    cpu: list[float]
    cpu_alone: list[float]


def measure(name: str, case: Case, batches: Batches, runs: int) -> Rates:
    rates = Rates([], [], [], [], [])
    count = sum(map(len, batches))
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="sinks-") as folder:
            spent = case.ours(Path(folder) / name, batches)
        rates.write.append(count / spent.write)
        rates.total.append(count / spent.total)
        rates.cpu.append(spent.cpu / count * 1e6)
        alone = Watch()
        with tempfile.TemporaryDirectory(prefix="sinks-") as folder, alone:
            case.alone(Path(folder) / name, batches)
        rates.alone.append(count / alone.wall)
        rates.cpu_alone.append(alone.cpu / count * 1e6)
    return rates


def table(found: Mapping[str, Rates]) -> str:
    """In Markdown. The last column is of the CPU time: 100 % is the library's."""
    sides = ("write()", "in all", "library alone")
    heads = ["items/s", *(head for side in sides for head in (side, "min-max")), "write()", "in all"]
    heads += ["CPU µs/item", "min-max", "library alone", "min-max", "in all"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, rates in found.items():
        cells = [name]
        for side in rates[:3]:
            cells += [f"{median(side):,.0f}", f"{min(side):,.0f}-{max(side):,.0f}"]
        cells += [f"{median(side) / median(rates.alone):.0%}" for side in (rates.write, rates.total)]
        for side in rates[3:]:
            cells += [f"{median(side):.2f}", f"{min(side):.2f}-{max(side):.2f}"]
        cells.append(f"{median(rates.cpu_alone) / median(rates.cpu):.0%}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sinks", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help="the outputs with this in their names")
    parser.add_argument("--batches", type=int, default=5, help=f"of {SIZE:,} items each")
    parser.add_argument("--runs", type=int, default=5, help="of each side")
    given = parser.parse_args()
    made = records(given.batches * SIZE)
    batches = [made[n : n + SIZE] for n in range(0, len(made), SIZE)]
    cases = {name: case for name, case in CASES.items() if given.only in name}
    if not cases:
        parser.error(f"no output has {given.only!r} in its name; there are {', '.join(CASES)}")
    with tuned_interpreter():
        found = {name: measure(name, case, batches, given.runs) for name, case in cases.items()}
    print(f"{given.batches} batches of {SIZE:,} items, {given.runs} alternating runs, on {machine()}\n")
    print(table(found))


if __name__ == "__main__":
    main()
