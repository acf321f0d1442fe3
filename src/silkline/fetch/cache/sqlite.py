"""Responses in one SQLite file, which several processes may share.

WAL with synchronous=NORMAL: a process or machine that dies loses the last writes and damages nothing, and for
a cache that is no loss. One thread has the connection; writes that pile up while it is busy are one
transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from silkline.errors import CacheError, ConfigError
from silkline.fetch.cache.entry import Key, Meta, Stored, packed_body, packed_meta, unpacked_meta
from silkline.fetch.cache.store import LARGEST, SLACK, VARIANTS, new_id

FORMAT = 1
"""PRAGMA user_version of the file."""

_BUSY_SECONDS = 60.0
_OVERHEAD = 200
"""Bytes that a row takes beside its metadata and body."""
_MOST_PENDING = 16_777_216
"""Bytes of bodies that may wait to be written."""

_FIND = (
    "SELECT variant, id, meta, body FROM responses WHERE url = ? AND owner = ? ORDER BY rowid DESC LIMIT ?"
)
_PUT = "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ONE = "WHERE url = ? AND owner = ? AND variant = ? AND id = ?"
_REFRESH = f"UPDATE responses SET meta = ?, size = length(body) + ?, used = ? {_ONE}"
_USED = f"UPDATE responses SET used = ? {_ONE}"
_FORGET = f"DELETE FROM responses {_ONE}"
_INVALIDATE = "DELETE FROM responses WHERE url = ?"
_SIZE = "SELECT coalesce(sum(size), 0) FROM responses"
_EVICT = """DELETE FROM responses WHERE rowid IN (
    SELECT rowid FROM (SELECT rowid, sum(size) OVER (ORDER BY used, rowid) - size AS before FROM responses)
    WHERE before < ?)"""

T = TypeVar("T")
Statement = tuple[str, tuple[object, ...]]


class Write(NamedTuple):
    """What waits to be written: `prepare` runs in the thread, before the file is locked."""

    url: bytes
    prepare: Callable[[], Statement]


class SqliteCache:
    """See CacheStore. limit: bytes of compressed bodies and metadata."""

    def __init__(self, path: Path, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._limit = limit
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection
        self._pending: deque[Write] = deque()
        self._pending_bytes = 0
        self._unwritten: Counter[bytes] = Counter()
        self._draining: asyncio.Task[None] | None = None
        self._failure: CacheError | None = None
        self._unchecked = 0

    async def open(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="silkline-cache")
        try:
            await self._run(self._connect)
        except BaseException as error:
            self._thread.shutdown()
            self._thread = None
            if isinstance(error, OSError | sqlite3.Error):
                raise ConfigError(f"the cache {self._path} cannot be used: {error}") from error
            raise

    async def find(self, url: bytes, owner: bytes) -> Sequence[Stored]:
        while url in self._unwritten and self._draining is not None:
            await asyncio.wait([self._draining])  # what was written before is found
        self._check()
        try:
            found = await self._run(lambda: self._find(url, owner))
        except sqlite3.Error as error:
            raise self._failed(error) from error
        if found:
            values = (self._clock(), *_place(found[0]))
            self._pending.append(Write(b"", lambda: (_USED, values)))  # with the next write
        return found

    async def put(self, key: Key, meta: Meta, body: bytes) -> None:
        used = self._clock()

        def prepare() -> Statement:
            packed, described = packed_body(body), packed_meta(meta)
            size = len(packed) + len(described) + _OVERHEAD
            if size > self._limit // LARGEST:
                return _INVALIDATE, (key.url,)
            self._unchecked += size
            return _PUT, (key.url, key.owner, key.variant, new_id(), described, packed, size, used)

        self._pending_bytes += len(body)
        self._write(key.url, prepare)
        if self._pending_bytes > _MOST_PENDING and self._draining is not None:
            await asyncio.wait([self._draining])

    async def refresh(self, stored: Stored, meta: Meta) -> None:
        described = packed_meta(meta)
        values = (described, len(described) + _OVERHEAD, self._clock(), *_place(stored))
        self._write(stored.key.url, lambda: (_REFRESH, values))

    async def forget(self, stored: Stored) -> None:
        self._write(stored.key.url, lambda: (_FORGET, _place(stored)))

    async def invalidate(self, url: bytes) -> None:
        self._write(url, lambda: (_INVALIDATE, (url,)))

    async def close(self) -> None:
        if self._thread is None:
            return
        try:
            self._start()
            while self._draining is not None:
                await asyncio.wait([self._draining])
            await self._run(self._connection.close)
        finally:
            thread, self._thread = self._thread, None
            thread.shutdown()

    def _write(self, url: bytes, prepare: Callable[[], Statement]) -> None:
        self._check()
        self._pending.append(Write(url, prepare))
        self._unwritten[url] += 1
        self._start()

    def _start(self) -> None:
        """Have the thread write what waits, unless it does so already."""
        if self._draining is None and self._pending:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._pending and self._failure is None:
                writes = list(self._pending)
                self._pending.clear()
                self._pending_bytes = 0
                try:
                    await self._run(partial(self._commit, writes))
                except sqlite3.Error as error:
                    self._failed(error)
                self._unwritten.subtract(write.url for write in writes)
                self._unwritten = +self._unwritten
        finally:
            self._draining = None

    def _failed(self, error: sqlite3.Error) -> CacheError:
        self._failure = CacheError(f"the cache {self._path} failed: {error}")
        return self._failure

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _run(self, work: Callable[[], T]) -> T:
        assert self._thread is not None, "not open"
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # In the thread.

    def _connect(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 8388608")
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, FORMAT):
                raise ConfigError(f"the cache {self._path} is of another version of silkline; delete it")
            for statement in files(__package__).joinpath("schema.sql").read_text().split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._make_room()

    def _find(self, url: bytes, owner: bytes) -> list[Stored]:
        found = []
        for variant, writing, meta, body in self._connection.execute(_FIND, (url, owner, VARIANTS)):
            if (known := unpacked_meta(meta)) is not None:
                found.append(Stored(Key(url, owner, variant), writing, known, body))
        return found

    def _commit(self, writes: Sequence[Write]) -> None:
        statements = [write.prepare() for write in writes]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in statements:
                self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        if self._unchecked > self._limit * (1 - SLACK) / 4:
            self._make_room()

    def _make_room(self) -> None:
        self._unchecked = 0
        (size,) = self._connection.execute(_SIZE).fetchone()
        if size > self._limit:
            self._connection.execute(_EVICT, (size - self._limit * SLACK,))


def _place(stored: Stored) -> tuple[bytes, ...]:
    key = stored.key
    return (key.url, key.owner, key.variant, stored.id)
