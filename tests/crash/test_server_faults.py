"""What happens to a crawl by several workers when it is the server, or the way to it, that fails."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.crash.launcher import Launcher
from tests.crash.shared import shared
from tests.proxy import CuttingProxy
from tests.servers import RedisServer


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Keeps what it is told, as the documents advise."""
    started = RedisServer(servers.valkey().binary, "--appendonly", "yes", "--appendfsync", "everysec").start()
    yield started
    started.remove()


@contextmanager
def cutting(port: int, chance: float) -> Iterator[CuttingProxy]:
    """A way to the server that breaks: now before a command arrives, now after it was done."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    proxy = CuttingProxy(port)
    dice = random.Random(7)
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result(20)
    proxy.cut_request = lambda data: dice.random() < chance / 2
    proxy.cut_reply = lambda data: dice.random() < chance
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)


@pytest.mark.parametrize("kill", [False, True], ids=["restarted", "killed"])
def test_a_server_that_comes_back_with_its_data_costs_nothing(
    launcher: Launcher, tmp_path: Path, server: RedisServer, kill: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 600, url=server.url) as crawl:
        crawl.pages.allowed = 200
        workers = [crawl.start() for _ in range(2)]
        assert workers[0].until(crawl.pages.exhausted), workers[0].log
        for allowed in (400, 600):
            server.stop(kill=kill)
            crawl.pages.allowed = allowed
            server.start()
            assert workers[0].until(crawl.pages.exhausted), workers[0].log
        for worker in workers:
            assert worker.ended() == 0, worker.log
            away = [line for line in worker.log.splitlines() if " is away (" in line and "warning" in line]
            assert len(away) <= 4, worker.log  # each time, and again if it answered while it stopped
        crawl.check_finished(capsys)


def test_a_server_that_comes_back_with_an_older_state_costs_no_page(
    launcher: Launcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the workers knows links that the server does not know any more."""
    server = RedisServer(servers.valkey().binary, "--save", "3600 1000000").start()
    try:
        with shared(launcher, tmp_path, ".jsonl", 900, url=server.url) as crawl:
            crawl.pages.allowed = 200
            workers = [crawl.start() for _ in range(3)]
            for allowed in (400, 700):
                assert workers[0].until(crawl.pages.exhausted), workers[0].log
                with server.client() as client:
                    client.save()
                crawl.pages.allowed = allowed
                assert workers[0].until(crawl.pages.exhausted), workers[0].log
                server.stop(kill=True)
                crawl.pages.allowed += 50
                server.start()
            crawl.pages.allowed = crawl.pages.count
            for worker in workers:
                assert worker.ended() == 0, worker.log
            logs = "".join(worker.log for worker in workers)
            assert "fell back to an earlier state" in logs, logs
            crawl.check_finished(capsys)
    finally:
        server.remove()


def test_workers_wait_for_a_server_that_does_not_answer_and_go_on(
    launcher: Launcher, tmp_path: Path, server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _stay_away(launcher, tmp_path, server, 3.0, capsys)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_workers_wait_for_a_server_that_is_gone_for_half_a_minute(
    launcher: Launcher, tmp_path: Path, server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _stay_away(launcher, tmp_path, server, 30.0, capsys)


def _stay_away(
    launcher: Launcher,
    tmp_path: Path,
    server: RedisServer,
    seconds: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 400, url=server.url) as crawl:
        crawl.pages.allowed = 150
        workers = [crawl.start() for _ in range(2)]
        assert workers[0].until(crawl.pages.exhausted), workers[0].log
        server.stop(kill=True)
        crawl.pages.allowed = 400
        assert not workers[0].over(seconds), workers[0].log
        server.start()
        for worker in workers:
            assert worker.ended() == 0, worker.log
        assert "waiting for it" in workers[0].log
        assert "is back after" in workers[0].log
        crawl.check_finished(capsys)


def test_connections_that_break_at_random_lose_and_double_nothing(
    launcher: Launcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        cutting(servers.valkey().port, 0.04) as proxy,
        shared(launcher, tmp_path, ".jsonl", 600) as crawl,
    ):
        way = f"redis://127.0.0.1:{proxy.port}/0"
        workers = [crawl.start(through=way) for _ in range(3)]
        for worker in workers:
            assert worker.ended() == 0, worker.log
        assert proxy.cuts > 5
        crawl.check_finished(capsys)


def test_a_worker_told_to_stop_while_the_server_is_away_ends_soon_and_says_so(
    launcher: Launcher, tmp_path: Path, server: RedisServer
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 100, url=server.url) as crawl:
        crawl.pages.allowed = 30
        worker = crawl.start(SILKLINE_GRACE="1")
        assert worker.until(crawl.pages.exhausted), worker.log
        server.stop(kill=True)
        worker.until(lambda: "waiting for it" in worker.log)
        worker.signal(signal.SIGTERM)
        assert worker.ended() == 3, worker.log
        assert "Traceback" not in worker.log
        assert "is away" in worker.log.splitlines()[-1]


def test_a_job_that_is_wiped_under_its_workers_is_an_error_and_no_end(
    launcher: Launcher, tmp_path: Path, server: RedisServer
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 100, url=server.url) as crawl:
        crawl.pages.allowed = 30
        worker = crawl.start()
        assert worker.until(crawl.pages.exhausted), worker.log
        with server.client() as client:
            client.flushall()
        crawl.pages.allowed = 100
        assert worker.ended() == 3, worker.log
        assert "the job is gone from Redis" in worker.log.splitlines()[-1]


def test_clocks_that_are_an_hour_off_change_nothing(
    launcher: Launcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with shared(launcher, tmp_path, ".jsonl", 300) as crawl:
        workers = [
            crawl.start(SPIDER_CLOCK_OFF=str(off), SILKLINE_LEASE_SECONDS="60") for off in (3600, -3600, 0)
        ]
        for worker in workers:
            assert worker.ended() == 0, worker.log
            assert "ran out before" not in worker.log
        crawl.check_finished(capsys)
