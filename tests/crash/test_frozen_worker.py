"""A worker that sleeps past its leases wakes up to find that its pages are somebody else's."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_the_late_commit_of_a_frozen_worker_changes_nothing(
    launcher: Launcher, tmp_path: Path, ending: str
) -> None:
    with Pages(150) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        crawl.env["SILKLINE_LEASE_SECONDS"] = "1"
        pages.allowed = 50
        frozen = crawl.start(SPIDER_STALE_LOG="stale.txt")
        assert frozen.until(pages.exhausted), frozen.log
        freeze(frozen, crawl.store)

        pages.allowed = pages.count
        other = crawl.start()
        crawl.hurry(other)
        assert other.ended() == 0, other.log
        crawl.check_finished()

        frozen.signal(signal.SIGCONT)
        assert frozen.ended() == 0, frozen.log
        assert sum(map(int, (tmp_path / "stale.txt").read_text().split())) > 0
        crawl.check_finished()


def freeze(run: Running, store: Path) -> None:
    """Stop the process at an instant at which it does not hold the store's lock."""
    while True:
        run.signal(signal.SIGSTOP)
        time.sleep(0.1)  # its threads stop one by one, each where it next leaves the kernel
        with contextlib.closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                run.signal(signal.SIGCONT)
                time.sleep(0.01)
            else:
                return
