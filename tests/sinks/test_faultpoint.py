from __future__ import annotations

import os
import signal
import subprocess
import sys

CODE = """
from silkline.sinks.faultpoint import reach
for point in ("here", "there", "here", "here"):
    print(point, flush=True)
    reach(point, lambda: print("last act", flush=True))
"""


def run(**variables: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout.split("\n")[:-1]


def test_without_the_variable_every_point_is_passed() -> None:
    assert run() == (0, ["here", "there", "here", "here"])


def test_the_process_dies_at_the_nth_passage_of_its_point() -> None:
    code, lines = run(SILKLINE_TEST_KILL_AT="here", SILKLINE_TEST_KILL_NTH="2")
    assert (code, lines) == (-signal.SIGKILL, ["here", "there", "here", "last act"])
