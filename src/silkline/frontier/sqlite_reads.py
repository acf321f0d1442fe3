"""The verbs that only read, on an SQLite file, beside the writer and never in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from silkline.frontier import rules
from silkline.frontier.sqlite_file import Database
from silkline.frontier.sqlite_store import DEAD_LETTERS
from silkline.outcome import DeadLetter, Stats, Whereabouts
from silkline.protocols import Positions
from silkline.request import Request
from silkline.url import fingerprint_of, host_of

_request = msgspec.json.Decoder(Request)


def stats(database: Database) -> Stats:
    seen, waiting, delayed, leased, dead = database.row(
        "SELECT (SELECT count(*) FROM seen),"
        " (SELECT count(*) FROM requests WHERE state = 'waiting'),"
        " (SELECT count(*) FROM requests WHERE state = 'delayed'),"
        " (SELECT count(*) FROM requests WHERE state = 'leased'),"
        " (SELECT count(*) FROM requests WHERE state = 'dead')"
    )
    done = seen - waiting - delayed - leased - dead
    return Stats(waiting=waiting, delayed=delayed, leased=leased, done=done, dead=dead)


def positions(database: Database) -> Positions:
    return dict(database.rows("SELECT sink, position FROM positions"))


def facts(database: Database) -> Mapping[str, str]:
    return dict(database.rows("SELECT name, value FROM facts"))


def dead_letters(database: Database, cause: str | None, host: str | None, limit: int) -> Sequence[DeadLetter]:
    columns = "r.request, r.fingerprint, r.cause, r.error, r.deliveries, r.worker, r.at"
    return [
        DeadLetter(_request.decode(text), *rest)
        for text, *rest in database.rows(f"SELECT {columns} {DEAD_LETTERS}", cause, host, limit)
    ]


def dead_causes(database: Database) -> Mapping[str, int]:
    return dict(database.rows("SELECT cause, count(*) FROM requests WHERE state = 'dead' GROUP BY cause"))


def explain(database: Database, url: str, now: float) -> Whereabouts:
    """Looks through the host's requests: fingerprints alone are not indexed, which saves disk on each URL."""
    fingerprint, host = fingerprint_of(url), host_of(url)
    if database.row("SELECT 1 FROM seen WHERE fingerprint = ?", fingerprint) is None:
        return rules.NEVER_SEEN
    found = database.row(
        "SELECT r.id, r.state, r.request, r.deliveries, r.due, r.worker, r.expires, r.cause, r.error, r.at,"
        " h.id, h.blocked_until"
        " FROM requests AS r JOIN hosts AS h ON h.id = r.host WHERE r.fingerprint = ?",
        fingerprint,
    )
    if found is None:
        return rules.DONE
    id, state, text, deliveries, due, worker, expires, cause, error, at, host_id, blocked_until = found
    request = _request.decode(text)
    if state == "waiting":
        (ahead,) = database.row(
            "SELECT count(*) FROM requests WHERE state = 'waiting' AND host = ?1"
            " AND (priority > ?2 OR priority = ?2 AND id < ?3)",
            host_id,
            request.priority,
            id,
        )
        return rules.describe_waiting(ahead, host, request.priority, blocked_until, now)
    if state == "delayed":
        return rules.describe_delayed(due, request.retry_count, cause)
    if state == "leased":
        return rules.describe_leased(worker, expires, deliveries)
    return rules.describe_dead(cause, error, deliveries, at)
