"""SIGTERM and SIGINT before there is a crawl that they could stop."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from silkline.cli.interrupt import signals_held
from tests.cli.conftest import clean_environment, command

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@BOTH
def test_a_signal_while_a_spider_is_imported_is_an_interruption(tmp_path: Path, number: int) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(100)\n")
    with subprocess.Popen(
        command("run", "slow.py", "http://127.0.0.1:9/"),
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.split()) == (130, ["silkline:", "interrupted"])


@BOTH
@pytest.mark.parametrize("words", ["crawl --urls - -o items.csv", "demo --crawl", "demo", "status"])
def test_a_signal_while_silkline_itself_is_imported_is_an_interruption(
    tmp_path: Path, number: int, words: str
) -> None:
    """A module of the command line stands in for all of them: its import waits for the signal."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\n"
        "class Wait:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'silkline.cli.app':\n"
        "            print('importing', flush=True)\n"
        "            time.sleep(100)\n"
        "sys.meta_path.insert(0, Wait())\n"
    )
    with subprocess.Popen(
        command(*words.split()),
        cwd=tmp_path,
        env=clean_environment() | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "silkline: interrupted\n")


def test_a_signal_in_the_middle_of_a_fork_is_heard_after_it() -> None:
    children = []

    def fork() -> None:
        with signals_held():
            signal.raise_signal(signal.SIGINT)
            if (child := os.fork()) == 0:
                os._exit(0)
            children.append(child)

    with pytest.raises(KeyboardInterrupt):
        fork()
    [child] = children
    assert os.waitpid(child, 0) == (child, 0)
