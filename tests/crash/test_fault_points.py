"""Killed at the very points that matter: around the write, the commit and the last touches."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher
from tests.crash.pages import Pages

PAGES = 100
FOUR_AT_ONCE = {"SILKLINE_CONCURRENCY": "4"}
"""A worker holds three times as many pages at most, so that its crawl takes at least 9 commits."""

WRITES = [("mid-write", (1, 2, 5)), ("after-write", (1, 2, 5)), ("before-finish", (1, 1, 1))]
POINTS = [
    *((ending, point, passages) for ending in (".jsonl", ".csv", ".db") for point, passages in WRITES),
    (".csv", "after-replace", (1,)),
]
EVENTS = [
    (".csv", "Seeded", (1, 1)),  # the seeds are in the store
    (".csv", "Visited", (1, 2, 40)),  # a page is fetched and handled
    *((ending, "Kept", (1, 2, 5)) for ending in (".jsonl", ".csv", ".db")),  # a commit is done, nobody knows
    (".csv", "Stopping", (1, 1)),  # the last page is committed
]


@pytest.mark.parametrize(("ending", "point", "passages"), POINTS)
def test_a_kill_around_the_write_is_mended_by_the_next_start(
    launcher: Launcher, tmp_path: Path, ending: str, point: str, passages: Sequence[int]
) -> None:
    with Pages(PAGES) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        for nth in passages:
            fault = {"SILKLINE_TEST_KILL_AT": point, "SILKLINE_TEST_KILL_NTH": str(nth)}
            run = crawl.start(**FOUR_AT_ONCE, **fault)
            crawl.hurry(run)
            assert run.ended() == -signal.SIGKILL, run.log
            crawl.check_killed()
        crawl.finish()


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_nothing_is_left_of_a_write_that_is_shorter_when_it_is_done_again(
    launcher: Launcher, tmp_path: Path, ending: str
) -> None:
    with Pages(2) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        run = crawl.start(SILKLINE_TEST_KILL_AT="after-write")
        assert run.ended() == -signal.SIGKILL, run.log
        crawl.finish()


@pytest.mark.parametrize(("ending", "event", "passages"), EVENTS)
def test_a_kill_before_the_engine_can_act_on_an_event_loses_nothing(
    launcher: Launcher, tmp_path: Path, ending: str, event: str, passages: Sequence[int]
) -> None:
    with Pages(PAGES) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        for nth in passages:
            run = crawl.start(**FOUR_AT_ONCE, SPIDER_DIES_AT=event, SPIDER_DIES_AT_NTH=str(nth))
            crawl.hurry(run)
            assert run.ended() == -signal.SIGKILL, run.log
            crawl.check_killed()
        crawl.finish()


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_another_worker_goes_on_where_one_died_between_write_and_commit(
    launcher: Launcher, tmp_path: Path, ending: str
) -> None:
    with Pages(PAGES) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending)
        pages.allowed = 4
        doomed = crawl.start(
            **FOUR_AT_ONCE, SILKLINE_TEST_KILL_AT="after-write", SILKLINE_TEST_KILL_NTH=str(pages.allowed + 2)
        )
        assert doomed.until(pages.exhausted), doomed.log
        other = crawl.start(**FOUR_AT_ONCE)
        assert other.until(lambda: bool(other.workers(crawl.store))), other.log
        pages.allowed = pages.count
        assert doomed.ended() == -signal.SIGKILL, doomed.log
        crawl.hurry(other)
        assert other.ended() == 0, other.log
        crawl.check_finished()
