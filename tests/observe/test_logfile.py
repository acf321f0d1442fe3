from __future__ import annotations

import io
import json
import logging
import multiprocessing
import os
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from silkline.observe.logfile import SharedRotatingFileHandler

WRITERS = 3
LINES = 2_000


def record(message: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message})


def write_lines(handler: SharedRotatingFileHandler, writer: int) -> None:
    for number in range(LINES):
        handler.emit(
            record(json.dumps({"writer": writer, "number": number, "padding": "x" * (number % 200)}))
        )
    handler.close()


def write_lines_to(path: str, writer: int) -> None:
    write_lines(SharedRotatingFileHandler(path, max_bytes=20_000, backups=500), writer)


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes_that_share_a_file_lose_no_line_and_mix_none(
    tmp_path: Path, start: Literal["spawn", "fork"]
) -> None:
    path = tmp_path / "crawl.log"
    if start == "fork":
        inherited = SharedRotatingFileHandler(str(path), max_bytes=20_000, backups=500)
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=write_lines, args=(inherited, n)) for n in range(WRITERS)]
    else:
        spawning = multiprocessing.get_context("spawn")
        processes = [spawning.Process(target=write_lines_to, args=(str(path), n)) for n in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    files = list(tmp_path.iterdir())
    found = Counter()
    for file in files:
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            found[entry["writer"], entry["number"]] += 1
    assert found == Counter((writer, number) for writer in range(WRITERS) for number in range(LINES))
    assert len(files) > 10, "it was rotated while they wrote"
    assert all(file.name == "crawl.log" or file.name.startswith("crawl.log.") for file in files)


def test_old_files_are_dropped_and_none_grows_much_over_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "crawl.log"
    handler = SharedRotatingFileHandler(str(path), max_bytes=1_000, backups=2)
    for number in range(200):
        handler.emit(record(f"line {number:03} " + "x" * 90))
    handler.close()
    assert {file.name for file in tmp_path.iterdir()} == {"crawl.log", "crawl.log.1", "crawl.log.2"}
    assert max(file.stat().st_size for file in tmp_path.iterdir()) < 1_200
    assert "line 199" in path.read_text()


def test_a_file_that_was_moved_or_deleted_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "crawl.log"
    handler = SharedRotatingFileHandler(str(path), max_bytes=1_000, backups=2)
    handler.emit(record("one"))
    path.rename(tmp_path / "taken.log")
    handler.emit(record("two"))
    path.unlink()
    handler.emit(record("three"))
    handler.close()
    assert (tmp_path / "taken.log").read_text() == "one\n"
    assert path.read_text() == "three\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_costs_the_lines_and_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    handler = SharedRotatingFileHandler("/dev/full", max_bytes=1_000, backups=2)
    for number in range(2_000):
        handler.emit(record(f"line {number}"))
    handler.close()
    assert stderr.getvalue().count("\n") == 1
    assert "/dev/full cannot be written: [Errno 28]" in stderr.getvalue()


def test_a_line_that_cannot_be_encoded_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "crawl.log"
    handler = SharedRotatingFileHandler(str(path), max_bytes=1_000, backups=2)
    handler.emit(record("half of a pair: \ud83d"))
    handler.close()
    assert path.read_text() == "half of a pair: \\ud83d\n"


def test_a_folder_that_takes_no_new_names_lets_the_file_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "crawl.log"
    handler = SharedRotatingFileHandler(str(path), max_bytes=100, backups=2)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)
    for _ in range(10):
        handler.emit(record("x" * 50))
    handler.close()
    assert len(path.read_text().splitlines()) == 10
