"""The cache's file: damage, foreign files, full disks, kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fetch.cache.test_store import META, OWNER, bodies, key

from silkline.errors import CacheError, ConfigError
from silkline.fetch.cache.sqlite import SqliteCache

WRITER = """
import asyncio, sys
from pathlib import Path
from silkline.fetch.cache.sqlite import SqliteCache
from tests.fetch.cache.test_store import META, key

async def main():
    store = SqliteCache(Path(sys.argv[1]), 5_000_000)
    await store.open()
    number = int(sys.argv[2])
    while True:
        await store.put(key(number), META, b"%d " % number * 500)
        number += 1
        if number % 50 == 0:
            print(number, flush=True)
            await asyncio.sleep(0)

asyncio.run(main())
"""


def write_and_die(path: Path, first: int, lines: int) -> None:
    """A process that writes all the time, killed after so many lines of progress."""
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)


async def test_a_kill_at_any_instant_damages_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    urls: list[bytes] = []
    attempt = 0
    while attempt < 5 or not urls:  # on a busy machine the first ones may die before they wrote anything
        assert attempt < 30
        write_and_die(path, attempt * 100_000, lines=1 + attempt * 7)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        urls = [url for (url,) in connection.execute("SELECT url FROM responses")]
        connection.close()
        attempt += 1
    store = SqliteCache(path, 5_000_000)
    await store.open()
    for number in (int.from_bytes(url, "big") for url in urls):
        assert await bodies(store, key(number)) == [b"%d " % number * 500]
    await store.put(key(1), META, b"after")
    assert await bodies(store, key(1)) == [b"after"]
    await store.close()


@pytest.mark.parametrize("content", [b"no database at all, but text that is long enough" * 40])
async def test_a_file_that_is_no_cache_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"cache .*cache\.db cannot be used: file is not a database"):
        await SqliteCache(path, 1_000).open()
    assert path.read_bytes() == content


async def test_a_cache_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigError, match="of another version of silkline; delete it"):
        await SqliteCache(path, 1_000).open()


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be used"):
        await SqliteCache(tmp_path / "file" / "cache.db", 1_000).open()


async def test_a_failing_disk_stops_the_crawl_with_one_line(tmp_path: Path) -> None:
    store = SqliteCache(tmp_path / "cache.db", 1_000_000)
    await store.open()
    await store.put(key(1), META, b"x")
    assert await bodies(store, key(1)) == [b"x"]
    breaking = sqlite3.connect(tmp_path / "cache.db")
    breaking.execute("DROP TABLE responses")
    breaking.commit()
    breaking.close()
    with pytest.raises(CacheError, match=r"the cache .* failed: no such table"):
        await store.find(key(1).url, OWNER)
    with pytest.raises(CacheError):
        await store.put(key(2), META, b"x")
    await store.close()


async def test_a_damaged_body_is_none(tmp_path: Path) -> None:
    store = SqliteCache(tmp_path / "cache.db", 1_000_000)
    await store.open()
    await store.put(key(1), META, b"x" * 1_000)
    assert await bodies(store, key(1)) == [b"x" * 1_000]
    damaging = sqlite3.connect(tmp_path / "cache.db")
    damaging.execute("UPDATE responses SET body = x'0011'")
    damaging.commit()
    damaging.close()
    assert await bodies(store, key(1)) == [None]
    await store.close()
