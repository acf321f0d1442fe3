"""docs/politeness.md: its commands and snippets run as they stand there."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import limiter
from silkline.politeness import robots, robots_fetch
from silkline.seeds.sitemap import _ROOTS
from tests.documents import run, snippet, text_of
from tests.site import Site

DOCUMENT = "docs/politeness.md"
SHOP: dict[str, Any] = {
    "/robots.txt": "Sitemap: /sitemap.xml\nUser-agent: *\nDisallow: /private\n",
    "/sitemap.xml": "<urlset><url><loc>/1</loc><lastmod>2026-02-01</lastmod></url>"
    "<url><loc>/2</loc><lastmod>2026-01-01</lastmod></url><url><loc>/private</loc></url></urlset>",
    "/1": "<title>One</title>",
    "/2": "<title>Two</title>",
    "/private": "<title>Secret</title>",
}


def silkline(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "silkline", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def test_the_sitemap_commands_run_as_written(tmp_path: Path) -> None:
    with Site(dict(SHOP)) as shop:
        first, second, third = snippet(DOCUMENT, "sitemap").splitlines()
        for line, pages in ((first, {"/1", "/2"}), (second, {"/1"}), (third, set())):
            shop.hits.clear()
            words = [word.replace("https://shop.example", shop.url) for word in shlex.split(line)[1:]]
            done = silkline(words, tmp_path)
            assert done.returncode == 0, done.stderr
            assert set(shop.hits) - {"/robots.txt", "/sitemap.xml"} == pages, line
        assert "3 added" in done.stdout
    assert len((tmp_path / "titles.csv").read_text().splitlines()) == 3, "a header and two pages"


def test_the_sitemap_snippet_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Site(dict(SHOP)) as shop:
        run(DOCUMENT, "python-sitemap", {}, replace={"https://shop.example": shop.url})
        assert [json.loads(line) for line in Path("titles.jsonl").read_text().splitlines()] == [
            {"url": f"{shop.url}/1", "title": "One"}
        ]


def test_the_figures_are_those_of_the_program() -> None:
    text = text_of(DOCUMENT)
    assert (robots_fetch.DAY, robots_fetch.SHORTEST) == (86_400.0, 600.0)
    assert "for a day" in text
    assert "ten minutes at least" in text
    assert robots.FIRST_WAIT == 2.0
    assert "after 2 s, 4 s, 8 s" in text
    assert "feed" in _ROOTS
    assert "Atom" in text


def test_the_rules_are_compared_as_the_benchmark_finds_them() -> None:
    """Those of silkline; all of them, and the plot, in the soak."""
    rows = {row[1].strip(): row[2].strip() for row in _table() if row[1].strip() in limiter.SERVERS}
    found = limiter.run(["silkline"])
    assert rows == {name: limiter.cell(*traces["silkline"]) for name, traces in found.items()}


@pytest.mark.soak
def test_table_and_plot_are_those_that_the_benchmark_makes() -> None:
    found = limiter.run()
    assert limiter.table(found) in text_of(DOCUMENT)
    assert limiter.drawn(found) == Path(DOCUMENT).with_name("limiter.svg").read_text("utf-8")


def _table() -> list[list[str]]:
    return [line.split("|") for line in text_of(DOCUMENT).splitlines() if line.startswith("| ")]
