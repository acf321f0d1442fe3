"""Outputs beside the libraries that they write with, in batches of 10,000 items.

    .venv/bin/python -m benchmarks.sinks                       # all of them
    .venv/bin/python -m benchmarks.sinks --only csv --runs 9

Both sides get the same records and end with the same rows on the disk, synced after every batch. "write()" is
what a sink does inside the commit; "in all" has the encoding of the items, which a worker does page by page,
and the finishing, too. The library alone encodes and writes the way its documentation shows. The sides take
turns, and the median counts. An item is checked and made plain before that, the same for all outputs.
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
    """Seconds: inside of `write`, and in all."""

    write: float
    total: float


class Case(NamedTuple):
    """ours, alone: write all batches to a file that does not exist yet; both leave the same rows. What needs
    no file, such as a database, ignores the path."""

    ours: Callable[[Path, Batches], Spent]
    alone: Callable[[Path, Batches], None]


def by_sink(path: Path, batches: Batches) -> Spent:
    """As a worker does: encode each item, write each batch behind the last one's position, finish."""
    sink = sink_for(str(path))
    writing, page, clock = 0.0, 0, time.perf_counter
    with closing(sink):
        sink.open(None)
        position = sink.write((), None)
        begun = clock()
        for batch in batches:
            items = []
            for page, record in enumerate(batch, page + 1):  # noqa: B020
                items.append(Item(page, 0, {sink.name: sink.encode(record)}))
            started = clock()
            position = sink.write(items, position)
            writing += clock() - started
        sink.finish(position)
    return Spent(writing, clock() - begun)


@contextmanager
def synced(path: Path) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A new binary file, and what makes it durable."""
    with path.open("wb") as file:

        def sync() -> None:
            file.flush()
            os.fdatasync(file.fileno())

        yield file, sync


def json_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync):
        for batch in batches:
            file.write(encoder.encode_lines(batch))
            sync()


def gzip_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync), gzip.GzipFile("", "wb", GZIP_LEVEL, file) as packer:
        for batch in batches:
            packer.write(encoder.encode_lines(batch))
            packer.flush()
            sync()


def zstd_lines(path: Path, batches: Batches) -> None:
    encoder = msgspec.json.Encoder()
    with synced(path) as (file, sync), zstd.ZstdFile(file, "wb", level=ZSTD_LEVEL) as packer:
        for batch in batches:
            packer.write(encoder.encode_lines(batch))
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
    """Items a second, of each run."""

    write: list[float]
    total: list[float]
    alone: list[float]


def measure(name: str, case: Case, batches: Batches, runs: int) -> Rates:
    rates = Rates([], [], [])
    count = sum(map(len, batches))
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="sinks-") as folder:
            spent = case.ours(Path(folder) / name, batches)
        rates.write.append(count / spent.write)
        rates.total.append(count / spent.total)
        with tempfile.TemporaryDirectory(prefix="sinks-") as folder:
            started = time.perf_counter()
            case.alone(Path(folder) / name, batches)
            rates.alone.append(count / (time.perf_counter() - started))
    return rates


def table(found: Mapping[str, Rates]) -> str:
    """In Markdown."""
    lines = [
        "| items/s | write() | min-max | in all | min-max | library alone | min-max | write() | in all |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, rates in found.items():
        cells = [name]
        for side in rates:
            cells += [f"{median(side):,.0f}", f"{min(side):,.0f}-{max(side):,.0f}"]
        cells += [f"{median(side) / median(rates.alone):.0%}" for side in (rates.write, rates.total)]
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
    found = {name: measure(name, case, batches, given.runs) for name, case in cases.items()}
    print(f"{given.batches} batches of {SIZE:,} items, {given.runs} alternating runs, on {machine()}\n")
    print(table(found))


if __name__ == "__main__":
    main()
