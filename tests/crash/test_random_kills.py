"""SIGKILL to the whole crawl at random instants, from the first to the last, again and again."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher
from tests.crash.pages import Pages

KILLS = 30
AT_THE_END = 5
JITTER = 0.05
"""Seconds: longer than an outcome waits for its commit."""


def kill_again_and_again(crawl: Crawl, kills: int, chance: random.Random) -> None:
    """Kill at random instants. So few pages are answered before each kill that the crawl cannot finish."""
    pages = crawl.pages
    for number in range(kills):
        pages.allowed = max(1, pages.count * (number + 1) // (kills + 1))
        before = pages.visits
        run = crawl.start()
        if number % 5 == 0:  # while it starts, seeds, and commits for the first time
            time.sleep(chance.uniform(0, 0.25))
        else:
            wanted = chance.randint(1, 2 * pages.count // kills)
            run.until(lambda: pages.visits - before >= wanted or pages.exhausted())  # noqa: B023
            time.sleep(chance.uniform(0, JITTER))
        assert run.kill(), run.log
        crawl.check_killed()


def kill_at_the_end(crawl: Crawl, kills: int, chance: random.Random) -> None:
    """Kill around the last commit and the last touches to the output, or after them."""
    crawl.pages.allowed = crawl.pages.count
    for _ in range(kills):
        run = crawl.start()
        crawl.hurry(run, crawl.pages.exhausted)
        time.sleep(chance.uniform(0, 3 * JITTER))
        run.kill()
        crawl.check_killed()


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_kills_at_random_instants_lose_nothing_and_double_nothing(
    launcher: Launcher, tmp_path: Path, ending: str, processes: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Pages(500) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending, processes)
        kill_again_and_again(crawl, KILLS, chance)
        kill_at_the_end(crawl, AT_THE_END, chance)
        crawl.finish()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_table_in_the_frontiers_file_is_what_is_committed_at_any_instant(
    launcher: Launcher, tmp_path: Path, processes: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Pages(300) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ".db", processes)
        crawl.output = crawl.store
        kill_again_and_again(crawl, 20, chance)
        kill_at_the_end(crawl, AT_THE_END, chance)
        crawl.finish()
    assert not list(tmp_path.glob("items*"))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_two_hundred_kills_of_a_larger_crawl(
    launcher: Launcher, tmp_path: Path, ending: str, processes: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Pages(4_000) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending, processes)
        kill_again_and_again(crawl, 200, chance)
        kill_at_the_end(crawl, 20, chance)
        crawl.finish()
