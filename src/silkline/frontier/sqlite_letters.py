"""Dead letters in an SQLite file: rows of `requests` like those of every other place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from silkline.frontier.sqlite_file import Database, Run
from silkline.outcome import DeadLetter
from silkline.protocols import Clock
from silkline.request import Request

_request = msgspec.json.Decoder(Request)

_CHOSEN = """
FROM requests AS r JOIN hosts AS h ON h.id = r.host
WHERE r.state = 'dead' AND (?1 IS NULL OR r.cause = ?1) AND (?2 IS NULL OR h.key = ?2)
ORDER BY r.at DESC, r.id DESC LIMIT coalesce(?3, -1)
"""


class SqliteDeadLetters:
    """See `protocols.DeadLetters`. write: in a transaction."""

    def __init__(self, read: Run, write: Run, clock: Clock) -> None:
        self._read = read
        self._write = write
        self._clock = clock

    async def newest(
        self, *, cause: str | None = None, host: str | None = None, limit: int = 100
    ) -> Sequence[DeadLetter]:
        return await self._read(lambda database: _newest(database, cause, host, limit))

    async def causes(self) -> Mapping[str, int]:
        return await self._read(causes)

    async def resend(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._write(lambda database: _resend(database, cause, host, limit, self._clock()))

    async def drop(
        self, *, cause: str | None = None, host: str | None = None, limit: int | None = None
    ) -> int:
        return await self._write(lambda database: _drop(database, cause, host, limit))


def causes(database: Database) -> Mapping[str, int]:
    return dict(database.rows("SELECT cause, count(*) FROM requests WHERE state = 'dead' GROUP BY cause"))


def _newest(database: Database, cause: str | None, host: str | None, limit: int) -> Sequence[DeadLetter]:
    columns = "r.request, r.fingerprint, r.cause, r.error, r.deliveries, r.worker, r.at"
    return [
        DeadLetter(_request.decode(text), *rest)
        for text, *rest in database.rows(f"SELECT {columns} {_CHOSEN}", cause, host, limit)
    ]


def _resend(database: Database, cause: str | None, host: str | None, limit: int | None, now: float) -> int:
    ids, count = _select(database, cause, host, limit)
    database.run("INSERT INTO resend_dead VALUES (?, ?)", now, ids)
    return count


def _drop(database: Database, cause: str | None, host: str | None, limit: int | None) -> int:
    ids, count = _select(database, cause, host, limit)
    database.run("DELETE FROM requests WHERE state = 'dead' AND id IN (SELECT value FROM json_each(?))", ids)
    return count


def _select(database: Database, cause: str | None, host: str | None, limit: int | None) -> tuple[str, int]:
    """JSON of their ids, and how many."""
    ids, count = database.row(
        f"SELECT json_group_array(id), count(*) FROM (SELECT r.id {_CHOSEN})", cause, host, limit
    )
    return ids, count
