"""What --fresh removes, and what it does not."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.site import Site


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.db"])
@pytest.mark.parametrize("begun", [True, False])
def test_another_jobs_output_is_refused_and_nothing_is_removed(
    inside: Call, shop: Site, tmp_path: Path, name: str, begun: bool
) -> None:
    assert inside("crawl", f"{shop.url}/", "--job", "one", "-o", name).returncode == 0
    if begun:
        assert inside("crawl", f"{shop.url}/", "--job", "two", "-o", "mine.csv").returncode == 0
    before = contents(tmp_path)
    done = inside("crawl", f"{shop.url}/", "--job", "two", "-o", "mine.csv", "-o", name, "--fresh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"silkline: {name} exists and was not written by this job: choose another name, or remove it\n"
    )
    assert contents(tmp_path) == before


def test_the_jobs_own_outputs_are_replaced_whatever_happened_to_them(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    crawl = ["crawl", f"{shop.url}/", "--job", "one", "-o", "a.csv", "-o", "a.jsonl", "-o", "a.db", "--quiet"]
    assert inside(*crawl).returncode == 0
    (tmp_path / "a.csv").write_text("edited\n")
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "a.db").write_text("no database any more " * 100)
    assert inside(*crawl).returncode == 2
    afresh = inside(*crawl, "--fresh")
    assert afresh.returncode == 0, afresh.stderr
    assert (tmp_path / "a.csv").read_text().startswith("url,status,title\n")
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 1
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*) FROM items").fetchone() == (1,)


@pytest.mark.parametrize("frontier", [[], ["--frontier", "memory:"]])
def test_a_database_of_somebody_else_is_never_replaced(
    inside: Call, shop: Site, tmp_path: Path, frontier: list[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "precious.db")) as db:
        db.execute("CREATE TABLE letters (text TEXT)")
    before = contents(tmp_path)
    done = inside("crawl", f"{shop.url}/", "-o", "precious.db", "--fresh", *frontier)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "precious.db" in done.stderr
    assert contents(tmp_path) == before
    assert not shop.hits


def test_a_crawl_in_memory_replaces_what_it_wrote_before(inside: Call, shop: Site, tmp_path: Path) -> None:
    crawl = [
        "crawl",
        f"{shop.url}/",
        "--frontier",
        "memory:",
        "-o",
        "a.jsonl",
        "-o",
        "a.db",
        "--quiet",
        "--fresh",
    ]
    for _ in range(2):
        done = inside(*crawl)
        assert done.returncode == 0, done.stderr
    [item] = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert item["title"] == "Page 1"


def test_the_frontier_of_another_job_is_refused(inside: Call, shop: Site, tmp_path: Path) -> None:
    crawl = ["crawl", f"{shop.url}/", "--frontier", "sqlite:///x.db", "-o", "a.csv"]
    assert inside(*crawl, "--job", "one").returncode == 0
    before = contents(tmp_path)
    done = inside(*crawl, "--job", "two", "--fresh")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "silkline: x.db belongs to the job 'one', not 'two', and will not be removed"
    )
    assert contents(tmp_path) == before
