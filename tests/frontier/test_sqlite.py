"""What only a file on disk has to promise: refusing what is not its own, sharing, crashes, failing disks."""

# Small files and short waits: nothing else runs on these event loops.
# ruff: noqa: ASYNC220, ASYNC221, ASYNC240, ASYNC251

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import SqliteFrontier, rules, sqlite_file
from silkline.outcome import Heartbeat, Outcome, Stats
from silkline.protocols import Positions
from silkline.url import fingerprint_of
from tests.frontier.conftest import ManualClock, dead, done, pages, retry, urls

T = TypeVar("T")


@asynccontextmanager
async def opened(path: Path, clock: ManualClock, **options: object) -> AsyncIterator[SqliteFrontier]:
    frontier = SqliteFrontier(path, FrontierOptions(**options), clock=clock)  # type: ignore[arg-type]
    await frontier.open()
    try:
        yield frontier
    finally:
        await frontier.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.db"


def connection_of(frontier: SqliteFrontier) -> sqlite3.Connection:
    assert frontier._store is not None
    return frontier._store._database._connection


def program(path: Path, body: str) -> list[str]:
    """A Python program with an opened frontier `f` in it."""
    lines = [
        "import asyncio, os, sys",
        "from silkline.config import FrontierOptions",
        "from silkline.frontier import SqliteFrontier",
        "from silkline.outcome import Done, Outcome",
        "async def main():",
        f"    f = SqliteFrontier({str(path)!r}, FrontierOptions(per_host=1000))",
        "    await f.open()",
        *(f"    {line}" for line in body.splitlines()),
        "asyncio.run(main())",
    ]
    return [sys.executable, "-c", "\n".join(lines)]


def make_v1(path: Path) -> None:
    """A file that silkline 0.1 left behind when it was killed: job "old", eight requests in all places."""
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent.parent / "data" / "frontier_v1.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


class TestOlderSchema:
    async def test_a_file_of_version_1_goes_on_where_it_was(self, path: Path, clock: ManualClock) -> None:
        make_v1(path)
        async with opened(path, clock, job="old", per_host=3, delay=0.5) as frontier:
            assert await frontier.stats() == Stats(waiting=3, delayed=1, leased=2, done=1, dead=1)
            overview = await frontier.overview()
            assert (overview.oldest_lease, overview.live, overview.workers) == (None, {}, ())
            assert await frontier.positions() == {"/out.jsonl": "7"}
            # Its URLs were seen by keys with all their parameters, and are known by these still.
            assert frontier.fingerprint("http://a/?gclid=1") == fingerprint_of("http://a/?gclid=1")
            await frontier.heartbeat(Heartbeat("box", 1, 0.0))
            await frontier.configure({"paused": "true"})
            clock.now += 2.0
            batch = await frontier.lease(9)
            assert sorted(urls(batch)) == ["a/2", "a/3", "b/1", "b/2", "b/3"]
            assert min(lease.token for lease in batch.leases) == 6
        async with opened(path, clock, job="old", per_host=3, delay=0.5) as frontier:
            assert (await frontier.overview()).live == {"paused": "true"}

    async def test_its_schema_is_then_that_of_a_new_file(self, tmp_path: Path, clock: ManualClock) -> None:
        make_v1(tmp_path / "old.db")
        schemas = []
        for name in ("old", "new"):
            async with opened(tmp_path / f"{name}.db", clock, job=name):
                pass
            with sqlite3.connect(tmp_path / f"{name}.db") as connection:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                tables = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name")
                schemas.append((version, [(*row[:2], without_comments(row[2])) for row in tables]))
            connection.close()
        assert schemas[0] == schemas[1]

    async def test_a_migration_that_fails_changes_nothing(
        self, path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_v1(path)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE live (x)")  # in the way of the last step
        connection.close()
        with pytest.raises(FrontierError, match="table live already exists"):
            async with opened(path, clock, job="old"):
                pass
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'workers'").fetchone() == (
            0,
        )
        connection.close()


def without_comments(sql: str | None) -> str:
    return " ".join(re.sub(r"--.*", "", sql or "").split())


