"""Many files become one: complete, in the format of its ending, at once or not at all."""

from __future__ import annotations

import csv
import gzip
import os
import sqlite3
import stat
import tracemalloc
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from silkline.errors import ConfigError, SilklineError
from silkline.outcome import Item
from silkline.sinks import export as exporting
from silkline.sinks import parquetfile, spool
from silkline.sinks.choose import sink_for
from silkline.sinks.committed import Committed, committed
from silkline.sinks.export import Target, export
from tests.sinks.conftest import read_rows
from tests.sinks.test_committed import ENDINGS, written

LINES = [".jsonl", ".jsonl.gz", ".jsonl.zst"]
FIRST = [{"n": 1, "text": 'a,"b"\n'}, {"n": 2, "big": 2**70, "yes": True}]
SECOND = [{"later": ["x"], "n": 3}]


def parts(folder: Path, ending: str) -> list[Committed]:
    return [
        committed(str(path), written(path, records, first=page), len(records))
        for page, (path, records) in enumerate(
            [(folder / f"p1{ending}", FIRST), (folder / f"p2{ending}", SECOND)]
        )
    ]


def exported(folder: Path, sources: list[Committed], name: str, **options: Any) -> Path:
    path = folder / name
    result = export(sources, Target(str(path), **options))
    assert result.bytes == path.stat().st_size
    return path


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("source", ENDINGS)
def test_parts_of_any_format_become_one_file_of_any_format(tmp_path: Path, source: str, ending: str) -> None:
    path = exported(tmp_path, parts(tmp_path, source), f"all{ending}")
    found = [
        {name: str(value) for name, value in row.items() if value not in (None, "")}
        for row in read_rows(path)
    ]
    typed = source in (*LINES, ".parquet")
    yes = "1" if source == ".db" or (typed and ending == ".db") else "true"
    if typed and ending in (*LINES, ".parquet"):
        yes = "True"
    later = "['x']" if typed and ending in LINES else '["x"]'
    assert found == [
        {"n": "1", "text": 'a,"b"\n'},
        {"n": "2", "big": str(2**70), "yes": yes},
        {"n": "3", "later": later},
    ]
    assert len(os.listdir(tmp_path)) == 3, "something else is left"


def test_json_lines_are_joined_as_they_are(tmp_path: Path) -> None:
    sources = parts(tmp_path, ".jsonl")
    path = exported(tmp_path, sources, "all.jsonl")
    assert path.read_text().splitlines() == [
        '{"n":1,"text":"a,\\"b\\"\\n"}',
        f'{{"n":2,"big":{2**70},"yes":true}}',
        '{"later":["x"],"n":3}',
    ]
    packed = exported(tmp_path, sources, "all.jsonl.gz")
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "p1.jsonl").stat().st_mode)


@pytest.mark.parametrize("finish", [True, False])
def test_types_go_from_parquet_to_parquet_and_are_text_elsewhere(tmp_path: Path, finish: bool) -> None:
    record = {"day": date(2030, 1, 31), "at": datetime(2030, 1, 31, 12, tzinfo=UTC), "price": Decimal("9.50")}
    sink = sink_for(str(tmp_path / "p1.parquet"))
    sink.open(None)
    position = sink.write([Item(1, 0, {sink.name: sink.encode(record)})], None)
    if finish:
        position = sink.finish(position)
    sink.close()
    assert position is not None
    sources = [committed(sink.name, position)]
    assert read_rows(exported(tmp_path, sources, "all.parquet")) == [record]
    text = {"day": "2030-01-31", "at": "2030-01-31T12:00:00Z", "price": "9.50"}
    for ending in (".jsonl", ".csv", ".db"):
        assert read_rows(exported(tmp_path, sources, f"all{ending}")) == [text], ending


def test_the_header_has_the_columns_of_all_parts_and_every_record_as_many_cells(tmp_path: Path) -> None:
    for source in (".csv", ".jsonl"):
        path = exported(tmp_path, parts(tmp_path, source), f"from{source[1:]}.csv")
        with path.open(newline="") as file:
            header, *records = csv.reader(file)
        assert header == ["n", "text", "big", "yes", "later"]
        assert {len(record) for record in records} == {5}


