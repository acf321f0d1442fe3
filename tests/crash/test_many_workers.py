"""Twenty workers with two hundred slots each on one job: fair shares, no hot polling, what Redis pays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import redis

from silkline import seed
from tests import servers
from tests.servers import RedisServer
from tests.site import Site

WORKERS = 20
SPIDER = """
from silkline import Crawler
crawler = Crawler("many", robots=False, allow_private=True, quiet=True)

@crawler.handler
def page(page):
    yield {"url": page.url}
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_twenty_workers_share_one_server_fairly_and_idle_quietly(tmp_path: Path) -> None:
    run_many(tmp_path, pages=60_000, seconds=60.0, concurrency=200)


def test_workers_share_one_server_fairly_and_idle_quietly(tmp_path: Path) -> None:
    run_many(tmp_path, pages=1_500, seconds=2.0, concurrency=20, workers=4)


def run_many(folder: Path, *, pages: int, seconds: float, concurrency: int, workers: int = WORKERS) -> None:
    """First there is more to do than `seconds` are enough for; then all is done, and they idle."""
    (folder / "spider.py").write_text(SPIDER)
    answer = "<title>page</title>"
    server = RedisServer(servers.valkey().binary, "--appendonly", "yes").start()
    with Site({f"/{n}": answer for n in range(pages)}, delay=0.02) as site:
        seed(server.url, [f"{site.url}/{n}" for n in range(pages)], job="many")
        words = [
            "work",
            "spider.py",
            "--job",
            "many",
            "--frontier",
            server.url,
            "--keep-alive",
            "-o",
            "o.jsonl",
        ]
        limits = ["--concurrency", str(concurrency), "--per-host", "400", "--processes", str(workers)]
        crew = subprocess.Popen(
            [sys.executable, "-m", "silkline", *words, *limits],
            cwd=folder,
            env={**os.environ, "SILKLINE_LEASE_SECONDS": "20"},
        )
        try:
            with server.client() as client:
                _until(lambda: site.hits.total() > 0)
                before, began = client.info("cpu"), site.hits.total()
                time.sleep(seconds)
                after, done = client.info("cpu"), site.hits.total() - began
                used = sum(after[name] - before[name] for name in ("used_cpu_user", "used_cpu_sys"))
                print(f"{done / seconds:.0f} pages/s, Redis {used / seconds:.1%} of a core", end=", ")
                print(f"{used / done * 1e6:.1f} us a page")
                _until(lambda: site.hits.total() >= pages)
                time.sleep(5.0)  # those that just went idle ask more and more seldom
                asked = _scripts(client)
                time.sleep(6.0)
                idle = _scripts(client) - asked
                print(f"idle: {idle / 6.0 / workers:.2f} commands a second for each worker")
                assert idle / 6.0 / workers <= 1.1  # a beat and a question every two seconds each
        finally:
            crew.send_signal(signal.SIGTERM)
            crew.wait(60)
            server.remove()
    assert all(count == 1 for count in site.hits.values())
    shares = Counter({path.name: sum(1 for _ in path.open()) for path in folder.glob("o.*.jsonl")})
    assert shares.total() == pages
    assert len(shares) == workers
    print(f"shares from {min(shares.values())} to {max(shares.values())} pages")
    assert max(shares.values()) < 4 * pages / workers
    assert min(shares.values()) > pages / workers / 4
    assert {json.loads(line)["url"] for path in folder.glob("o.*.jsonl") for line in path.open()}


def _scripts(client: redis.Redis) -> int:
    """How many commands the workers sent: all that an idle one sends are scripts."""
    counts = client.info("commandstats")
    return sum(counts.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def _until(reached) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 600
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)
