from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.errors import ConfigError, ItemError, SinkError
from silkline.sinks.jsonl import JsonLinesSink
from tests.unprivileged import as_nobody


def test_a_line_per_item_in_utf8(tmp_path: Path, items_for, opened) -> None:
    sink = JsonLinesSink(tmp_path / "items.jsonl")
    position = opened(sink, None)
    position = sink.write(items_for(sink, {"a": "é\n", "b": None}, {}), position)
    sink.write(items_for(sink, {"c": [1.5, {"d": True}]}), position)
    assert (tmp_path / "items.jsonl").read_text(encoding="utf-8") == (
        '{"a":"é\\n","b":null}\n{}\n{"c":[1.5,{"d":true}]}\n'
    )


def test_an_item_that_is_no_json_is_refused_when_it_is_encoded(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match="'file'"):
        JsonLinesSink(tmp_path / "items.jsonl").encode({"file": object()})


def test_missing_directories_are_made_and_the_name_is_absolute(tmp_path: Path, monkeypatch, opened) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    sink = JsonLinesSink("link/new/items.jsonl")
    assert sink.name == os.path.realpath(tmp_path / "real/new/items.jsonl")
    opened(sink, None)
    assert (tmp_path / "real/new/items.jsonl").read_bytes() == b""


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("precious\n")
    with pytest.raises(ConfigError, match=r"items\.jsonl exists and was not written by this job: choose"):
        JsonLinesSink(path).open(None)
    assert path.read_text() == "precious\n"


def test_a_file_that_took_the_place_of_the_empty_output_is_left_alone(tmp_path: Path, opened) -> None:
    path = tmp_path / "items.jsonl"
    position = opened(JsonLinesSink(path), None)
    (tmp_path / "other").write_text("precious\n")
    os.replace(tmp_path / "other", path)
    with pytest.raises(ConfigError, match="was not written by this job"):
        JsonLinesSink(path).open(position)
    assert path.read_text() == "precious\n"


def test_a_kill_in_the_very_first_write_does_not_lock_the_job_out(
    tmp_path: Path, items_for, opened, rows_in
) -> None:
    first, second = JsonLinesSink(tmp_path / "items.jsonl"), JsonLinesSink(tmp_path / "items.jsonl")
    position = opened(first, None)
    first.write(items_for(first, {"never": "committed"}), position)
    position = opened(second, position)
    second.write(items_for(second, {"a": 1}), position)
    assert rows_in(tmp_path / "items.jsonl") == [{"a": 1}]


Spoil = Callable[[Path], object]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "is gone"),
        (lambda path: os.truncate(path, 5), "has 5 bytes, but 16 were written"),
        (lambda path: path.write_text('{"a":9}\n{"a":8}\n'), "was changed since this job wrote it"),
        (lambda path: path.write_text('{"a":1}\n{"x":0}\n{"a":2}\n'), "was changed since this job wrote it"),
    ],
    ids=["deleted", "cut", "edited", "line inserted"],
)
def test_an_output_that_was_spoiled_between_two_runs_is_refused(
    tmp_path: Path, items_for, opened, spoil: Spoil, words: str
) -> None:
    path = tmp_path / "items.jsonl"
    sink = JsonLinesSink(path)
    position = sink.write(items_for(sink, {"a": 1}, {"a": 2}), opened(sink, None))
    spoil(path)
    left = path.read_bytes() if path.exists() else None
    with pytest.raises(ConfigError, match=f"{words}.*--fresh"):
        JsonLinesSink(path).open(position)
    assert (path.read_bytes() if path.exists() else None) == left


def replace_with_longer(path: Path) -> None:
    path.with_name("longer").write_text("x" * 1000)
    os.replace(path.with_name("longer"), path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "is gone"),
        (lambda path: os.truncate(path, 5), "has 5 bytes, but 16 were written"),
        (replace_with_longer, "was replaced by another file"),
    ],
    ids=["deleted", "cut", "replaced"],
)
def test_an_output_that_is_spoiled_while_the_crawl_runs_stops_it(
    tmp_path: Path, items_for, opened, spoil: Spoil, words: str
) -> None:
    path = tmp_path / "items.jsonl"
    sink = JsonLinesSink(path)
    position = sink.write(items_for(sink, {"a": 1}, {"a": 2}), opened(sink, None))
    spoil(path)
    left = path.read_bytes() if path.exists() else None
    with pytest.raises(SinkError, match=words):
        sink.write(items_for(sink, {"a": 3}), position)
    assert (path.read_bytes() if path.exists() else None) == left


@pytest.mark.parametrize("name", ["directory", "fifo", "below-a-file"])
def test_what_cannot_be_an_output_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "x.jsonl" if name == "below-a-file" else tmp_path / name
    with pytest.raises(ConfigError, match=f"{path}.*"):
        JsonLinesSink(path).open(None)


def test_a_directory_without_permission_is_refused() -> None:
    def check(folder: Path) -> None:
        (folder / "closed").mkdir(mode=0o500)
        with pytest.raises(ConfigError, match=r"cannot write .*Permission denied"):
            JsonLinesSink(folder / "closed" / "items.jsonl").open(None)

    as_nobody(check)


def test_a_full_disk_is_told_as_such_and_the_partial_write_is_cut_off_later(
    tmp_path: Path, items_for, opened, rows_in, monkeypatch
) -> None:
    path = tmp_path / "items.jsonl"
    sink = JsonLinesSink(path)
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    pwrite, passages = os.pwrite, iter(range(9))

    def filling(fd: int, data: bytes, at: int) -> int:
        if next(passages):
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(fd, data[:3], at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", filling)
        with pytest.raises(SinkError, match=r"disk full while writing .*items\.jsonl: No space left.*free"):
            sink.write(items_for(sink, {"a": 2}), position)
    assert path.read_bytes() == b'{"a":1}\n{"a'
    sink.write(items_for(sink, {"a": 2}), position)
    assert rows_in(path) == [{"a": 1}, {"a": 2}]


def test_finishing_cuts_off_what_was_never_committed(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = JsonLinesSink(tmp_path / "items.jsonl")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.write(items_for(sink, {"a": 2}), position)
    assert sink.finish(position) == sink.finish(position)
    assert rows_in(tmp_path / "items.jsonl") == [{"a": 1}]


def test_a_link_to_a_file_is_written_through(tmp_path: Path, items_for, opened) -> None:
    (tmp_path / "link.jsonl").symlink_to("target.jsonl")
    sink = JsonLinesSink(tmp_path / "link.jsonl")
    sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert json.loads((tmp_path / "target.jsonl").read_text()) == {"a": 1}