class TestNews:
    async def test_what_another_worker_did_is_news_at_the_next_heartbeat(
        self, path: Path, clock: ManualClock
    ) -> None:
        beat, news = Heartbeat("box", 1, 0.0), []
        async with opened(path, clock) as frontier:
            frontier.listen(lambda: news.append("heard"), news.append)
            await frontier.heartbeat(beat)
            news.clear()
            async with opened(path, clock) as other:
                await other.add(pages("a", 1))
            await frontier.heartbeat(beat)
            assert news == ["heard"]
            await frontier.heartbeat(beat)
            assert news == ["heard"]

    async def test_one_with_a_lower_limit_asks_seldom_and_gets_what_is_not_full_for_it(
        self, path: Path, clock: ManualClock
    ) -> None:
        async with opened(path, clock, per_host=9) as others, opened(path, clock, per_host=2) as limited:
            await others.add(pages("a", 20) + pages("b", 20))
            assert len((await others.lease(6)).leases) == 6
            assert len((await others.lease(4)).leases) == 4
            clock.now += rules.HUNGER
            batch = await limited.lease(5)
            assert (batch.leases, batch.finished) == ((), False)
            assert batch.wake_in == pytest.approx(rules.SECOND_HELPING, abs=0.001)
            await others.add(pages("c", 3))
            assert urls(await limited.lease(1)) == ["c/0"]

    async def test_a_dead_workers_heartbeat_is_forgotten(self, path: Path, clock: ManualClock) -> None:
        body = (
            "from silkline.outcome import Heartbeat\nawait f.heartbeat(Heartbeat('box', 1, 0.0))\nos._exit(0)"
        )
        assert subprocess.run(program(path, body), timeout=60).returncode == 0
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM workers").fetchone() == (1,)
        connection.close()
        async with opened(path, clock) as frontier:
            assert (await frontier.overview()).workers == ()


