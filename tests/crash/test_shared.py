"""Workers that share a job through a real Valkey are killed and frozen: an export has every item once."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages
from tests.crash.shared import SharedCrawl, shared

WORKERS = 4
KILLS = 6
FOUR_AT_ONCE = {"SILKLINE_CONCURRENCY": "4"}

WRITES = [
    (".jsonl", "mid-write", 1),
    (".db", "after-write", 2),
    (".csv", "after-write", 2),
    (".csv", "before-finish", 1),
    (".csv", "after-replace", 1),
]


def kill_random_workers(crawl: SharedCrawl, kills: int, chance: random.Random) -> list[Running]:
    """SIGKILL one of the workers at a random instant, have another one take its place, and so on. So few
    pages are answered before each kill that the crawl cannot finish. Returns those that are left."""
    pages = crawl.pages
    pages.allowed = 0
    workers = [crawl.start() for _ in range(WORKERS)]
    for number in range(kills):
        pages.allowed = max(1, pages.count * (number + 1) // (kills + 1))
        before, wanted = pages.visits, chance.randint(1, 2 * pages.count // kills)
        alive = workers[0]
        assert alive.until(lambda: pages.visits - before >= wanted or pages.exhausted()), alive.log  # noqa: B023
        time.sleep(chance.uniform(0, 0.05))
        victim = workers.pop(chance.randrange(WORKERS))
        assert victim.kill(), victim.log
        workers.append(crawl.start())
        if number % 3 == 0:
            crawl.check_running()
    pages.allowed = pages.count
    return workers


def check_kills(crawl: SharedCrawl, kills: int, capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    for worker in kill_random_workers(crawl, kills, random.Random(seed)):
        assert worker.ended() == 0, worker.log
        assert f"{crawl.job}: finished in " in worker.log, worker.log
    crawl.check_finished(capsys)


def test_random_workers_are_killed_and_every_page_is_exported_once(
    launcher: Launcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 1_500) as crawl:
        check_kills(crawl, KILLS, capsys)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_fifty_kills_over_twenty_thousand_pages(
    launcher: Launcher, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ending, 20_000, big=1_000) as crawl:
        check_kills(crawl, 50, capsys)


@pytest.mark.parametrize(("ending", "point", "nth"), WRITES)
def test_a_kill_around_the_write_of_a_part_leaves_a_tail_that_is_not_exported(
    launcher: Launcher, tmp_path: Path, ending: str, point: str, nth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ending, 100) as crawl:
        doomed = crawl.start(**FOUR_AT_ONCE, SILKLINE_TEST_KILL_AT=point, SILKLINE_TEST_KILL_NTH=str(nth))
        assert doomed.ended() == -signal.SIGKILL, doomed.log
        crawl.check_running()
        other = crawl.start()
        assert other.ended() == 0, other.log
        crawl.check_finished(capsys)


@pytest.mark.parametrize(
    "ending", [".jsonl", *(pytest.param(one, marks=pytest.mark.soak) for one in (".csv", ".db"))]
)
def test_the_late_commit_of_a_frozen_worker_is_refused_and_its_items_are_not_doubled(
    launcher: Launcher, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ending, 150) as crawl:
        pages = crawl.pages
        pages.allowed = 50
        frozen = crawl.start(SPIDER_STALE_LOG="stale.txt")
        assert frozen.until(pages.exhausted), frozen.log
        frozen.signal(signal.SIGSTOP)

        pages.allowed = pages.count
        other = crawl.start()
        assert other.ended() == 0, other.log
        crawl.check_finished(capsys)

        frozen.signal(signal.SIGCONT)
        assert frozen.ended() == 0, frozen.log
        assert sum(map(int, (tmp_path / "stale.txt").read_text().split())) > 0
        crawl.check_finished(capsys)


def test_a_worker_that_has_nothing_to_write_leaves_no_file(launcher: Launcher, tmp_path: Path) -> None:
    with shared(launcher, tmp_path, ".csv", 30) as crawl:
        for worker in (
            crawl.start(),
            crawl.start(),
        ):  # the second one comes to a job that is finished, or helps
            assert worker.ended() == 0, worker.log
        late = crawl.start()
        assert late.ended() == 0, late.log
        assert crawl.parts.keys() == crawl.committed()
        assert all(crawl.parts.values())


def test_the_positions_of_several_partitions_are_one_position(
    launcher: Launcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pages commit to their host's partition, the last touches to a file to the first one."""
    with Pages(40) as pages:
        crawl = SharedCrawl(launcher, pages, tmp_path, ".csv", SILKLINE_PARTITIONS="8")
        for worker in (crawl.start(), crawl.start()):
            assert worker.ended() == 0, worker.log
        crawl.check_finished(capsys)
