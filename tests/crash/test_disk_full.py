"""No space for the output or the store: one clear line, and with space again the crawl goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages

MB = 1_000_000


def stopped_with_one_line(run: Running) -> str:
    assert run.ended() == 3, run.log
    assert "Traceback" not in run.log
    (line,) = [line for line in run.log.splitlines() if line.startswith("silkline: ")]
    return line


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_an_output_that_cannot_grow_stops_the_crawl_and_loses_nothing(
    launcher: Launcher, tmp_path: Path, ending: str
) -> None:
    with Pages(150, big=4 * MB) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        run = crawl.start(max_bytes=7 * MB)
        line = stopped_with_one_line(run)
        assert crawl.output.name in line
        assert "run the same command again" in line
        crawl.check_killed()
        crawl.finish()


@pytest.mark.parametrize("max_bytes", [20_000, 120_000, 500_000])
def test_a_store_that_cannot_grow_stops_the_crawl_and_loses_nothing(
    launcher: Launcher, tmp_path: Path, max_bytes: int
) -> None:
    with Pages(150, big=1) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ".jsonl")
        run = crawl.start(max_bytes=max_bytes)
        line = stopped_with_one_line(run)
        assert "the frontier job.db failed" in line
        assert "run the same command again" in line
        crawl.check_killed()
        crawl.finish()
