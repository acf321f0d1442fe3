from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from silkline.errors import ConfigError
from silkline.outcome import Done, Item, Lease, Outcome
from silkline.request import Request
from silkline.sinks.choose import deliver_to, discard, discard_owned, finish_all, sink_for, sinks_for
from silkline.sinks.csv import CsvSink
from silkline.sinks.format import Format
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.outputfile import name_of
from silkline.sinks.packed import PackedLinesSink
from silkline.sinks.parquet import ParquetSink
from silkline.sinks.spool import spool_of
from silkline.sinks.sqlite import SqliteSink


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", JsonLinesSink),
        ("a.ndjson", JsonLinesSink),
        ("a.jsonl.gz", PackedLinesSink),
        ("a.b.ndjson.ZST", PackedLinesSink),
        ("a.parquet", ParquetSink),
        ("a.CSV", CsvSink),
        ("a.tsv", CsvSink),
        ("a.db", SqliteSink),
        ("a.b.sqlite", SqliteSink),
        ("a.sqlite3", SqliteSink),
    ],
)
def test_the_ending_names_the_format(name: str, kind: type) -> None:
    assert type(sink_for(name)) is kind


@pytest.mark.parametrize("name", ["a.xlsx", "a", "-", ".csv", "a.csv/", "a.gz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"known are \.jsonl, \.ndjson, .*\.csv"):
        sink_for(name)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.db.zst"])
def test_what_cannot_be_compressed_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match=r"only JSON lines can be compressed \(\.jsonl\.gz"):
        sink_for(name)


def test_no_two_outputs_and_not_the_crawls_own_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sinks_for(["a.csv", "a.jsonl"], reserved=["job.db"])) == 2
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for(["a.csv", str(tmp_path / "a.csv")])
    with pytest.raises(ConfigError, match="is the crawl's own file"):
        sinks_for(["./job.db"], reserved=["job.db"])
    with pytest.raises(ConfigError, match="is the crawl's own file"):
        sinks_for(["./job.csv"], frontier="job.csv")
    assert len(sinks_for(["./job.db"], frontier="job.db")) == 1
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for(["./job.db", "job.db"], frontier="job.db")


def test_every_output_gets_the_items_and_moves_on(tmp_path: Path, rows_in) -> None:
    sinks = sinks_for([str(tmp_path / "a.csv"), str(tmp_path / "a.jsonl")], Format(columns=["n"]))
    positions = {sink.name: "" for sink in sinks} | {"other": "7"}
    for sink in sinks:
        sink.open(None)
        positions[sink.name] = sink.write((), None)

    def outcome(page: int, *numbers: int) -> Outcome:
        lease = Lease(Request("http://127.0.0.1/"), token=page, fingerprint=page, host="h")
        items = [
            Item(page, index, {sink.name: sink.encode({"n": n}) for sink in sinks})
            for index, n in enumerate(numbers)
        ]
        return Outcome(lease, Done(), tuple(items))

    assert deliver_to(sinks)([outcome(1)], positions) == positions
    positions = dict(deliver_to(sinks)([outcome(2, 1, 2), outcome(3), outcome(4, 3)], positions))
    positions = dict(deliver_to(sinks)([outcome(5, 4)], positions))
    positions = dict(finish_all(sinks)([], positions))
    assert [int(row["n"]) for row in rows_in(tmp_path / "a.csv")] == [1, 2, 3, 4]
    assert [row["n"] for row in rows_in(tmp_path / "a.jsonl")] == [1, 2, 3, 4]
    assert positions["other"] == "7"
    for sink in sinks:
        sink.close()


def test_discarding_removes_an_output_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    for name in ("a.db", "a.db-wal", "a.db-shm", "b.csv", ".b.csv.rewriting", "a.db.bak"):
        (tmp_path / name).touch()
    discard(str(tmp_path / "a.db"))
    discard(str(tmp_path / "b.csv"))
    discard(str(tmp_path / "never-was.jsonl"))
    assert os.listdir(tmp_path) == ["a.db.bak"]


def test_only_a_file_is_discarded(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ConfigError, match="is not a regular file"):
        discard(str(tmp_path / "folder.csv"))
    assert (tmp_path / "folder.csv").is_dir()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place that takes no files is needed")
