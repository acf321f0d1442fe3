"""A worker at an SQLite file: that it lives, and its leases; synchronous. See also `verbs/*.sql`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import ConfigError
from silkline.files import make_private_folder
from silkline.frontier import rules, sqlite_items, sqlite_notes, sqlite_pace
from silkline.frontier.groups import KeyOf
from silkline.frontier.liveness import WorkerLock
from silkline.frontier.sqlite_arrivals import Arrivals, arrivals, claim, within_budget
from silkline.frontier.sqlite_file import Database, kept_keys, open_writer
from silkline.keys import KeyRules
from silkline.outcome import (
    NONE_REFUSED,
    Committed,
    Done,
    Heartbeat,
    Lease,
    LeaseBatch,
    Moved,
    Outcome,
    Refused,
    RetryLater,
    Verdict,
    ends_a_visit,
)
from silkline.protocols import Deliver

T = TypeVar("T")

COMPANY_POLL = 0.1
"""Seconds until an idle worker asks again while others share the file: it hears nothing of their commits."""

_leases = msgspec.json.Decoder(tuple[Lease, ...])
_integers = msgspec.json.Decoder(list[int])


class SqliteStore:
    """One worker's writing end of the file. For one thread at a time."""

    def __init__(self, path: Path, worker: str, options: FrontierOptions) -> None:
        self._path = path
        self._worker = worker
        self._options = options
        self._lock = WorkerLock(WorkerLock.directory_of(path), worker)
        self._connected: Database | None = None
        self._version = 0
        self.keys = KeyRules()

    def open(self, now: float) -> None:
        try:
            make_private_folder(self._path.parent)
        except OSError as error:
            raise ConfigError(f"cannot create the directory {self._path.parent}: {error.strerror}") from error
        # The lock first: whoever holds leases without one counts as dead.
        self._lock.take()
        try:
            self._connected = open_writer(self._path, self._options)
            self.keys = kept_keys(self._connected)
            self._use_options()
            with self._connected.transaction():
                sqlite_pace.settle_by_new_limits(self._connected, self._options, now)
            self._expire_the_dead(now)
        except BaseException:
            self.close(now)
            raise

    def close(self, now: float) -> None:
        """Give back this worker's leases. Idempotent."""
        database, self._connected = self._connected, None
        try:
            if database is not None:
                database.run("INSERT INTO give_back VALUES (?, NULL)", now)
                with database.unsynced(), database.transaction():
                    sqlite_pace.forget_worker(database, self._worker)
        finally:
            if database is not None:
                database.close()
            self._lock.drop()

    def lent(self) -> sqlite3.Connection:
        """See `Database.lent`."""
        return self._database.lent()

    @property
    def _database(self) -> Database:
        assert self._connected is not None, "used only between open and close"
        return self._connected

    def add(self, batch: Arrivals, now: float) -> tuple[int, Refused]:
        """How many were new, and those that their hosts' budgets have no room for."""
        if self._options.max_pages_per_host is None:
            return self._add(batch, now), NONE_REFUSED
        with self._database.transaction():
            return self._add_within(batch, now)

    def _add_within(self, batch: Arrivals, now: float) -> tuple[int, Refused]:
        """Inside a transaction."""
        refused, most = NONE_REFUSED, self._options.max_pages_per_host
        if most is not None and batch.count:
            batch, refused = within_budget(self._database, most, batch)
        return (self._add(batch, now) if batch.count else 0), refused

    def _add(self, batch: Arrivals, now: float) -> int:
        self._database.run(
            "INSERT INTO add_requests VALUES (?, ?, ?, ?)",
            now,
            batch.groups,
            batch.fingerprints,
            batch.requests,
        )
        (added,) = self._database.row("SELECT count FROM added")
        return int(added)

    def lease(self, count: int, now: float) -> LeaseBatch:
        batch = self._lease(count, now)
        if len(batch.leases) < count and self._lock.has_company():
            with self._database.unsynced():
                sqlite_pace.be_hungry(self._database, self._worker, now)
            if not batch.leases and not batch.finished and self._expire_the_dead(now):
                batch = self._lease(count, now)
            wake_in = COMPANY_POLL if batch.wake_in is None else min(batch.wake_in, COMPANY_POLL)
            batch = msgspec.structs.replace(batch, wake_in=wake_in)
        return batch

    def renew(self, tokens: Sequence[int], now: float) -> Sequence[int]:
        held = _json(tokens)
        with self._database.unsynced(), self._database.transaction():
            self._database.run(
                "UPDATE requests SET expires = ? "
                "WHERE state = 'leased' AND token IN (SELECT value FROM json_each(?))",
                now + self._options.lease_seconds,
                held,
            )
            (lost,) = self._database.row(
                "SELECT json_group_array(value) FROM json_each(?) "
                "WHERE value NOT IN (SELECT token FROM requests WHERE state = 'leased')",
                held,
            )
        return _integers.decode(lost)

    def commit(
        self,
        outcomes: Sequence[Outcome],
        links: Arrivals,
        key_of: KeyOf,
        deliver: Deliver | None,
        now: float,
    ) -> Committed:
        """`links` are those of all the outcomes, made ready before the write lock was taken."""
        first: dict[int, Outcome] = {}
        for outcome in outcomes:
            first.setdefault(outcome.lease.token, outcome)
        duplicates = set[int]()
        with self._database.transaction():
            accepted = self._finish(list(first.values()), now) if first else []
            counted = {id(outcome) for outcome in accepted}
            if len(accepted) < len(outcomes):
                requests = [link for outcome in accepted for link in outcome.links]
                links = arrivals(requests, self.keys, key_of)
            if any(outcome.aliases for outcome in accepted):
                duplicates = claim(self._database, accepted)
                accepted = [rules.without_items(o) if o.lease.token in duplicates else o for o in accepted]
            if any(outcome.dead_items for outcome in accepted):
                sqlite_items.keep(self._database, accepted, now)
            added, refused = self._add_within(links, now)
            if deliver is not None:
                positions = dict(self._database.rows("SELECT sink, position FROM positions"))
                moved = deliver(accepted, positions).items() - positions.items()
                self._keep_positions(dict(moved))
        stale = tuple(outcome.lease.token for outcome in outcomes if id(outcome) not in counted)
        return Committed(tuple(accepted), stale, added, len(duplicates), refused)

    def release(self, tokens: Sequence[int], now: float) -> None:
        with self._database.unsynced():
            self._database.run("INSERT INTO give_back VALUES (?, ?)", now, _json(tokens))

    def change(self, step: Callable[[Database], T], *, synced: bool) -> T:
        """Run a step in a transaction; it is about nothing of this worker's own. synced: see
        `Database.unsynced`."""
        with contextlib.nullcontext() if synced else self._database.unsynced(), self._database.transaction():
            return step(self._database)

    def heartbeat(self, beat: Heartbeat, now: float) -> tuple[Mapping[str, str], bool]:
        """The live settings, and whether others have changed anything in the file since the last one."""
        (version,) = self._database.row("PRAGMA data_version")
        changed, self._version = version != self._version, version
        with self._database.unsynced(), self._database.transaction():
            self._database.run(
                "INSERT OR REPLACE INTO workers (id, seen, beat) VALUES (?, ?, ?)",
                self._worker,
                now,
                _json(beat),
            )
            return sqlite_notes.live(self._database), changed

    def apply(self, options: FrontierOptions, now: float) -> None:
        """Each worker computes the queues again: others, with the old limits still, may have been at them
        since the first one did."""
        self._options = options
        with self._database.transaction():
            self._use_options()
            sqlite_pace.settle_by(self._database, self._options, now)

    def _lease(self, count: int, now: float) -> LeaseBatch:
        with self._database.unsynced():
            self._database.run(
                "INSERT INTO lease VALUES (?, ?, ?, ?, ?, ?)",
                now,
                count,
                self._options.max_pages,
                rules.LEAST_SHARE,
                rules.HUNGER,
                rules.SECOND_HELPING,
            )
        text, budget, reached, expiry, delayed, queue = self._database.row(
            "SELECT leases, budget, reached, next_expiry, next_delayed, next_queue FROM leased_now"
        )
        leases = _leases.decode(f"[{text}]") if text else ()
        spent = budget is not None and len(leases) >= budget
        moments = (expiry,) if spent else (expiry, delayed, queue)
        first = min((moment for moment in moments if moment is not None), default=inf)
        wake_in = None if first == inf else min(max(0.0, first - now), self._options.lease_seconds)
        return LeaseBatch(
            leases=leases,
            wake_in=wake_in if spent or len(leases) < count else 0.0,
            finished=expiry is None and delayed is None and queue is None,
            budget_spent=bool(reached) or (spent and expiry is None),
        )

    def _finish(self, outcomes: Sequence[Outcome], now: float) -> list[Outcome]:
        """End these leases, no token twice; the outcomes that counted."""
        done, others = [], []
        for outcome in outcomes:
            if isinstance(outcome.verdict, Done) and not outcome.block_host:
                done.append(outcome.lease.token)
            else:
                ending, moved = _ending(outcome.verdict), _moved(outcome.verdict)
                others.append((outcome.lease.token, *ending, outcome.block_host, *moved))
        self._database.run("INSERT INTO finish VALUES (?, ?, ?)", now, _json(done), _json(others))
        (tokens,) = self._database.row("SELECT json_group_array(token) FROM ending")
        accepted = set(_integers.decode(tokens))
        return [outcome for outcome in outcomes if outcome.lease.token in accepted]

    def _keep_positions(self, positions: Mapping[str, str]) -> None:
        for position in positions.items():
            self._database.run("INSERT OR REPLACE INTO positions (sink, position) VALUES (?, ?)", *position)

    def _use_options(self) -> None:
        options = self._options
        self._database.run("DELETE FROM options")
        self._database.run(
            "INSERT INTO options VALUES (?, ?, ?, ?, ?, ?, ?)",
            self._worker,
            options.per_host,
            options.delay,
            options.lease_seconds,
            options.max_deliveries,
            options.window,
            options.ceiling,
        )

    def _expire_the_dead(self, now: float) -> bool:
        """End the leases of workers that do not live, so that the next lease takes them back.

        The roll is called with the write lock held: whoever holds a lease by then has had a lock file
        before, so that nobody who opens in the meantime is taken for dead.
        """
        with self._database.transaction(), self._lock.roll_call() as living:
            alive = _json(living)
            ended = self._database.run(
                "UPDATE requests SET expires = ? "
                "WHERE state = 'leased' AND worker NOT IN (SELECT value FROM json_each(?))",
                now,
                alive,
            )
            for (dead,) in self._database.rows(
                "SELECT id FROM workers UNION SELECT worker FROM hungry "
                "EXCEPT SELECT value FROM json_each(?)",
                alive,
            ):
                sqlite_pace.forget_worker(self._database, dead)
        return ended > 0


def _ending(verdict: Verdict) -> tuple[str, float | None, str | None, str | None, int, int]:
    """(verdict, after, cause, error, cost, ended) for `finish`."""
    ended = int(ends_a_visit(verdict))
    if isinstance(verdict, Done):
        return "done", None, None, None, 0, ended
    if isinstance(verdict, Moved):
        return "moved", None, None, None, 0, ended
    error = rules.storable(verdict.error)
    if isinstance(verdict, RetryLater):
        return "retry", verdict.after, verdict.cause, error, int(verdict.costs_retry), ended
    return "dead", None, verdict.cause, error, 0, ended


def _moved(verdict: Verdict) -> tuple[str | None, str | None]:
    """(target, onward) for `finish`."""
    return (verdict.host, _json(verdict.onward)) if isinstance(verdict, Moved) else (None, None)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
