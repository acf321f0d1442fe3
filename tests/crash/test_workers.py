"""Several processes, of which only some are killed."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from tests.crash.crawl import Crawl
from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages

ROUNDS = 4


def allow_more(pages: Pages, share: int) -> None:
    pages.allowed = min(len(pages.answered) + pages.count // share, pages.count - 1)


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_the_others_go_on_when_one_worker_is_killed(launcher: Launcher, tmp_path: Path, ending: str) -> None:
    """In each round, one of three workers is killed, then another one, then the last one."""
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    with Pages(500) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending, processes=3)
        crawl.env["SILKLINE_ADAPTIVE"] = "on"
        for _ in range(ROUNDS):
            pages.allowed = len(pages.answered)
            run = crawl.start()
            assert run.until(lambda: len(run.workers(crawl.store)) == 3), run.log  # noqa: B023
            workers = sorted(run.workers(crawl.store))
            chance.shuffle(workers)
            for worker in workers:
                let_it_crawl(run, pages, chance)
                if run.over():
                    break
                run.signal(signal.SIGKILL, worker)
            assert run.ended() == 3, run.log
            assert "Traceback" not in run.log
            crawl.check_killed()
        pages.allowed = pages.count
        crawl.finish()


def let_it_crawl(run: Running, pages: Pages, chance: random.Random) -> None:
    """Until some new pages are answered; less where the crawl ends, since worker 0 died with the seeds."""
    allow_more(pages, 4 * ROUNDS)
    run.until(pages.exhausted)
    assert not run.over() or "while reading the seeds" in run.log, run.log
    time.sleep(chance.uniform(0, 0.05))


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".db"])
def test_a_crawl_can_be_resumed_while_the_workers_of_a_killed_one_still_wind_down(
    launcher: Launcher, tmp_path: Path, ending: str
) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    with Pages(500) as pages:
        crawl = Crawl(launcher, pages, tmp_path, ending, processes=2)
        crawl.env["SILKLINE_ADAPTIVE"] = "on"
        runs = []
        for _ in range(ROUNDS):
            allow_more(pages, 2 * ROUNDS)
            run = crawl.start()
            runs.append(run)
            assert run.until(pages.exhausted), run.log
            allow_more(pages, 2 * ROUNDS)
            time.sleep(chance.uniform(0, 0.05))
            run.signal(signal.SIGKILL)
        pages.allowed = pages.count
        run = crawl.start()
        for each in runs:
            assert each.ended() == -signal.SIGKILL, each.log
        crawl.hurry(run)
        assert run.ended() == 0, run.log
        crawl.check_finished()
