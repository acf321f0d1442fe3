"""Run one program as a process of its own, and check and measure what it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

LONGEST_RUN = 900.0


class Measurement(msgspec.Struct, frozen=True):
    """One run.

    seconds: from the call that starts the crawl until it returned with its output complete.
    cpu: user and system seconds of the whole process and its children, start-up included.
    rss: bytes at the peak, of the largest process.
    fault: why the run does not count; "" if it does.
    """

    pages: int
    seconds: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    fault: str = ""

    @property
    def rate(self) -> float:
        """Pages per second."""
        return self.pages / self.seconds

    @property
    def cost(self) -> float:
        """Microseconds of CPU per page."""
        return self.cpu / self.pages * 1e6


def measure(command: Sequence[str], out: Path, pages: int) -> Measurement:
    """Run `command`, which writes one JSON line a page to `out` and prints {"seconds": ...} last."""
    used = out.with_suffix(".usage")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("usage.py")), str(used), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, complaints = process.communicate(timeout=LONGEST_RUN)
    except subprocess.TimeoutExpired:
        return Measurement(pages, fault=f"still running after {LONGEST_RUN:.0f} s")
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0 or not printed.strip():
        reason = complaints.strip().rpartition("\n")[2] or "nothing printed"
        return Measurement(pages, fault=f"exit code {process.returncode}: {reason}")
    usage = json.loads(used.read_text())
    return Measurement(
        pages,
        seconds=json.loads(printed.strip().rpartition("\n")[2])["seconds"],
        cpu=usage["cpu"],
        rss=usage["maxrss"] * (1 if sys.platform == "darwin" else 1024),
        fault=fault_of(out, pages),
    )


def fault_of(out: Path, pages: int) -> str:
    """What is wrong with an output that should have one complete item for each of `pages` pages."""
    try:
        items = [json.loads(line) for line in out.read_text().splitlines()]
    except (OSError, ValueError) as error:
        return f"unreadable output: {error}"
    urls = {item["url"] for item in items}
    if len(items) != pages or len(urls) != pages:
        return f"{len(items)} items of {len(urls)} pages instead of {pages}"
    if broken := [item for item in items if not item["title"] or not str(item["price"]).startswith("$")]:
        return f"{len(broken)} items without title or price, such as {broken[0]}"
    return ""
