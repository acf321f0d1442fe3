"""What is read back is what counts: no tail, nothing of a file that is not what was committed."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.errors import SinkError
from silkline.outcome import Item
from silkline.sinks import csv as csv_sink
from silkline.sinks.choose import sink_for
from silkline.sinks.columns import column_for
from silkline.sinks.committed import committed
from silkline.sinks.record import json_of, record_of
from silkline.sinks.sqlite import NAMING

ENDINGS = [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".csv", ".tsv", ".db"]
PACKED = (".jsonl.gz", ".jsonl.zst")
RECORDS = [{"n": 1, "text": 'a,"b"\n\tc'}, {"n": 2, "later": ["x", None]}, {"n": 3, "text": "z" * 200_000}]
TABLE = [
    {"n": 1, "text": 'a,"b"\n\tc', "later": None},
    {"n": 2, "text": None, "later": '["x",null]'},
    {"n": 3, "text": "z" * 200_000, "later": None},
]
CELLS = [row | {"n": str(row["n"])} for row in TABLE]
EXPECTED = dict.fromkeys(ENDINGS, RECORDS) | {".csv": CELLS, ".tsv": CELLS, ".db": TABLE}


def written(
    path: Path, *batches: list[dict[str, Any]], tail: bool = True, finish: bool = False, first: int = 0
) -> str:
    """Write the batches, each as a page from `first` on, and one more that does not count.

    Returns the position.
    """
    sink = sink_for(str(path))
    sink.open(None)
    position = sink.write((), None)
    for number, batch in enumerate(batches, first):
        position = sink.write(items(sink, batch, number), position)
    if finish:
        position = sink.finish(position)
    if tail:
        sink.write(items(sink, [{"n": "tail"}] * 3, first + len(batches)), position)
    sink.close()
    assert position is not None
    return position


def grown_by(path: Path) -> Path:
    """The file that grows with every write."""
    return path.with_name(f"{path.name}.spool") if path.suffix == ".parquet" else path


def items(sink: Any, records: list[dict[str, Any]], page: int) -> list[Item]:
    return [
        Item(page, index, {sink.name: sink.encode(record_of(record))}) for index, record in enumerate(records)
    ]


def rows(path: Path, position: str, count: int | None = None) -> list[dict[str, Any]]:
    return [row.record for row in committed(str(path), position, count).rows()]


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_counts_is_read_and_a_tail_is_not(tmp_path: Path, ending: str, finish: bool) -> None:
    path = tmp_path / f"out{ending}"
    position = written(path, RECORDS[:1], RECORDS[1:], finish=finish)
    found = rows(path, position, 3)
    if ending == ".parquet":  # once it is finished, every row has every column
        found = [{name: value for name, value in row.items() if value is not None} for row in found]
    assert found == EXPECTED[ending]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_items_has_none(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    assert rows(path, written(path, tail=False), 0) == []


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_csv_file_that_was_rewritten_and_not_committed_is_read_all_the_same(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"out{ending}"
    position = written(path, RECORDS[:1], RECORDS[1:], tail=False)
    inode = path.stat().st_ino
    sink = sink_for(str(path))
    sink.open(position)
    sink.finish(position)
    sink.close()
    assert path.stat().st_ino != inode
    with path.open("a") as file:
        file.write("a tail\n")
    assert rows(path, position, 3) == CELLS


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_shorter_than_was_committed_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    position = written(path, RECORDS, tail=False)
    if ending == ".db":
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM items WHERE _id = 3")
    else:
        grown = grown_by(path)
        os.truncate(grown, grown.stat().st_size - (20 if ending in PACKED else 1))
    with pytest.raises(SinkError, match=rf"out\{ending}(\.spool)? has .* were committed: it was cut"):
        rows(path, position, 3)


@pytest.mark.parametrize(
    ("ending", "change"),
    [
        (".jsonl", lambda data: data[:-2] + b"?\n"),  # in the tail that the mark knows
        (".jsonl", lambda data: data.replace(b'{"n":1', b'{"n" 1')),  # no JSON
        (".jsonl", lambda data: data.replace(b"zzz", b"z\nz", 1)),  # another number of lines
        (".jsonl.gz", lambda data: data[:60] + b"????" + data[64:]),
        (".jsonl.zst", lambda data: data[:60] + b"????" + data[64:]),
        (".csv", lambda data: data[:-2] + b"?\n"),
        (".csv", lambda data: data.replace(b"zzz", b"z\nz", 1)),
        (".csv", lambda data: data.replace(b"zzz", b"z\xffz", 1)),  # no UTF-8
        (".db", lambda data: b"no database any more" + data[20:]),
    ],
)
def test_a_file_that_was_edited_is_refused(tmp_path: Path, ending: str, change: Any) -> None:
    path = tmp_path / f"out{ending}"
    position = written(path, RECORDS, tail=False)
    edited = change(path.read_bytes())
    assert edited != path.read_bytes()
    path.write_bytes(edited)
    with pytest.raises(SinkError, match="was changed since its worker wrote it: put the original back"):
        rows(path, position, 3)


def test_what_is_in_no_column_of_its_own_is_read_back(tmp_path: Path) -> None:
    wide = {f"f{n}": str(n) for n in range(csv_sink.MAX_COLUMNS + 5)}
    for ending in (".csv", ".db"):
        path = tmp_path / f"out{ending}"
        (row,) = rows(path, written(path, [wide]), 1)
        assert {name: value for name, value in row.items() if value is not None} == wide


def test_a_field_gets_back_the_name_that_sqlite_could_not_take(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    record = {"name": 1, "Name": 2, "_id": 3, "_more": 4}
    assert column_for("Name", {b"name": "name"}, NAMING) != "Name"
    assert rows(path, written(path, [record], tail=False), 1) == [record]


def test_reading_a_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a folder?" / "out.db"
    path.parent.mkdir()
    position = written(path, RECORDS)
    assert rows(path, position)
    assert os.listdir(path.parent) == ["out.db"]


def test_a_database_is_read_while_its_worker_writes(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = sink_for(str(path))
    sink.open(None)
    position = sink.write(items(sink, RECORDS, 0), None)
    assert position is not None
    reading = committed(str(path), position).rows()
    found = [next(reading)]
    sink.write(items(sink, [{"n": 9, "more": 1}], 1), position)
    found += reading
    sink.close()
    assert [row.record["n"] for row in found] == [1, 2, 3]


names = st.sampled_from(["a", "b", "A", "c,d", "e\nf", "_id", "_more"])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.lists(st.text()),
)
batches = st.lists(st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=3), max_size=4)


@settings(deadline=None, max_examples=40)
@given(batches)
def test_json_lines_come_back_as_they_were(found: list[list[dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        position = written(path, *found)
        assert rows(path, position, sum(map(len, found))) == [
            record_of(record) for batch in found for record in batch
        ]


@settings(deadline=None, max_examples=40)
@given(batches, st.sampled_from([".csv", ".tsv"]), st.booleans())
def test_cells_come_back_as_text(found: list[list[dict[str, Any]]], ending: str, finish: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"out{ending}"
        position = written(path, *found, finish=finish)
        records = [record_of(record) for batch in found for record in batch]
        assert [
            {name: cell for name, cell in row.items() if cell is not None}
            for row in rows(path, position, len(records))
        ] == [
            {name: text for name, value in record.items() if (text := cell_of(value))} for record in records
        ]


def cell_of(value: Any) -> str:
    """As docs/outputs.md has it."""
    if value is None or isinstance(value, str):
        return value or ""
    return json_of(value).decode()
