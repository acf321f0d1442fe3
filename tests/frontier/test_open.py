from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import MemoryFrontier, frontier_from, remove_store
from silkline.frontier.open import SERVER_SCHEMES, begun, on_server, options_in, outputs_in, store_file
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_link import SCHEMES
from silkline.outcome import Heartbeat
from tests import servers
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
    "url", ["reddis://localhost/0", "sqlite://", "sqlite:///", "sqlite:///directory/", "job.db", ""]
)
def test_anything_else_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ConfigError, match="is no frontier: write memory:, or sqlite:///path") as caught:
        frontier_from(url, FrontierOptions())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("partitions", 4), ("dedup", "bloom"), ("dedup", "none"), ("keep_done_urls", True)]
)
@pytest.mark.parametrize("url", ["memory:", "sqlite:///job.db"])
def test_what_only_a_server_does_is_refused_in_one_line(url: str, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"{name} = {value} needs .* \(redis://") as caught:
        frontier_from(url, FrontierOptions(**{name: value}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://10.0.0.5:6379/0", "rediss://u:p@h/1", "unix:///r.sock?db=2", "redis+cluster://h:7000"]
)
def test_a_servers_url_gives_its_frontier_without_a_word_to_it(url: str) -> None:
    assert isinstance(frontier_from(url, FrontierOptions(partitions=4, dedup="bloom")), RedisFrontier)
    assert on_server(url)
    assert store_file(url) is None


def test_the_schemes_are_those_that_the_client_knows() -> None:
    assert set(SCHEMES) == SERVER_SCHEMES
    assert not any(map(on_server, ("memory:", "sqlite:///redis://x", "redis", "redis:/x", "http://redis/")))


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    for look in (lambda url: frontier_from(url, FrontierOptions()), begun, outputs_in, options_in):
        with pytest.raises(ConfigError, match=r"^a frontier on Redis or Valkey needs .*'silkline\[redis\]'$"):
            look("redis://127.0.0.1:1/0")


class TestOnAServer:
    async def test_a_job_is_looked_up_by_its_name_and_removed_alone(self) -> None:
        url = servers.valkey_url()
        for job, delay, ceiling in (("open-one", 1.5, 7), ("open-two", 0.0, None)):
            frontier = frontier_from(url, FrontierOptions(job=job, delay=delay, ceiling=ceiling))
            assert not begun(url, job)
            await frontier.open()
            await frontier.add(pages("a", 3))
            await frontier.commit([], lambda outcomes, positions, job=job: {f"/{job}.csv": "1"})
            await frontier.close()
        assert (begun(url, "open-one"), begun(url, "open-three")) == (True, False)
        assert outputs_in(url, "open-one") == {"/open-one.csv"}
        kept = options_in(url, "open-one")
        assert kept is not None
        assert (kept.job, kept.delay, kept.ceiling) == ("open-one", 1.5, 7)
        kept = options_in(url, "open-two")
        assert kept is not None
        assert (kept.delay, kept.ceiling) == (0.0, None)
        remove_store(url, "open-one")
        assert (begun(url, "open-one"), options_in(url, "open-one")) == (False, None)
        assert outputs_in(url, "open-two") == {"/open-two.csv"}
        remove_store(url, "open-two")

    async def test_a_job_that_a_worker_is_at_is_not_removed(self) -> None:
        url = servers.valkey_url()
        frontier = frontier_from(url, FrontierOptions(job="open-busy"))
        await frontier.open()
        await frontier.heartbeat(Heartbeat("box", 1, 0.0))
        with pytest.raises(JobError, match=f"'open-busy' is in use by {frontier.worker}: end these"):
            remove_store(url, "open-busy")
        await frontier.close()
        remove_store(url, "open-busy")
        assert not begun(url, "open-busy")

    def test_a_server_that_is_away_is_one_line_without_the_password(self) -> None:
        url = f"redis://me:secret@127.0.0.1:{servers.free_port()}/0"
        for look in (begun, outputs_in, options_in, remove_store):
            with pytest.raises(FrontierError, match=r"Redis at redis://127\.0\.0\.1:") as caught:
                look(url, "any")
            assert "secret" not in str(caught.value)
            assert "\n" not in str(caught.value)


def test_a_misspelt_scheme_shows_no_password() -> None:
    with pytest.raises(ConfigError, match=r"'reddis://me:\*\*\*@host/0' is no frontier"):
        frontier_from("reddis://me:secret@host/0", FrontierOptions())


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

    async def test_it_refuses_the_store_of_another_job(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/job.db"
        frontier = frontier_from(url, FrontierOptions(job="mine"))
        await frontier.open()
        await frontier.close()
        with pytest.raises(JobError, match="belongs to the job 'mine', not 'yours', and will not be removed"):
            remove_store(url, "yours")
        assert os.listdir(tmp_path) == ["job.db"]
        remove_store(url, "mine")
        assert os.listdir(tmp_path) == []


class TestLookingIntoAStore:
    async def test_it_names_the_outputs_the_job_and_its_limits_and_changes_nothing(
        self, tmp_path: Path
    ) -> None:
        url = f"sqlite:///{tmp_path}/job.db"
        frontier = frontier_from(url, FrontierOptions(job="mine", per_host=3, delay=1.5))
        await frontier.open()
        assert outputs_in(url) == frozenset()
        await frontier.commit([], lambda outcomes, positions: {"/a.csv": "1", "/b.jsonl": ""})
        assert outputs_in(url) == {"/a.csv", "/b.jsonl"}
        assert options_in(url) == FrontierOptions(job="mine", per_host=3, delay=1.5, politeness_by="host")
        await frontier.close()
        before = (tmp_path / "job.db").read_bytes()
        assert outputs_in(url) == {"/a.csv", "/b.jsonl"}
        assert os.listdir(tmp_path) == ["job.db"]
        assert (tmp_path / "job.db").read_bytes() == before

    def test_where_there_is_no_job_there_is_nothing_to_tell(self, tmp_path: Path) -> None:
        (tmp_path / "empty.db").touch()
        for url in ("memory:", f"sqlite:///{tmp_path}/none.db", f"sqlite:///{tmp_path}/empty.db"):
            assert outputs_in(url) == frozenset()
            assert options_in(url) is None
        assert os.listdir(tmp_path) == ["empty.db"]

    async def test_a_damaged_store_owns_nothing_so_that_it_can_still_be_started_over(
        self, tmp_path: Path
    ) -> None:
        url, path = f"sqlite:///{tmp_path}/job.db", tmp_path / "job.db"
        frontier = frontier_from(url, FrontierOptions())
        await frontier.open()
        await frontier.commit([], lambda outcomes, positions: {"/a.csv": "1"})
        await frontier.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (path.stat().st_size - 4096))
        assert outputs_in(url) == frozenset()
        with pytest.raises(FrontierError, match="start over with --fresh"):
            options_in(url)
        remove_store(url, "spider")
        assert os.listdir(tmp_path) == []

    def test_a_file_that_is_not_ours_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("not a database " * 100)
        for look in (outputs_in, options_in):
            with pytest.raises(JobError, match="is not a silkline frontier"):
                look(f"sqlite:///{tmp_path}/notes.txt")