@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.db", "new/items.csv"])
def test_an_output_where_no_file_can_be_made_was_never_there(name: str) -> None:
    sink = sink_for(f"/proc/{name}")
    with pytest.raises(
        ConfigError, match=f"^/proc/{name} cannot be created: no files can be made there; choose"
    ):
        sink.open(None)


@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.db", "new/items.csv"])
def test_an_output_below_a_file_is_told_which_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "lib.sh").touch()
    with pytest.raises(ConfigError, match=r"cannot be created: \S*/lib\.sh\S* is a file and no folder"):
        sink_for(f"{tmp_path}/lib.sh/{name}").open(None)


class TestDiscardOwned:
    def test_only_what_the_job_has_written_is_removed(self, tmp_path: Path) -> None:
        mine, empty, missing = (str(tmp_path / name) for name in ("mine.csv", "empty.csv", "missing.csv"))
        Path(mine).write_text("a\n1\n")
        Path(empty).touch()
        discard_owned([mine, empty, missing], frozenset({name_of(mine)}))
        assert os.listdir(tmp_path) == ["empty.csv"]

    @pytest.mark.parametrize("owned", [True, False])
    def test_items_that_are_still_in_a_spool_are_the_jobs_own(self, tmp_path: Path, owned: bool) -> None:
        output = str(tmp_path / "mine.parquet")
        Path(spool_of(output)).write_text('{"n":1}\n')
        if owned:
            discard_owned([output], frozenset({name_of(output)}))
        else:
            with pytest.raises(ConfigError, match=r"mine\.parquet\.spool exists and was not written by"):
                discard_owned([output], frozenset())
        assert os.listdir(tmp_path) == ([] if owned else ["mine.parquet.spool"])

    @pytest.mark.parametrize("name", ["theirs.csv", "theirs.jsonl", "theirs.db"])
    def test_everything_is_checked_before_anything_is_removed(self, tmp_path: Path, name: str) -> None:
        mine, theirs = str(tmp_path / "mine.csv"), str(tmp_path / name)
        for path in (mine, theirs):
            Path(path).write_text("precious\n")
        with pytest.raises(
            ConfigError, match=f"{name} exists and was not written by this job: choose"
        ) as told:
            discard_owned([mine, theirs], frozenset({name_of(mine)}))
        assert "--fresh" not in str(told.value)
        assert sorted(os.listdir(tmp_path)) == ["mine.csv", name]

    def test_without_a_record_text_files_may_be_replaced(self, tmp_path: Path) -> None:
        for name in ("a.csv", "a.jsonl", "a.tsv"):
            (tmp_path / name).write_text("old\n")
        discard_owned([str(tmp_path / name) for name in os.listdir(tmp_path)], None)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("recorded", [True, False])
    def test_a_database_with_a_foreign_table_is_never_removed(self, tmp_path: Path, recorded: bool) -> None:
        path = a_table_of_items(tmp_path / "a.db")
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE notes (text TEXT)")
        owned = frozenset({name_of(path)}) if recorded else None
        with pytest.raises(ConfigError, match=r"a\.db holds something else than items"):
            discard_owned([path], owned)
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE notes")
        discard_owned([path], owned)
        assert os.listdir(tmp_path) == []

    def test_what_is_no_database_goes_only_if_it_was_ours(self, tmp_path: Path) -> None:
        path = str(tmp_path / "a.db")
        Path(path).write_text("a letter, not a database " * 40)
        with pytest.raises(ConfigError, match=r"a\.db holds something else than items"):
            discard_owned([path], None)
        discard_owned([path], frozenset({name_of(path)}))
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("owned", [None, frozenset()])
    def test_only_a_file_is_an_output(self, tmp_path: Path, owned: frozenset[str] | None) -> None:
        (tmp_path / "a.csv").write_text("old\n")
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(ConfigError, match="is not a regular file"):
            discard_owned([str(tmp_path / name) for name in ("folder.csv", "a.csv")], owned)
        assert sorted(os.listdir(tmp_path)) == ["a.csv", "folder.csv"]


def a_table_of_items(path: Path) -> str:
    sink = SqliteSink(path)
    sink.open(None)
    sink.finish(sink.write((), None))
    sink.close()
    return str(path)
