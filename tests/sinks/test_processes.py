"""Real processes: killed at every point that matters, two at once, and out of disk."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.sinks.driver import live

KILLER = Path(__file__).with_name("killer.py")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.sinks.driver"])
ENDINGS = (".jsonl", ".csv", ".db")
PACKED = (".jsonl.gz", ".jsonl.zst")
PARQUET = (".parquet",)
KILLS = 20
PAGES = 12

Check = Callable[..., None]


class Life:
    """A run of the driver: a fork of a process that has its imports behind it."""

    def __init__(self, *arguments: Any) -> None:
        self._errors, theirs = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=live, args=(theirs, *arguments))
        self._process.start()
        theirs.close()

    def ended(self) -> tuple[int | None, str]:
        """The exit code, negative where a signal ended it, and what it printed to stderr."""
        with open(self._errors.fileno(), "rb", closefd=False) as pipe:
            errors = pipe.read().decode()
        self._process.join(60)
        return self._process.exitcode, errors


def start(
    folder: Path,
    *,
    pages: int = PAGES,
    kill_at: str = "",
    nth: int = 1,
    endings: Sequence[str] = ENDINGS,
    max_bytes: int = resource.RLIM_INFINITY,
) -> Life:
    outputs = [str(folder / f"items{ending}") for ending in endings]
    fault = {"SILKLINE_TEST_KILL_AT": kill_at, "SILKLINE_TEST_KILL_NTH": str(nth)}
    return Life(folder, pages, outputs, fault, max_bytes)


@pytest.fixture
def assert_every_item_once(tmp_path: Path, rows_in: Callable[[Path], list[dict[str, Any]]]) -> Check:
    def check(pages: int = PAGES, endings: Sequence[str] = ENDINGS, *, excel: bool = False) -> None:
        expected = [(str(page), str(index)) for page in range(pages) for index in (0, 1)]
        for ending in endings:
            rows = rows_in(tmp_path / f"items{ending}")
            assert {row["sum"] for row in rows} == {"'=1+1" if excel else "=1+1"}
            assert [(str(row["page"]), str(row["index"])) for row in rows] == expected, ending
            for row in rows:
                page = int(row["page"])
                assert row["text"] == f'x,"y"\n{page}', ending
                assert None not in row, "a record longer than the header"
                marked = {name for name, value in row.items() if name[0] == "n" and value}
                assert marked == ({f"n{page}"} if page % 5 == 4 else set()), ending
        left = [*tmp_path.glob(".*"), *tmp_path.glob("*.spool")]
        assert not left, "something temporary is left"

    return check


# One commit writes to three sinks: passages 1-3 are the first commit's, 4-6 the second's.
@pytest.mark.parametrize(
    ("kill_at", "nth"),
    [
        *(("mid-write", nth) for nth in (1, 2, 3, 5, 6)),
        *(("after-write", nth) for nth in (1, 2, 3, 5, 12)),
        *(("before-finish", nth) for nth in (1, 2, 3)),
        ("after-replace", 1),
    ],
)
def test_a_kill_loses_no_item_and_doubles_none(
    tmp_path: Path, assert_every_item_once: Check, kill_at: str, nth: int
) -> None:
    code, errors = start(tmp_path, kill_at=kill_at, nth=nth).ended()
    assert code == -signal.SIGKILL, errors
    assert start(tmp_path).ended() == (0, "")
    assert_every_item_once()


@pytest.mark.parametrize(
    ("kill_at", "nth"),
    [("mid-write", 2), ("after-write", 1), ("after-write", 4), ("before-finish", 1), ("after-replace", 1)],
)
def test_a_kill_leaves_a_spool_that_goes_on(
    tmp_path: Path, assert_every_item_once: Check, kill_at: str, nth: int
) -> None:
    code, errors = start(tmp_path, kill_at=kill_at, nth=nth, endings=PARQUET).ended()
    assert code == -signal.SIGKILL, errors
    assert start(tmp_path, endings=PARQUET).ended() == (0, "")
    assert_every_item_once(endings=PARQUET)


# Here to two sinks.
@pytest.mark.parametrize(
    ("kill_at", "nth"),
    [
        *(("mid-write", nth) for nth in (1, 2, 4)),
        *(("after-write", nth) for nth in (2, 3)),
        ("before-finish", 2),
    ],
)
def test_a_kill_leaves_a_compressed_output_that_goes_on(
    tmp_path: Path, assert_every_item_once: Check, kill_at: str, nth: int
) -> None:
    code, errors = start(tmp_path, kill_at=kill_at, nth=nth, endings=PACKED).ended()
    assert code == -signal.SIGKILL, errors
    assert start(tmp_path, endings=PACKED).ended() == (0, "")
    assert_every_item_once(endings=PACKED)


@pytest.mark.parametrize(
    ("ending", "options"),
    [*((ending, []) for ending in (*ENDINGS, *PACKED, *PARQUET)), (".csv", ["--excel"])],
)
def test_random_kills_lose_no_item_and_double_none(
    tmp_path: Path, assert_every_item_once: Check, ending: str, options: Sequence[str]
) -> None:
    output = str(tmp_path / f"items{ending}")
    command = [sys.executable, str(KILLER), "7", str(KILLS), str(tmp_path), *options, output]
    root = str(KILLER.parents[2])
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    pages, killed = map(int, done.stdout.split())
    assert killed == KILLS
    assert_every_item_once(pages, endings=[ending], excel="--excel" in options)


@pytest.mark.parametrize("endings", [ENDINGS, PACKED, PARQUET])
def test_two_processes_share_the_outputs_and_one_is_killed(
    tmp_path: Path, assert_every_item_once: Check, endings: Sequence[str]
) -> None:
    pages = 60
    doomed = start(tmp_path, pages=pages, kill_at="after-write", nth=8, endings=endings)
    other = start(tmp_path, pages=pages, endings=endings)
    codes = {doomed.ended()[0], other.ended()[0]}
    assert codes <= {0, -signal.SIGKILL}
    assert start(tmp_path, pages=pages, endings=endings).ended() == (0, "")
    assert_every_item_once(pages, endings)


def test_a_finished_job_that_gets_more_pages_goes_on_in_the_same_outputs(
    tmp_path: Path, assert_every_item_once: Check
) -> None:
    endings = (*ENDINGS, *PACKED, *PARQUET)
    assert start(tmp_path, pages=5, endings=endings).ended() == (0, "")
    assert start(tmp_path, pages=PAGES, endings=endings).ended() == (0, "")
    assert_every_item_once(endings=endings)


@pytest.mark.parametrize(
    ("ending", "max_bytes", "file"),
    [
        *((ending, 400, f"items{ending}") for ending in (*ENDINGS, *PACKED)),
        (".parquet", 400, "items.parquet.spool"),
        (".parquet", 1_000, "items.parquet"),
    ],
)
def test_a_file_that_cannot_grow_stops_the_crawl_in_one_line_and_nothing_is_lost(
    tmp_path: Path, assert_every_item_once: Check, ending: str, max_bytes: int, file: str
) -> None:
    pages = 60 if ending in PACKED else 2 if file == "items.parquet" else PAGES
    code, errors = start(tmp_path, pages=pages, endings=[ending], max_bytes=max_bytes).ended()
    assert code == 1
    assert errors.startswith(f"SinkError: cannot write {tmp_path}/{file}: "), errors
    assert errors.count("\n") == 1
    assert "nothing is lost" in errors
    assert start(tmp_path, pages=pages, endings=[ending]).ended() == (0, "")
    assert_every_item_once(pages, endings=[ending])
