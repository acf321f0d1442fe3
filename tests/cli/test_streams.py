"""A command without a standard stream, or with one that cannot be written, does its work all the same."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import clean_environment, command
from tests.site import Site

FULL = "No space left on device"


@pytest.fixture
def unread() -> Iterator[int]:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def shell(folder: Path, redirection: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The return code is that of silkline, also in front of a pipe."""
    line = f"{shlex.join(command(*arguments))} {redirection}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    "redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>&1 | head -n 1"]
)
def test_a_crawl_goes_on_without_a_standard_stream(shop: Site, tmp_path: Path, redirection: str) -> None:
    crawl = ["crawl", f"{shop.url}/", "--follow-all", "--retries", "0", "-o", "items.jsonl"]
    done = shell(tmp_path, redirection, *crawl)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 9
    assert "Error" not in done.stdout + done.stderr
    strict = shell(tmp_path, redirection, *crawl, "--strict")
    assert strict.returncode == 1, strict.stderr


def test_a_crawl_goes_on_where_nobody_reads_what_it_says(shop: Site, tmp_path: Path, unread: int) -> None:
    done = subprocess.run(
        command("crawl", f"{shop.url}/", "--follow-all", "--retries", "0", "--job", "mine"),
        cwd=tmp_path,
        env=clean_environment(),
        stdout=unread,
        stderr=unread,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0
    assert len((tmp_path / ".silkline" / "mine.jsonl").read_text().splitlines()) == 9


def test_items_that_cannot_be_shown_are_kept(shop: Site, tmp_path: Path) -> None:
    done = shell(tmp_path, "> /dev/full", "crawl", f"{shop.url}/", "--job", "mine")
    assert done.returncode == 0, done.stderr
    told = f"silkline: warning: what was shown on standard output is lost: {FULL}"
    assert [line for line in done.stderr.splitlines() if line.startswith("silkline:")] == [told]
    assert len((tmp_path / ".silkline" / "mine.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("words", [["--help"], ["crawl", "http://127.0.0.1:9/", "--show-config"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_is_lost_is_told_by_the_exit_code(
    tmp_path: Path, words: list[str], unbuffered: str, unread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    full = shell(tmp_path, "> /dev/full", *words)
    assert (full.returncode, full.stderr) == (3, f"silkline: cannot write to standard output: {FULL}\n")
    done = subprocess.run(
        command(*words),
        cwd=tmp_path,
        env=clean_environment(),
        stdout=unread,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-"])
def test_an_error_needs_no_standard_stream_either(tmp_path: Path, redirection: str) -> None:
    done = shell(tmp_path, redirection, "dead", "drop", "--job", "none")
    told = "silkline: there is no job 'none': sqlite:///.silkline/none.db does not exist\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "" if redirection == "2>&-" else told)
