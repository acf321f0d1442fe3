"""Signals, real processes: what is interrupted is kept, and the next run goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.site import Endless, Site, linked_site

Start = Callable[..., "subprocess.Popen[str]"]

SPIDER = """
import sys
from silkline import Crawler

crawler = Crawler("job", frontier="sqlite:///job.db", outputs=["out.jsonl"], quiet=True, concurrency=4,
                  per_host=4, grace=float(sys.argv[2]), processes=int(sys.argv[3]), timeout=60)

@crawler.handler
def every(page):
    yield {"n": int(page.text("h1"))}
    yield page.follow("a")

report = crawler.run(sys.argv[1])
print(report.reason, report.pages)
sys.exit(130 if report.reason == "interrupted" else 0)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a crawl. What still runs at the end of the test is killed, with its workers."""
    started: list[subprocess.Popen[str]] = []

    def start(url: str, grace: float = 10.0, processes: int = 1, code: str = SPIDER) -> subprocess.Popen[str]:
        (tmp_path / "spider.py").write_text(code)
        process = subprocess.Popen(
            [sys.executable, "spider.py", url, str(grace), str(processes)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_hits(site: Site, count: int) -> None:
    deadline = time.monotonic() + 20
    while sum(site.hits.values()) < count:
        assert time.monotonic() < deadline, "the crawl did not start"
        time.sleep(0.01)


def rows(tmp_path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_signal_finishes_what_runs_and_keeps_the_rest(
    tmp_path: Path, start: Start, number: int, processes: int
) -> None:
    with Site(linked_site(120), delay=0.05) as site:
        process = start(site.url + "/", processes=processes)
        wait_for_hits(site, 15)
        # Like Ctrl-C in a terminal: every process of the group gets SIGINT; SIGTERM goes to the parent alone.
        if number != signal.SIGTERM:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert out.startswith("interrupted")
        kept = len(rows(tmp_path))
        assert 0 < kept < 120
        # Nothing that was fetched was thrown away: all that ran could end.
        assert kept == sum(site.hits.values())

        process = start(site.url + "/", processes=processes)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert sorted(rows(tmp_path)) == list(range(120))
        assert max(site.hits.values()) == 1


def test_the_line_of_progress_says_that_the_crawl_was_interrupted(tmp_path: Path) -> None:
    with Endless(delay=0.05) as site:
        process = subprocess.Popen(
            [sys.executable, "-m", "silkline", "crawl", *site.seeds, "--follow-all", "--job", "shop"],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for_hits(site, 15)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    [last] = [line for line in err.splitlines() if line.startswith("shop 0:") and " waiting" in line][-1:]
    assert re.match(r"shop 0:\d\d interrupted: \d+ pages", last), err


def test_the_grace_period_ends_a_visit_that_does_not(tmp_path: Path, start: Start) -> None:
    with Site(linked_site(3), delay=30) as site:
        process = start(site.url + "/", grace=0.5)
        wait_for_hits(site, 1)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert time.monotonic() - asked < 10
        assert process.returncode == 130, err


def test_visits_that_only_wait_for_a_proxy_are_given_back_at_once(tmp_path: Path, start: Start) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{bound.getsockname()[1]}"
        code = SPIDER.replace("timeout=60", f"timeout=60, proxy=[{dead!r}], log_file='log', robots=False")
        process = start("http://shop.example/", grace=60, code=code)
        deadline = time.monotonic() + 20
        while "its pages wait until one does" not in read(tmp_path / "log"):
            assert time.monotonic() < deadline, "nothing waits"
            time.sleep(0.02)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (130, "interrupted 0\n"), err
        assert time.monotonic() - asked < 10
        command = [sys.executable, "-m", "silkline", "status", "--json", "--frontier", "sqlite:///job.db"]
        status = json.loads(subprocess.check_output(command, cwd=tmp_path))
        assert (status["waiting"], status["delayed"], status["dead"]) == (1, 0, 0)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_second_signal_stops_at_once_without_loss(tmp_path: Path, start: Start) -> None:
    with Site(linked_site(4), delay=30) as site:
        process = start(site.url + "/", grace=60)
        wait_for_hits(site, 1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130, err
        site.delay = 0
        process = start(site.url + "/")
        assert process.communicate(timeout=30)[0].startswith("finished")
        assert sorted(rows(tmp_path)) == [0, 1, 2, 3]


def test_a_killed_worker_of_two_is_replaced_by_the_other(tmp_path: Path, start: Start) -> None:
    with Site(linked_site(120), delay=0.05) as site:
        process = start(site.url + "/", processes=2)
        wait_for_hits(site, 20)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("needs /proc to find the worker")
        os.kill(int(children.read_text().split()[-1]), signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.startswith("finished")
        assert sorted(rows(tmp_path)) == list(range(120))


def test_workers_whose_parent_is_killed_stop_by_themselves(tmp_path: Path, start: Start) -> None:
    with Site(linked_site(2_000), delay=0.05) as site:
        process = start(site.url + "/", processes=2)
        wait_for_hits(site, 10)
        process.kill()
        process.wait(10)
        time.sleep(2.5)
        before = sum(site.hits.values())
        time.sleep(1.0)
        assert sum(site.hits.values()) == before


def test_a_second_signal_interrupts_a_handler_that_never_lets_go(tmp_path: Path, start: Start) -> None:
    with Site(linked_site(4)) as site:
        process = start(
            site.url + "/",
            code=SPIDER.replace("    yield page", "    while True: pass\n    yield page"),
        )
        wait_for_hits(site, 1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        assert process.returncode in (1, 130, -signal.SIGINT)
        process = start(site.url + "/")
        assert process.communicate(timeout=30)[0].startswith("finished")
        assert sorted(rows(tmp_path)) == [0, 1, 2, 3]
