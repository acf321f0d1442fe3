"""Responses in one SQLite file, which several processes may share.

WAL with synchronous=NORMAL: a process or machine that dies loses the last writes and damages nothing, and for
a cache that is no loss. One thread has the connection; what piles up while it is busy is done at once, the
writes of it in one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from silkline.errors import CacheError, ConfigError
from silkline.fetch.cache.entry import Key, Meta, Stored, packed_body, packed_meta, unpacked_meta
from silkline.fetch.cache.store import LARGEST, SLACK, VARIANTS, new_id
from silkline.files import make_private, make_private_folder

FORMAT = 1
"""PRAGMA user_version of the file."""

_BUSY_SECONDS = 60.0
_OVERHEAD = 200
"""Bytes that a row takes beside its metadata and body."""
_MOST_PENDING = 16_777_216
"""Bytes of bodies that may wait to be written."""
_MOST_USED = 200
"""Uses that may wait to be noted, which is done with the next write."""

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

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

T = TypeVar("T")
Statement = tuple[str, tuple[object, ...]]
Prepare = Callable[[], Statement]
"""Makes a write, in the thread, before the file is locked."""


class Find(NamedTuple):
    """A question that waits for the thread."""

    url: bytes
    owner: bytes
    at: float
    answer: asyncio.Future[list[Stored]]


class SqliteCache:
    """See CacheStore. limit: bytes of compressed bodies and metadata."""

    def __init__(self, path: Path, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._limit = limit
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection
        self._pending: deque[Find | Prepare] = deque()
        self._pending_bytes = 0
        self._working: asyncio.Task[None] | None = None
        self._failure: CacheError | None = None
        self._used: list[Statement] = []
        self._unchecked = 0

    async def open(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="silkline-cache")
        try:
            await self._run(self._connect)
        except BaseException as error:
            self._thread.shutdown()
            self._thread = None
            if isinstance(error, OSError | sqlite3.Error):
                hint = self._hint(error)
                raise ConfigError(f"the cache {self._path} cannot be used: {error}{hint}") from error
            raise

    async def find(self, url: bytes, owner: bytes) -> Sequence[Stored]:
        answer: asyncio.Future[list[Stored]] = asyncio.get_running_loop().create_future()
        self._add(Find(url, owner, self._clock(), answer))
        return await answer

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
        self._add(prepare)
        if self._pending_bytes > _MOST_PENDING and self._working is not None:
            await asyncio.wait([self._working])

    async def refresh(self, stored: Stored, meta: Meta) -> None:
        described = packed_meta(meta)
        values = (described, len(described) + _OVERHEAD, self._clock(), *_place(stored))
        self._add(lambda: (_REFRESH, values))

    async def forget(self, stored: Stored) -> None:
        self._add(lambda: (_FORGET, _place(stored)))

    async def invalidate(self, url: bytes) -> None:
        self._add(lambda: (_INVALIDATE, (url,)))

    async def close(self) -> None:
        if self._thread is None:
            return
        try:
            while self._working is not None:
                await asyncio.wait([self._working])
            await self._run(self._close)
        finally:
            thread, self._thread = self._thread, None
            thread.shutdown()

    def _add(self, work: Find | Prepare) -> None:
        """To what the thread has to do; it takes everything that waits at once, in order."""
        if self._failure is not None:
            raise self._failure
        self._pending.append(work)
        if self._working is None:
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._pending:
                batch = list(self._pending)
                self._pending.clear()
                self._pending_bytes = 0
                await self._answered(batch)
        finally:
            self._working = None

    async def _answered(self, batch: Sequence[Find | Prepare]) -> None:
        waiting = [work.answer for work in batch if isinstance(work, Find)]
        try:
            answers = await self._run(partial(self._do, batch))
        except sqlite3.Error as error:
            self._failure = CacheError(f"the cache {self._path} failed: {error}{self._hint(error)}")
            self._failure.__cause__ = error
            for answer in waiting:
                if not answer.done():
                    answer.set_exception(self._failure)
            return
        for answer, found in zip(waiting, answers, strict=True):
            if not answer.done():  # as it is where who asked was cancelled
                answer.set_result(found)

    def _hint(self, error: BaseException) -> str:
        """What to do about it, where the file is damaged or none of ours; "" elsewhere."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            return ""
        return f"; delete {self._path}, which is fetched again, with {self._path}-wal and {self._path}-shm"

    async def _run(self, work: Callable[[], T]) -> T:
        assert self._thread is not None, "not open"
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # In the thread.

    def _connect(self) -> None:
        make_private_folder(self._path.parent)
        make_private(self._path)  # SQLite gives its other files the same permissions
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

    def _close(self) -> None:
        try:
            if self._used and self._failure is None:
                self._do([])
        finally:
            self._connection.close()

    def _do(self, batch: Sequence[Find | Prepare]) -> list[list[Stored]]:
        """All of it in order, the writes in one transaction; returns what was found."""
        prepared = [work if isinstance(work, Find) else work() for work in batch]
        if all(isinstance(work, Find) for work in prepared) and prepared and len(self._used) < _MOST_USED:
            return [self._find(work) for work in prepared if isinstance(work, Find)]
        answers = []
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for work in prepared:
                if isinstance(work, Find):
                    answers.append(self._find(work))
                else:
                    execute(*work)
            for statement in self._used:
                execute(*statement)
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise
        self._used.clear()
        if self._unchecked > self._limit * (1 - SLACK) / 4:
            self._make_room()
        return answers

    def _find(self, wanted: Find) -> list[Stored]:
        found = []
        url, owner = wanted.url, wanted.owner
        for variant, writing, meta, body in self._connection.execute(_FIND, (url, owner, VARIANTS)):
            if (known := unpacked_meta(meta)) is not None:
                found.append(Stored(Key(url, owner, variant), writing, known, body))
        if found:
            self._used.append((_USED, (wanted.at, *_place(found[0]))))  # with the next write
        return found

    def _make_room(self) -> None:
        self._unchecked = 0
        (size,) = self._connection.execute(_SIZE).fetchone()
        if size > self._limit:
            self._connection.execute(_EVICT, (size - self._limit * SLACK,))


def _place(stored: Stored) -> tuple[bytes, ...]:
    key = stored.key
    return (key.url, key.owner, key.variant, stored.id)
