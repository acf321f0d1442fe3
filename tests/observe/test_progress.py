from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from silkline.observe.progress import Progress, line, render, sparkline
from silkline.observe.snapshot import Snapshot, merge
from silkline.observe.tally import Tally
from silkline.observe.trend import Trend
from silkline.outcome import Stats


def snapshot(second: float, *, pages: int = 0, phase: Any = "crawling", **more: Any) -> Snapshot:
    tally = Tally(pages=pages, requests=pages, items=3 * pages, bytes=pages * 10_000)
    stats = Stats(waiting=1_000, delayed=20, leased=30, done=pages)
    given: dict[str, Any] = {"job": "shop", "tally": tally, "stats": stats, "in_flight": 30} | more
    return Snapshot(started=100.0, at=100.0 + second, phase=phase, **given)


def plain_lines(*snapshots: Snapshot, quiet: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=40)
    with Progress(console, "shop", quiet=quiet) as progress:
        for each in snapshots:
            progress.update(each)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def shown(snapshots: list[Snapshot], width: int, *, ascii_only: bool = False) -> str:
    trend = Trend()
    for each in snapshots:
        trend.add(each)
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(render(snapshots[-1], trend, width, ascii_only=ascii_only))
    return console.file.getvalue()  # type: ignore[attr-defined]


def busy(second: float) -> Snapshot:
    each = snapshot(second, pages=int(second * 1_234), processes=16)
    each.tally.retried |= {f"http_{status}": status * int(second) for status in (500, 502, 503, 504, 429)}
    each.tally.dead["http_404"] = int(second)
    for _ in range(10):
        each.tally.latency.add(0.25)
    return each


BUSY = [busy(second / 2) for second in range(120)]
RISING = [snapshot(second, pages=second * second) for second in range(60)]


def test_plain_lines_come_after_two_seconds_and_then_every_five() -> None:
    text = plain_lines(*(snapshot(half / 2, pages=half) for half in range(31)))
    assert [entry.split()[1] for entry in text] == ["0:02", "0:07", "0:12"]


def test_a_plain_line_tells_where_the_crawl_stands() -> None:
    trend = Trend()
    for second in range(11):
        each = snapshot(second, pages=second * 50)
        each.tally.retried["timeout"] = second
        trend.add(each)
    assert line(each, trend) == (
        "shop 0:10 crawling: 500 pages (50.0/s), 1,500 items, 1,000 waiting, 20 delayed, 30 in flight, "
        "10 failures, 5.0 MB, ETA 0:21"
    )


def test_each_change_of_phase_is_a_plain_line_at_once() -> None:
    text = plain_lines(
        snapshot(0.0, phase="starting"),
        snapshot(0.5),
        snapshot(1.0),
        snapshot(1.5, phase="stopping"),
        snapshot(1.6, phase="finished"),
    )
    states = [entry.split(": ")[0] for entry in text]
    assert states == [
        "shop 0:00 crawling",
        "shop 0:01 stopping, running visits end first",
        "shop 0:01 finished",
    ]


def test_quiet_shows_nothing() -> None:
    assert plain_lines(snapshot(2.0), snapshot(9.0), snapshot(9.5, phase="stopping"), quiet=True) == []


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_the_display_fits_the_terminal_and_keeps_its_height(width: int) -> None:
    for snapshots in (BUSY, BUSY[:1], [snapshot(0.0, phase="starting", stats=None)]):
        rows = shown(snapshots, width).splitlines()
        assert max(map(len, rows)) <= width
        assert len(rows) in (8, 9)


def test_the_display_names_every_cause_where_there_is_room() -> None:
    assert "http_404 59" in shown(BUSY, 160)
    narrow = shown(BUSY, 60)
    assert "other" in narrow
    assert "http_504" in narrow


def test_the_display_draws_no_blocks_where_only_ascii_is_understood() -> None:
    assert {"▂", "▅", "█"} <= set(shown(RISING, 120))
    assert "█" not in shown(RISING, 120, ascii_only=True)


def test_a_crawl_with_an_open_end_says_so() -> None:
    each = busy(5.0)
    each.tally.links_added = 7
    assert "ETA -" in shown([each], 80)


def test_a_job_name_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in shown([snapshot(1.0, job="a\x1b[2Jb")], 80)
    assert "\x1b" not in plain_lines(snapshot(2.0, job="a\x1b[2Jb"))[0]


def test_the_live_display_is_gone_at_the_end() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with Progress(console, "shop") as progress:
        for each in BUSY[:10]:
            progress.update(each)
        written = console.file.getvalue()  # type: ignore[attr-defined]
        assert "crawling" in written
    ending = console.file.getvalue()[len(written) :]  # type: ignore[attr-defined]
    assert "\x1b[2K" in ending
    assert "\x1b[?25h" in ending, "the cursor is visible again"


def test_a_dumb_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "dumb"})
    with Progress(console, "shop") as progress:
        progress.update(snapshot(2.0))
    assert "\x1b[2K" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert "0:02" in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_crawl_goes_on_when_nobody_reads_stderr_any_more() -> None:
    program = """
import os
from silkline.observe.progress import Progress, StderrConsole
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 2)
with Progress(StderrConsole(), "shop") as progress:
    for second in range(30):
        progress.update(Snapshot(job="shop", started=0.0, at=second, tally=Tally(), phase="crawling"))
os.write(1, b"went on")
"""
    # Unbuffered: Python's own flush at its exit would report the pipe with exit code 120.
    command = [sys.executable, "-u", "-c", program]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"went on")


def test_what_handlers_print_stays_out_of_the_display_and_of_stderr() -> None:
    program = """
from silkline.observe.progress import Progress, StderrConsole
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
with Progress(StderrConsole(), "shop") as progress:
    for second in range(5):
        progress.update(Snapshot(job="shop", started=0.0, at=second, tally=Tally(), phase="crawling"))
        print("row", second)
"""
    reading, writing = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=writing,
        env=environment,
        timeout=60,
        check=True,
    )
    os.close(writing)
    terminal = os.read(reading, 100_000)
    os.close(reading)
    assert ended.stdout == b"row 0\nrow 1\nrow 2\nrow 3\nrow 4\n"
    assert b"crawling" in terminal
    assert b"row" not in terminal


def test_a_sparkline_is_as_high_as_its_values() -> None:
    assert sparkline([0, 1, 2, 4, 8]) == "▁▂▃▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_host_that_wants_to_be_left_alone_is_shown_as_long_as_it_does() -> None:
    each = snapshot(10.0)
    each.tally.left_alone |= {"http://a:80": 100.0, "http://b:80": 175.0, "http://c:80": 3_700.0}
    assert "http://b:80 left alone for 1:05 and 1 more" in line(each, Trend())
    assert "waits for http://b:80 left alone for 1:05" in shown([each], 80).replace("   ", " ")
    assert "left alone" not in line(snapshot(10.0), Trend())


def test_a_page_budget_that_is_spent_is_said_and_not_that_seeds_are_read() -> None:
    for phase, said in (("spent", "the page budget is spent"), ("finished", "finished")):
        each = snapshot(0.1, phase=phase, seeding=True)
        assert line(each, Trend()).startswith(f"shop 0:00 {said}: 0 pages")
    assert merge([snapshot(1.0, phase="spent"), snapshot(1.0, phase="finished")]).phase == "spent"
