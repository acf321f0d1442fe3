from __future__ import annotations

import multiprocessing
import re
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from silkline.cli.demo import _serve_beside, serving
from silkline.errors import ConfigError
from tests.cli.conftest import Run, clean_environment, command


def test_the_shop_alone_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("demo"), cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert match, line
        with urlopen(match[0], timeout=30) as answer:
            assert b"product" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_the_demo_crawl_ends_with_items_and_a_summary_and_leaves_nothing(
    silkline: Run, tmp_path: Path
) -> None:
    done = silkline("demo", "--crawl", "--processes", "2", "--retries", "0")
    assert done.returncode == 0, done.stderr
    assert "demo: finished" in done.stderr
    # Before the first line of a failure: a beginner must not take them for faults of the program.
    assert done.stderr.startswith("demo: some pages of this shop fail, stall or limit the rate on purpose")
    assert re.search(r"items +144\n", done.stderr)
    assert re.search(r"dead .*http_404 2", done.stderr)
    assert "│ £" in done.stdout
    assert "/product/" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_shop_beside_a_crawl_ends_with_it() -> None:
    with serving() as url, urlopen(url, timeout=30) as answer:
        assert answer.status == 200
    with pytest.raises(OSError, match="refused"):
        urlopen(url, timeout=30)


def test_a_shop_that_opens_after_the_command_was_interrupted_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_beside, args=(0, theirs, ours))
    ours.close()
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_an_error_of_the_caller() -> None:
    with serving() as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"), serving(port):
            raise AssertionError("two shops on one port")
