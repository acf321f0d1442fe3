from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, JobError
from silkline.frontier import MemoryFrontier, frontier_from, remove_store
from tests.frontier.conftest import pages


def test_memory_is_a_frontier_without_a_file() -> None:
    assert isinstance(frontier_from("memory:", FrontierOptions()), MemoryFrontier)


@pytest.mark.parametrize("absolute", [True, False])
async def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/new/job.db" if absolute else "new/job.db"
    frontier = frontier_from(f"sqlite:///{path}", FrontierOptions())
    await frontier.open()
    await frontier.close()
    assert os.listdir(tmp_path / "new") == ["job.db"]


@pytest.mark.parametrize(
    "url", ["redis://localhost/0", "sqlite://", "sqlite:///", "sqlite:///directory/", "job.db", ""]
)
def test_anything_else_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ConfigError, match="is no frontier: write memory:, or sqlite:///path") as caught:
        frontier_from(url, FrontierOptions())
    assert "\n" not in str(caught.value)


class TestRemoveStore:
    async def test_it_removes_the_jobs_files_and_no_others(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/job.db"
        frontier = frontier_from(url, FrontierOptions())
        await frontier.open()
        await frontier.add(pages("a", 3))
        await frontier.close()
        for name in ("job.db-wal", "job.db-shm", "other.db", "job.db.bak"):
            (tmp_path / name).touch()
        (tmp_path / "job.db.workers").mkdir()
        (tmp_path / "job.db.workers" / "killed").touch()
        remove_store(url)
        assert sorted(os.listdir(tmp_path)) == ["job.db.bak", "other.db"]
        remove_store(url)
        remove_store("memory:")

    async def test_it_refuses_while_a_crawl_runs(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/job.db"
        frontier = frontier_from(url, FrontierOptions())
        await frontier.open()
        await frontier.add(pages("a", 3))
        with pytest.raises(JobError, match=r"in use by .*: end that crawl first"):
            remove_store(url)
        assert (await frontier.stats()).waiting == 3
        await frontier.close()

    def test_it_refuses_a_file_that_is_not_ours(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (x)")
        connection.close()
        with pytest.raises(JobError, match="is not a silkline frontier"):
            remove_store(f"sqlite:///{path}")
        (tmp_path / "notes.txt").write_text("not a database " * 100)
        with pytest.raises(JobError, match="is not a silkline frontier"):
            remove_store(f"sqlite:///{tmp_path}/notes.txt")
        assert sorted(os.listdir(tmp_path)) == ["mine.db", "notes.txt"]
