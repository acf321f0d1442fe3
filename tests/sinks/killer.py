"""A crawl that is killed at random, again and again: `killer.py SEED KILLS FOLDER [--excel] OUTPUT...`

Each life is a fork of this process, which has the imports behind it; see `driver.py` for what it does.
Some have little to do, so that kills fall into the end of a job, too, and into one that goes on after that.
The last one is left alone. Prints how many pages there are, and how many lives were killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.sinks.driver import main

LONGEST = 0.03
"""Seconds of a life that is killed."""


def pages_done(folder: Path) -> int:
    state = folder / "state.json"
    return json.loads(state.read_text())["page"] if state.exists() else 0


def live(folder: Path, pages: int, outputs: list[str], chance: random.Random, *, killed: bool) -> bool:
    """Whether it was killed before its end. No two lives have the same commits, or a tail that was written by
    one would be written again by the next."""
    killed_after, group = chance.uniform(0, LONGEST), chance.randint(1, 5)
    child = os.fork()
    if not child:
        code = 1
        try:
            main(folder, pages, outputs, group=group, pause=chance.uniform(0, LONGEST / 10))
            code = 0
        finally:
            os._exit(code)
    if killed:
        time.sleep(killed_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        sys.exit("a life ended with an error")
    return False


def kill(seed: int, kills: int, folder: Path, outputs: list[str]) -> None:
    chance = random.Random(seed)
    killed = 0
    while killed < kills:
        pages = pages_done(folder) + chance.choice((1, 4, 1_000))
        killed += live(folder, pages, outputs, chance, killed=True)
    pages = pages_done(folder) + 4
    live(folder, pages, outputs, chance, killed=False)
    print(pages, killed)


if __name__ == "__main__":
    kill(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