class TestRefusal:
    async def refused(self, path: Path, error: type[Exception], match: str, **options: str) -> None:
        before = path.read_bytes() if path.is_file() else None
        frontier = SqliteFrontier(path, FrontierOptions(**options))
        with pytest.raises(error, match=match) as caught:
            await frontier.open()
        assert "\n" not in str(caught.value)
        assert (path.read_bytes() if path.is_file() else None) == before
        assert not Path(f"{path}.workers").exists()

    async def test_another_programs_database(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (x)")
        await self.refused(path, JobError, "is not a silkline frontier: choose another file")

    async def test_a_file_that_is_no_database(self, path: Path) -> None:
        path.write_text("url\n" * 1000)
        await self.refused(path, JobError, "is not a silkline frontier: choose another file")

    async def test_a_newer_schema(self, path: Path, clock: ManualClock) -> None:
        async with opened(path, clock):
            pass
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {sqlite_file.SCHEMA_VERSION + 1}")
        connection.close()
        await self.refused(path, JobError, "newer silkline .* upgrade")

    async def test_another_jobs_frontier_of_an_older_schema(self, path: Path) -> None:
        make_v1(path)
        await self.refused(path, JobError, "belongs to the job 'old', not 'news'", job="news")

    async def test_another_jobs_frontier(self, path: Path, clock: ManualClock) -> None:
        async with opened(path, clock, job="shop"):
            pass
        await self.refused(path, JobError, "belongs to the job 'shop', not 'news'", job="news")

    async def test_a_directory(self, tmp_path: Path) -> None:
        await self.refused(tmp_path, ConfigError, "is a directory: name a file")

    async def test_a_directory_that_cannot_be(self, path: Path) -> None:
        path.write_text("")
        await self.refused(path / "job.db", ConfigError, "cannot create|cannot write")

    async def test_a_directory_that_cannot_be_written(self) -> None:
        directory = Path(tempfile.mkdtemp())
        directory.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root may write everywhere, nobody may not
            os.seteuid(65_534)
        try:
            await self.refused(directory / "job.db", ConfigError, "check the permissions")
        finally:
            os.seteuid(user)
            directory.rmdir()

    async def test_an_empty_file_is_taken(self, path: Path, clock: ManualClock) -> None:
        path.touch()
        async with opened(path, clock) as frontier:
            assert (await frontier.add(pages("a", 1))).added == 1


class TestRestart:
    async def test_everything_is_still_there(self, path: Path, clock: ManualClock) -> None:
        def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            return {"out": str(int(positions.get("out", "0")) + len(outcomes))}

        async with opened(path, clock, max_pages=3) as frontier:
            await frontier.add(pages("a", 5))
            await frontier.limit_host("http://a:80", delay=4.0)
            first = (await frontier.lease(1)).leases
            await frontier.commit(done(*first), deliver)
        async with opened(path, clock, max_pages=3) as frontier:
            assert await frontier.stats() == Stats(waiting=4, done=1)
            assert await frontier.positions() == {"out": "1"}
            assert (await frontier.lease(5)).wake_in == 4.0
            clock.now += 60.0
            second = (await frontier.lease(5)).leases
            assert second[0].token > first[0].token
            clock.now += 60.0
            assert len(second + (await frontier.lease(5)).leases) == 2
            assert (await frontier.add(pages("a", 5))).added == 0

    async def test_new_limits_of_the_job_hold_at_once(self, path: Path, clock: ManualClock) -> None:
        async with opened(path, clock, per_host=2) as frontier:
            await frontier.add(pages("a", 9))
            await frontier.commit(done(*(await frontier.lease(9)).leases))
        async with opened(path, clock, per_host=4, delay=5.0) as frontier:
            assert (await frontier.lease(9)).wake_in == 5.0
        async with opened(path, clock, per_host=4) as frontier:
            assert len((await frontier.lease(9)).leases) == 4

    async def test_closing_leaves_one_file(self, path: Path, clock: ManualClock) -> None:
        async with opened(path, clock) as frontier:
            await frontier.add(pages("a", 5))
        assert os.listdir(path.parent) == [path.name]


class TestSharing:
    async def test_two_workers_keep_one_cap_and_never_hold_the_same_request(
        self, path: Path, clock: ManualClock
    ) -> None:
        async with opened(path, clock, per_host=3) as one, opened(path, clock, per_host=3) as two:
            await one.add(pages("a", 4))
            first, second = await one.lease(2), await two.lease(2)
            assert urls(first) + urls(second) == ["a/0", "a/1", "a/2"]
            assert (await two.commit(done(*first.leases))).stale == ()
            assert urls(await one.lease(2)) == ["a/3"]

    async def test_an_idle_worker_asks_again_soon_while_it_has_company(
        self, path: Path, clock: ManualClock
    ) -> None:
        async with opened(path, clock) as one, opened(path, clock) as two:
            await one.add(pages("a", 1))
            assert len((await one.lease(1)).leases) == 1
            assert (await two.lease(1)).wake_in == 0.1
            await one.close()
            assert urls(await two.lease(1)) == ["a/0"]
            assert (await two.lease(1)).wake_in == 60.0

    async def test_a_killed_worker_loses_its_leases_at_once(self, path: Path) -> None:
        async with asyncio.timeout(60):
            frontier = SqliteFrontier(path, FrontierOptions())
            await frontier.open()
            await frontier.add(pages("a", 5))
            body = "print(len((await f.lease(3)).leases), flush=True)\nawait asyncio.sleep(600)"
            with subprocess.Popen(program(path, body), stdout=subprocess.PIPE, text=True) as other:
                assert other.stdout is not None
                assert await asyncio.to_thread(other.stdout.readline) == "3\n"
                held = await frontier.lease(5)
                assert urls(held) == ["a/3", "a/4"]
                assert (await frontier.lease(5)).leases == ()
                other.send_signal(signal.SIGKILL)
            back = await frontier.lease(5)
            assert urls(back) == ["a/0", "a/1", "a/2"]
            assert [lease.deliveries for lease in back.leases] == [2, 2, 2]
            await frontier.close()
        assert os.listdir(path.parent) == [path.name]

    async def test_a_killed_workers_leases_are_back_on_the_next_start(self, path: Path) -> None:
        async with asyncio.timeout(60):
            async with opened(path, ManualClock()) as frontier:
                await frontier.add(pages("a", 2))
            body = "await f.lease(3)\nos.kill(os.getpid(), 9)"
            assert subprocess.run(program(path, body)).returncode == -signal.SIGKILL
            frontier = SqliteFrontier(path, FrontierOptions())
            await frontier.open()
            assert urls(await frontier.lease(5)) == ["a/0", "a/1"]
            await frontier.close()

    async def test_processes_that_start_at_once_share_the_work_without_overlap(self, path: Path) -> None:
        body = """
from tests.frontier.conftest import pages
def deliver(outcomes, positions):
    return {"out": str(int(positions.get("out", "0")) + len(outcomes))}
await f.add(pages("a", 300))
while not (batch := await f.lease(7)).finished:
    result = await f.commit([Outcome(lease, Done()) for lease in batch.leases], deliver)
    assert not result.stale
    if not batch.leases:
        await asyncio.sleep(min(batch.wake_in, 0.05))
await f.close()
"""
        running = [subprocess.Popen(program(path, body.strip())) for _ in range(4)]
        async with asyncio.timeout(90):
            codes = [await asyncio.to_thread(process.wait) for process in running]
        assert codes == [0, 0, 0, 0]
        async with opened(path, ManualClock()) as frontier:
            assert await frontier.stats() == Stats(done=300)
            assert await frontier.positions() == {"out": "300"}


class TestFailures:
    async def test_a_full_disk_undoes_the_whole_call_and_a_later_one_works(
        self, path: Path, clock: ManualClock
    ) -> None:
        delivered = []

        def deliver(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
            delivered.append(dict(positions))
            return {"out": "1"}

        async with opened(path, clock) as frontier:
            await frontier.add(pages("a", 2))
            outcomes = done(*(await frontier.lease(1)).leases, links=pages("b", 3000))
            connection = connection_of(frontier)
            (size,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {size}")
            with pytest.raises(FrontierError, match="full; free some space") as caught:
                await frontier.commit(outcomes, deliver)
            assert "\n" not in str(caught.value)
            assert await frontier.stats() == Stats(waiting=1, leased=1)
            connection.execute("PRAGMA max_page_count = 1000000")
            assert (await frontier.commit(outcomes, deliver)).added == 3000
            assert delivered == [{}]

    async def test_a_file_locked_for_long_is_a_clear_error(
        self, path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
        async with opened(path, clock) as frontier:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(FrontierError, match="locked; another program"):
                await frontier.add(pages("a", 1))
            other.execute("ROLLBACK")
            other.close()
            assert (await frontier.add(pages("a", 1))).added == 1

    async def test_a_damaged_file_is_a_clear_error(self, path: Path, clock: ManualClock) -> None:
        async with opened(path, clock) as frontier:
            await frontier.add(pages("a", 5000))
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(path.stat().st_size - 4096))
        frontier = SqliteFrontier(path, FrontierOptions(), clock=clock)
        with pytest.raises(FrontierError, match="malformed; restore the file from a copy"):
            await frontier.open()

    async def test_leases_that_nobody_waits_for_any_more_are_given_back(
        self, path: Path, clock: ManualClock
    ) -> None:
        async with opened(path, clock) as frontier:
            await frontier.add(pages("a", 3))
            asked = asyncio.ensure_future(frontier.lease(2))
            await asyncio.sleep(0)
            other = sqlite3.connect(path)
            while other.execute("SELECT last_token FROM meta").fetchone() == (0,):
                time.sleep(0.001)  # the answer cannot arrive: this loop is blocked here
            other.close()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await asyncio.sleep(0)  # the answer arrives, and goes back
            await frontier.renew([])  # in line behind it
            assert await frontier.stats() == Stats(waiting=3)

    def test_a_dead_event_loop_does_not_keep_the_interpreter(self, path: Path) -> None:
        body = "await f.lease(1)\nraise SystemExit(7)"
        assert subprocess.run(program(path, body), timeout=60).returncode == 7


def fill(connection: sqlite3.Connection, hosts: int, requests: int, now: float) -> None:
    """What `add` would leave behind, in a fraction of the time."""
    numbers = "WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
    with connection:
        connection.execute("BEGIN")
        connection.execute(
            f"{numbers} INSERT INTO hosts (key) SELECT 'http://h' || i || ':80' FROM n", (hosts,)
        )
        connection.execute(
            f"{numbers} INSERT INTO requests (fingerprint, host, priority, state, request) "
            """SELECT i, 1 + i % ?, i % 3, 'waiting', '{"url":"http://h/' || i || '"}' FROM n""",
            (requests, hosts),
        )
        connection.execute("INSERT INTO seen SELECT fingerprint FROM requests")
        connection.execute(
            "INSERT INTO queues (host, priority, due, turn) "
            "SELECT DISTINCT host, priority, ?, 0 FROM requests",
            (now,),
        )


class TestCost:
    async def test_no_verb_costs_more_however_much_is_waiting(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        """In steps of SQLite's machine, which no other load of the computer changes."""

        async def steps(name: str, hosts: int, requests: int) -> dict[str, int]:
            async with opened(tmp_path / name, clock, lease_seconds=10.0) as frontier:
                connection = connection_of(frontier)
                fill(connection, hosts, requests, clock.now)
                costs: dict[str, int] = {}

                async def counted(verb: str, call: Awaitable[T]) -> T:
                    ticks: list[None] = []
                    connection.set_progress_handler(lambda: ticks.append(None), 10)
                    result = await call
                    connection.set_progress_handler(None, 10)
                    costs[verb] = len(ticks)
                    return result

                await counted("add", frontier.add(pages("h1", 50) + pages("new", 50)))
                leases = (await counted("lease", frontier.lease(200))).leases
                tokens = [lease.token for lease in leases]
                await counted("renew", frontier.renew(tokens))
                await counted("release", frontier.release(tokens[:20]))
                outcomes = done(*leases[20:40], links=pages("h2", 20)) + retry(*leases[40:60], after=1.0)
                await counted("commit", frontier.commit(outcomes + dead(*leases[60:80])))
                await counted("resend", frontier.dead_letters.resend(limit=10))
                await counted("block", frontier.block_host(leases[0].host, 5.0))
                clock.now += 20.0
                assert len((await counted("sweep", frontier.lease(50))).leases) == 50
                return costs

        small, large = await steps("small.db", 1_000, 4_000), await steps("large.db", 50_000, 200_000)
        assert {verb: cost for verb, cost in large.items() if cost > 1.1 * small[verb] + 5} == {}
