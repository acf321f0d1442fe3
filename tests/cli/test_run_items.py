"""Where the items of a spider go that names no output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.site import Site, linked_site

SPIDER = """
from silkline import Crawler

crawler = Crawler("plain")

@crawler.handler
def every(page):
    yield {"n": int(page.text("h1"))}
    yield page.follow("a")

if __name__ == "__main__":
    import sys
    crawler.run(sys.argv[1])
"""


def start(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "spider.py").write_text(SPIDER)
    return subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )


def test_run_keeps_them_beside_the_job_and_shows_the_first(tmp_path: Path) -> None:
    with Site(linked_site(5)) as site:
        done = start(tmp_path, "-m", "silkline", "run", "spider.py", site.url + "/")
    assert done.returncode == 0, done.stderr
    kept = [
        json.loads(line)["n"] for line in (tmp_path / ".silkline" / "plain.jsonl").read_text().splitlines()
    ]
    assert sorted(kept) == [0, 1, 2, 3, 4]
    assert "the items" in done.stdout


def test_a_script_is_told_that_they_went_nowhere(tmp_path: Path) -> None:
    with Site(linked_site(5)) as site:
        done = start(tmp_path, "spider.py", site.url + "/")
    assert done.returncode == 0, done.stderr
    assert "the items went nowhere" in done.stderr
