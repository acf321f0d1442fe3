"""Dead items in an SQLite file, by their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from silkline.frontier import rules
from silkline.frontier.sqlite_file import Database, Run
from silkline.outcome import DeadItem, Outcome
from silkline.protocols import Clock
from silkline.request import Request

_request = msgspec.json.Decoder(Request)

_CHOSEN = """
FROM dead_items AS i CROSS JOIN dead_pages AS p ON p.id = i.page JOIN hosts AS h ON h.id = p.host
WHERE (?1 IS NULL OR i.cause = ?1) AND (?2 IS NULL OR h.key = ?2)
ORDER BY p.at DESC, p.id DESC, i.number, i.sink LIMIT coalesce(?3, -1)
"""
_PAGES = """
SELECT p.id, p.fingerprint, p.host, p.request
FROM dead_pages AS p JOIN hosts AS h ON h.id = p.host
WHERE (?2 IS NULL OR h.key = ?2)
    AND EXISTS (SELECT 1 FROM dead_items AS i WHERE i.page = p.id AND (?1 IS NULL OR i.cause = ?1))
ORDER BY p.at DESC, p.id DESC LIMIT coalesce(?3, -1)
"""


class SqliteDeadItems:
    """See `protocols.DeadItems`. write: in a transaction."""

    def __init__(self, read: Run, write: Run, clock: Clock) -> None:
        self._read = read
        self._write = write
        self._clock = clock

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadItem]:
        return await self._read(lambda database: _newest(database, cause, host, limit))

    async def causes(self) -> Mapping[str, int]:
        return await self._read(_causes)

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._write(lambda database: _resend(database, cause, host, limit, self._clock()))

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._write(lambda database: _drop(database, cause, host, limit))


def keep(database: Database, accepted: Iterable[Outcome], now: float) -> None:
    """Inside a commit: those of the outcomes that `finish` has just ended, for what it says of them is
    read."""
    for outcome in accepted:
        items = rules.dead_items(outcome, now)
        if not items:
            continue
        id, host = database.row("SELECT id, host FROM ending WHERE token = ?", outcome.lease.token)
        database.run(
            "INSERT INTO dead_pages (id, fingerprint, host, request, at) VALUES (?, ?, ?, ?, ?)",
            id,
            outcome.lease.fingerprint,
            host,
            rules.encode([outcome.lease.request])[1:-1].decode(),
            now,
        )
        for item in items:
            database.run(
                "INSERT INTO dead_items (page, number, sink, url, cause, error, record) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(id, item.index, item.sink, item.url, item.cause, item.error, item.record),
            )


def _newest(database: Database, cause: str | None, host: str | None, limit: int) -> Sequence[DeadItem]:
    columns = "p.fingerprint, i.number, i.url, i.cause, i.error, i.record, i.sink, p.at"
    return [DeadItem(*row) for row in database.rows(f"SELECT {columns} {_CHOSEN}", cause, host, limit)]


def _causes(database: Database) -> Mapping[str, int]:
    return dict(database.rows("SELECT cause, count(*) FROM dead_items GROUP BY cause"))


def _resend(database: Database, cause: str | None, host: str | None, limit: int | None, now: float) -> int:
    pages = database.rows(_PAGES, cause, host, limit)
    for id, fingerprint, host_id, text in pages:
        items = database.rows("SELECT number, sink FROM dead_items WHERE page = ? ORDER BY number, sink", id)
        request = rules.redone(_request.decode(text), [tuple(item) for item in items])
        priority = rules.priority_of(request)
        database.run(
            "INSERT INTO requests (id, fingerprint, host, priority, state, request) "
            "VALUES (?, ?, ?, ?, 'waiting', ?)",
            *(id, fingerprint, host_id, priority, rules.encode([request])[1:-1].decode()),
        )
        database.run("INSERT OR IGNORE INTO touched VALUES (?, ?)", host_id, priority)
        database.run("DELETE FROM dead_items WHERE page = ?", id)
        database.run("DELETE FROM dead_pages WHERE id = ?", id)
    database.run("INSERT INTO settle (now) VALUES (?)", now)
    return len(pages)


def _drop(database: Database, cause: str | None, host: str | None, limit: int | None) -> int:
    dropped = database.rows(f"SELECT i.page, i.number, i.sink {_CHOSEN}", cause, host, limit)
    for item in dropped:
        database.run("DELETE FROM dead_items WHERE page = ? AND number = ? AND sink = ?", *item)
    database.run("DELETE FROM dead_pages WHERE id NOT IN (SELECT page FROM dead_items)")
    return len(dropped)
