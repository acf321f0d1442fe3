"""The spider that gets killed: what a user would write, with ways to die that a test can ask for."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from silkline import Crawler, Page
from silkline.events import Event, Kept

DIES_AT = os.environ.get("SPIDER_DIES_AT")
DIES_AT_NTH = int(os.environ.get("SPIDER_DIES_AT_NTH", "1"))
STALE_LOG = os.environ.get("SPIDER_STALE_LOG")

CLOCK_OFF = float(os.environ.get("SPIDER_CLOCK_OFF", "0"))

passages = itertools.count(1)
right_time = time.time
if CLOCK_OFF:
    time.time = lambda: right_time() + CLOCK_OFF


def on_event(event: Event) -> None:
    """Dies of the nth event of a kind; notes how many outcomes came too late."""
    if type(event).__name__ == DIES_AT and next(passages) == DIES_AT_NTH:
        os.kill(os.getpid(), signal.SIGKILL)
    if isinstance(event, Kept) and event.stale and STALE_LOG:
        with Path(STALE_LOG).open("a") as log:
            log.write(f"{event.stale}\n")


# Its pages, of which some say nothing and all look alike, are now and then taken for a trap; and a sixth of
# them fails at first, which may look like a host that can bear little. test_workers.py has that, too.
crawler = Crawler(
    "crash",
    frontier="sqlite:///job.db",
    concurrency=8,
    per_host=16,
    hooks=[on_event],
    traps=False,
    adaptive=False,
)


@crawler.handler
def every(page: Page) -> Iterator[Any]:
    if page.css("b.poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    for node in page.css("pre.item"):
        yield json.loads(node.text() or "")
    yield page.follow("a")
