"""A page that kills its worker every time is given up after a bounded number of times, alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher
from tests.crash.pages import Pages

MAX_DELIVERIES = 13
"""The default: retries + 10."""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_page_that_kills_its_worker_becomes_a_dead_letter_and_all_others_are_kept(
    launcher: Launcher, tmp_path: Path, processes: int
) -> None:
    with Pages(120, poison=119) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ".jsonl", processes)
        crawl.env = {"SILKLINE_ALLOW_PRIVATE": "true"}
        code, starts = -1, 0
        while code != 0:
            assert starts <= MAX_DELIVERIES, "the page is handed out again and again"
            run = crawl.start()
            crawl.hurry(run)
            code, starts = run.ended(), starts + 1
            crawl.check_killed()
        assert starts > MAX_DELIVERIES // processes
        crawl.check_finished(dead={"crash": 1})
