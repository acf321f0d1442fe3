from __future__ import annotations

import os
from pathlib import Path

import pytest

from silkline.errors import ConfigError
from silkline.outcome import Done, Item, Lease, Outcome
from silkline.request import Request
from silkline.sinks.choose import deliver_to, discard, finish_all, sink_for, sinks_for
from silkline.sinks.csv import CsvSink
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.sqlite import SqliteSink


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", JsonLinesSink),
        ("a.ndjson", JsonLinesSink),
        ("a.CSV", CsvSink),
        ("a.tsv", CsvSink),
        ("a.db", SqliteSink),
        ("a.b.sqlite", SqliteSink),
        ("a.sqlite3", SqliteSink),
    ],
)
def test_the_ending_names_the_format(name: str, kind: type) -> None:
    assert type(sink_for(name)) is kind


@pytest.mark.parametrize("name", ["a.xlsx", "a", "-", ".csv", "a.csv/"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"known are \.jsonl, \.ndjson, \.csv"):
        sink_for(name)


def test_no_two_outputs_and_not_the_crawls_own_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sinks_for(["a.csv", "a.jsonl"], reserved=["job.db"])) == 2
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for(["a.csv", str(tmp_path / "a.csv")])
    with pytest.raises(ConfigError, match="is the crawl's own file"):
        sinks_for(["./job.db"], reserved=["job.db"])


def test_every_output_gets_the_items_and_moves_on(tmp_path: Path, rows_in) -> None:
    sinks = sinks_for([str(tmp_path / "a.csv"), str(tmp_path / "a.jsonl")], columns=["n"])
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
