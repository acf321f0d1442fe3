"""What the sink tests share: items for a sink, and a reader for what is in an output."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from silkline.outcome import Item
from silkline.protocols import Sink
from silkline.sinks.record import record_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Items = Callable[..., list[Item]]


@pytest.fixture
def items_for() -> Items:
    """items_for(sink, record, ...): each record as the only item of a page of its own."""
    pages = count(1)

    def items(sink: Sink, *records: Mapping[str, Any]) -> list[Item]:
        return [Item(next(pages), 0, {sink.name: sink.encode(record_of(record))}) for record in records]

    return items


@pytest.fixture
def opened() -> Iterator[Callable[[Sink, str | None], str]]:
    """opened(sink, position): open as the engine does, and return the position to write at."""
    sinks: list[Sink] = []

    def open_sink(sink: Sink, position: str | None = None) -> str:
        sinks.append(sink)
        sink.open(position)
        return sink.write((), position)

    yield open_sink
    for sink in sinks:
        sink.close()


@pytest.fixture
def rows_in() -> Callable[[Path], list[dict[str, Any]]]:
    """rows_in(path): the items in an output, read by something else than silkline."""
    return read_rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    if ".jsonl" in path.suffixes:
        text = unpacked(path).decode()
        assert text == "" or text.endswith("\n")
        return [json.loads(line) for line in text.split("\n")[:-1]]
    if path.suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    if path.suffix == ".parquet":
        return [dict(row) for row in pq.read_table(path).to_pylist()]
    with sqlite3.connect(path) as db:
        db.row_factory = sqlite3.Row
        rows = [dict(row) for row in db.execute("SELECT * FROM items ORDER BY _id")]
    db.close()
    return [{name: value for name, value in row.items() if name[0] != "_"} for row in rows]


def unpacked(path: Path) -> bytes:
    """The whole content of a file, as other programs read it: with an error where its end is missing."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data) if data else b""
    return zstd.decompress(data) if path.suffix == ".zst" and data else data