def test_the_pages_of_a_database_stay_with_their_rows_across_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "BATCH_ROWS", 2)
    pages = [[{"n": 1}], [{"n": n} for n in range(2, 7)], [{"n": 7}, {"n": 8}]]
    path = tmp_path / "p1.db"
    source = committed(str(path), written(path, *pages))
    with closing(sqlite3.connect(exported(tmp_path, [source], "all.db"))) as db:
        found = db.execute("SELECT _fingerprint, _index, n FROM items ORDER BY _id").fetchall()
    assert found == [
        (page, index, row["n"]) for page, rows in enumerate(pages) for index, row in enumerate(rows)
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_sources_make_a_file_without_items(tmp_path: Path, ending: str) -> None:
    assert read_rows(exported(tmp_path, [], f"all{ending}")) == []


def test_of_a_page_that_was_visited_twice_a_database_has_the_later_rows(tmp_path: Path) -> None:
    paths = [tmp_path / "p1.db", tmp_path / "p2.db"]
    sources = [
        committed(str(path), written(path, [{"n": n}, {"n": n + 1}])) for n, path in enumerate(paths, 7)
    ]
    assert [row["n"] for row in read_rows(exported(tmp_path, sources, "all.db"))] == [8, 9]
    assert len(exported(tmp_path, sources, "all.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_source_that_is_not_what_was_committed_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, ending: str
) -> None:
    sources = parts(tmp_path, ".jsonl")
    target = exported(tmp_path, sources[:1], f"all{ending}")
    before = target.read_bytes()
    os.truncate(tmp_path / "p2.jsonl", 3)
    with pytest.raises(SilklineError, match=r"p2\.jsonl has 3 bytes"):
        exported(tmp_path, sources, target.name, replace=True)
    assert target.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == sorted(["p1.jsonl", "p2.jsonl", target.name])


def test_a_file_is_replaced_only_when_asked_to(tmp_path: Path) -> None:
    sources = parts(tmp_path, ".jsonl")
    path = tmp_path / "all.jsonl"
    path.write_text("precious\n")
    with pytest.raises(ConfigError, match=r"all.jsonl exists: .* --replace"):
        exported(tmp_path, sources, "all.jsonl")
    assert path.read_text() == "precious\n"
    exported(tmp_path, sources, "all.jsonl", replace=True)
    assert len(path.read_text().splitlines()) == 3


def test_a_database_in_use_is_replaced_with_its_log(tmp_path: Path) -> None:
    sources = parts(tmp_path, ".jsonl")
    path = exported(tmp_path, sources[1:], "all.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE items SET n = 99")
        db.commit()
        assert (tmp_path / "all.db-wal").exists()
        exported(tmp_path, sources, "all.db", replace=True)
        assert [row["n"] for row in read_rows(path)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all.xlsx", "its ending names no format"),
        ("all.csv.gz", "only JSON lines can be compressed"),
        ("p1.jsonl", "is a file of the job itself"),
        ("link.jsonl", "is a file of the job itself"),
        ("folder.csv", "is not a regular file"),
    ],
)
def test_what_cannot_be_the_target_is_refused(tmp_path: Path, name: str, message: str) -> None:
    parts(tmp_path, ".jsonl")
    (tmp_path / "link.jsonl").symlink_to("p1.jsonl")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ConfigError, match=message):
        Target(str(tmp_path / name), replace=True, reserved=[str(tmp_path / "p1.jsonl")])


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file is a file and no folder"):
        exported(tmp_path, [], "file/all.jsonl")


@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_does_not_grow_with_the_files(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "BATCH_BYTES", 200_000)
    monkeypatch.setattr(spool, "BATCH", 200_000)
    monkeypatch.setattr(parquetfile, "GROUP_BYTES", 200_000)
    path = tmp_path / "p1.jsonl"
    source = committed(str(path), written(path, [{"n": n, "text": 4_000 * "x"} for n in range(2_000)]), 2_000)
    exported(tmp_path, [source], f"first{ending}")  # what is imported and compiled by the first one
    tracemalloc.start()
    try:
        exported(tmp_path, [source], f"all{ending}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 3


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place that takes no files is needed")
def test_a_place_that_takes_no_files_is_not_taken_for_a_lost_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^/proc/x\.csv cannot be created: no files can be made there"):
        export(parts(tmp_path, ".jsonl"), Target("/proc/x.csv"))
