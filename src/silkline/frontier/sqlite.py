"""The embedded frontier: one SQLite file that several processes may share."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier import rules, sqlite_notes, sqlite_pace, sqlite_reads
from silkline.frontier.groups import Groups
from silkline.frontier.sqlite_arrivals import arrivals
from silkline.frontier.sqlite_file import Database, kept_grouping, open_reader
from silkline.frontier.sqlite_items import SqliteDeadItems
from silkline.frontier.sqlite_letters import SqliteDeadLetters
from silkline.frontier.sqlite_store import SqliteStore
from silkline.frontier.store_thread import StoreThread
from silkline.outcome import (
    Added,
    Blocked,
    Committed,
    Heartbeat,
    HostState,
    KeptValue,
    LeaseBatch,
    Outcome,
    Overview,
    Stats,
    Whereabouts,
)
from silkline.protocols import Clock, Decide, Deliver, Positions, Resolve
from silkline.request import Request
from silkline.values import PolitenessBy

T = TypeVar("T")


class SqliteFrontier:
    """See `protocols.Frontier`. `clock` gives Unix seconds and must be the same for all workers.

    Writing and reading have a thread and a connection each. What JSON or fingerprints can refuse is made
    ready by the caller, before anything is queued.
    """

    def __init__(
        self,
        path: Path | str,
        options: FrontierOptions,
        *,
        clock: Clock = time.time,
        resolve: Resolve | None = None,
    ) -> None:
        self._path = Path(path)
        self._options = options
        self._clock = clock
        self._resolve = resolve
        self._worker = rules.new_worker_id()
        self._news: Callable[[], None] = _nobody_listens
        self._store: SqliteStore | None = None
        self._writer: StoreThread
        self._reader: StoreThread
        self._reads: Database
        self._groups: Groups
        self.dead_letters = SqliteDeadLetters(self._read, self._change, clock)
        self.dead_items = SqliteDeadItems(self._read, self._change, clock)

    @property
    def worker(self) -> str:
        return self._worker

    @property
    def path(self) -> Path:
        """Of its file."""
        return self._path

    def lent(self) -> sqlite3.Connection:
        """For `Deliver`: the connection whose transaction the commit is."""
        return self._opened().lent()

    async def open(self) -> None:
        if self._store is not None:
            return
        store = SqliteStore(self._path, self._worker, self._options)
        self._writer = StoreThread("frontier-writer")
        try:
            await self._writer.run(lambda: store.open(self._clock()))
            self._reads = await self._writer.run(lambda: open_reader(self._path))
        except BaseException:
            self._writer.stop()
            store.close(self._clock())
            raise
        self._reader = StoreThread("frontier-reader")
        self._groups = Groups(kept_grouping(self._reads), self._grouped, self._resolve)
        self._store = store

    def fingerprint(self, url: str) -> int:
        return self._opened().keys.fingerprint(url)

    @property
    def politeness_by(self) -> PolitenessBy:
        self._opened()
        return self._groups.by

    async def politeness_keys(self, urls: Sequence[str]) -> Sequence[str]:
        self._opened()
        return list(map(await self._groups.keys(urls), urls))

    async def close(self) -> None:
        store, self._store = self._store, None
        if store is None:
            return
        try:
            await self._reader.run(self._reads.close)
            await self._writer.run(lambda: store.close(self._clock()))
        finally:
            self._reader.stop()
            self._writer.stop()

    async def add(self, requests: Sequence[Request]) -> Added:
        keys = self._opened().keys
        batch = arrivals(requests, keys, await self._groups.keys(request.url for request in requests))
        added, refused = await self._write(lambda store: store.add(batch, self._clock()))
        return Added(added, len(requests) - added - refused.count, refused)

    async def lease(self, count: int) -> LeaseBatch:
        return await self._write(
            lambda store: store.lease(count, self._clock()),
            # Leases that nobody got must not wait for their expiry.
            undo=lambda store, batch: store.release([lease.token for lease in batch.leases], self._clock()),
        )

    async def renew(self, tokens: Sequence[int]) -> Sequence[int]:
        return await self._write(lambda store: store.renew(tokens, self._clock()))

    async def commit(self, outcomes: Sequence[Outcome], deliver: Deliver | None = None) -> Committed:
        keys, requests = self._opened().keys, [link for outcome in outcomes for link in outcome.links]
        key_of = await self._groups.keys(request.url for request in requests)
        links = arrivals(requests, keys, key_of)
        return await self._write(lambda store: store.commit(outcomes, links, key_of, deliver, self._clock()))

    async def release(self, tokens: Sequence[int]) -> None:
        await self._write(lambda store: store.release(tokens, self._clock()))

    async def block_host(self, host: str, seconds: float) -> None:
        await self._change(lambda writes: sqlite_pace.block_host(writes, host, seconds, self._clock()))

    async def limit_host(
        self, host: str, *, delay: float | None = None, cap: int | None = None, only_raise: bool = False
    ) -> None:
        rules.check_limits(delay, cap)
        await self._change(
            lambda writes: sqlite_pace.limit_host(
                writes, host, delay, cap, self._clock(), only_raise=only_raise
            )
        )

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        await self._change(
            lambda writes: sqlite_pace.pace(writes, hosts, decide, self._clock()), synced=False
        )

    async def stats(self) -> Stats:
        """Counting a large frontier takes a while (50 ms for a million): ask seldom."""
        return await self._read(sqlite_reads.stats)

    async def positions(self) -> Positions:
        return await self._read(sqlite_reads.positions)

    async def distinct(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        asked = {alias.fingerprint for outcome in outcomes for alias in outcome.aliases}
        if not asked:
            return outcomes
        known = await self._read(lambda reads: sqlite_reads.seen(reads, asked))
        return rules.distinct(outcomes, known.__contains__)

    async def explain(self, url: str) -> Whereabouts:
        fingerprint, most = self.fingerprint(url), self._options.max_pages_per_host
        host = await self._groups.key(url)
        return await self._read(
            lambda reads: sqlite_reads.explain(reads, host, fingerprint, most, self._clock())
        )

    async def remember(self, facts: Mapping[str, str]) -> None:
        await self._change(lambda writes: sqlite_notes.remember(writes, facts))

    async def recall(self) -> Mapping[str, str]:
        return await self._read(sqlite_notes.facts)

    async def keep(self, name: str, value: bytes, seconds: float) -> None:
        await self._change(
            lambda writes: sqlite_notes.keep(writes, name, value, seconds, self._clock()), synced=False
        )

    async def kept(self, name: str) -> KeptValue | None:
        return await self._read(lambda reads: sqlite_notes.kept(reads, name, self._clock()))

    async def heartbeat(self, beat: Heartbeat) -> Mapping[str, str]:
        live, changed = await self._write(lambda store: store.heartbeat(beat, self._clock()))
        if changed:
            self._news()
        return live

    async def configure(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        return await self._change(lambda writes: sqlite_notes.configure(writes, changes))

    async def apply(self, options: FrontierOptions) -> None:
        await self._write(lambda store: store.apply(options, self._clock()))
        self._options = options

    async def overview(self, hosts: int = 10) -> Overview:
        return await self._read(
            lambda reads: sqlite_reads.overview(reads, hosts, self._options, self._clock())
        )

    async def blocked(self, hosts: int = 5) -> Blocked:
        return await self._read(lambda reads: sqlite_reads.blocked(reads, hosts, self._clock()))

    async def host(self, key: str) -> HostState | None:
        return await self._read(lambda reads: sqlite_reads.host(reads, key, self._options, self._clock()))

    def listen(self, news: Callable[[], None], trouble: Callable[[str], None]) -> None:
        """Of other processes this worker learns at its heartbeats; while they work beside it, `lease` says to
        ask again soon."""
        self._news = news

    def leave(self, patience: float) -> None:
        """A file is never away; how long its lock is waited for does not change."""

    async def _grouped(self, proposals: Mapping[str, str]) -> Mapping[str, str]:
        return await self._change(lambda writes: sqlite_pace.decide_groups(writes, proposals), synced=False)

    async def _write(
        self, verb: Callable[[SqliteStore], T], undo: Callable[[SqliteStore, T], None] | None = None
    ) -> T:
        store = self._opened()
        take_back = None if undo is None else lambda result: undo(store, result)
        return await self._writer.run(lambda: verb(store), take_back)

    async def _read(self, step: Callable[[Database], T], /) -> T:
        self._opened()
        return await self._reader.run(lambda: step(self._reads))

    async def _change(self, step: Callable[[Database], T], /, *, synced: bool = True) -> T:
        return await self._write(lambda store: store.change(step, synced=synced))

    def _opened(self) -> SqliteStore:
        if self._store is None:
            raise FrontierError("the frontier is not open")
        return self._store


def _nobody_listens() -> None:
    """Until `listen`."""
