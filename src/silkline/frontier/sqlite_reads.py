"""The verbs that only read, on an SQLite file, beside the writer and never in its way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from silkline.config import FrontierOptions
from silkline.frontier import rules, sqlite_notes
from silkline.frontier.sqlite_file import Database
from silkline.outcome import (
    Blocked,
    Heartbeat,
    HostState,
    Overview,
    Stats,
    Whereabouts,
    WorkerState,
    blocked_of,
)
from silkline.protocols import Positions
from silkline.request import Request

_request = msgspec.json.Decoder(Request)
_heartbeat = msgspec.json.Decoder(Heartbeat)

# `places` answers both counts without touching a row.
_BUSY_HOSTS = """
SELECT host, sum(state = 'waiting') AS waiting, sum(state = 'leased') AS leased
FROM requests WHERE state IN ('waiting', 'leased') GROUP BY host
"""


def stats(database: Database) -> Stats:
    seen, waiting, delayed, leased, dead = database.row(
        "SELECT (SELECT count(*) FROM seen) - (SELECT count(*) FROM aliases),"
        " (SELECT count(*) FROM requests WHERE state = 'waiting'),"
        " (SELECT count(*) FROM requests WHERE state = 'delayed'),"
        " (SELECT count(*) FROM requests WHERE state = 'leased'),"
        " (SELECT count(*) FROM requests WHERE state = 'dead')"
    )
    done = seen - waiting - delayed - leased - dead
    return Stats(waiting=waiting, delayed=delayed, leased=leased, done=done, dead=dead)


def seen(database: Database, fingerprints: Iterable[int]) -> set[int]:
    """Those of them that are."""
    text = msgspec.json.encode(list(fingerprints)).decode()
    rows = database.rows(
        "SELECT fingerprint FROM seen WHERE fingerprint IN (SELECT value FROM json_each(?))", text
    )
    return {fingerprint for (fingerprint,) in rows}


def positions(database: Database) -> Positions:
    return dict(database.rows("SELECT sink, position FROM positions"))


def overview(database: Database, hosts: int, options: FrontierOptions, now: float) -> Overview:
    """`options`: the limits that hold where a host has none of its own."""
    with database.snapshot():
        first = database.rows(
            "SELECT h.key, b.waiting, b.leased, h.delay, h.cap, h.last_start, h.blocked_until,"
            " p.cap, p.delay, p.state, count(*) OVER ()"
            f" FROM ({_BUSY_HOSTS}) AS b JOIN hosts AS h ON h.id = b.host"
            " LEFT JOIN paces AS p ON p.host = h.id"
            " ORDER BY b.waiting DESC, b.leased DESC, h.key LIMIT ?",
            max(1, hosts),
        )
        oldest = database.row("SELECT at FROM requests WHERE state = 'leased' ORDER BY token LIMIT 1")
        return Overview(
            stats=stats(database),
            hosts=tuple(_host_state(row[:10], options, now) for row in first[:hosts]),
            host_count=first[0][10] if first else 0,
            workers=tuple(
                WorkerState(id, now - seen, _heartbeat.decode(beat))
                for id, seen, beat in database.rows("SELECT id, seen, beat FROM workers ORDER BY id")
            ),
            oldest_lease=None if oldest is None or oldest[0] is None else now - oldest[0],
            with_dead_items=database.row("SELECT count(*) FROM dead_pages")[0],
            live=sqlite_notes.live(database),
        )


def blocked(database: Database, most: int, now: float) -> Blocked:
    found = database.rows(
        "SELECT h.key, h.blocked_until FROM hosts AS h WHERE h.blocked_until > ?"
        " AND EXISTS (SELECT 1 FROM requests WHERE state IN ('waiting', 'delayed') AND host = h.id)",
        now,
    )
    return blocked_of(list(found), most, now)


def host(database: Database, key: str, options: FrontierOptions, now: float) -> HostState | None:
    row = database.row(
        "SELECT h.key,"
        " (SELECT count(*) FROM requests AS r WHERE r.state = 'waiting' AND r.host = h.id),"
        " (SELECT count(*) FROM requests AS r WHERE r.state = 'leased' AND r.host = h.id),"
        " h.delay, h.cap, h.last_start, h.blocked_until, p.cap, p.delay, p.state"
        " FROM hosts AS h LEFT JOIN paces AS p ON p.host = h.id WHERE h.key = ?",
        key,
    )
    return None if row is None else _host_state(row, options, now)


def _host_state(row: Any, options: FrontierOptions, now: float) -> HostState:
    key, waiting, leased, delay, cap, last_start, blocked_until, pace_cap, pace_delay, pace_state = row
    wanted = options.delay if delay is None else delay
    if pace_delay is not None and options.ceiling is not None:
        wanted = max(wanted, pace_delay)
    return HostState(
        key,
        waiting,
        leased,
        delay,
        cap,
        due_in=max(0.0, max(last_start + wanted, blocked_until) - now),
        blocked_for=max(0.0, blocked_until - now),
        pace=None if pace_cap is None else (pace_cap, pace_delay),
        pace_state=pace_state or b"",
    )


def explain(database: Database, host: str, fingerprint: int, most: int | None, now: float) -> Whereabouts:
    """Looks through the host's requests: fingerprints alone are not indexed, which saves disk on each URL.

    host: the politeness key. most: the budget of a host."""
    if database.row("SELECT 1 FROM seen WHERE fingerprint = ?", fingerprint) is None:
        taken = database.row("SELECT count FROM taken WHERE host = ?", host)
        return rules.not_seen(host, taken[0] if taken else 0, most)
    found = database.row(
        "SELECT r.id, r.state, r.request, r.deliveries, r.due, r.worker, r.expires, r.cause, r.error, r.at,"
        " h.id, h.blocked_until, h.key"
        " FROM requests AS r JOIN hosts AS h ON h.id = r.host WHERE r.fingerprint = ?",
        fingerprint,
    )
    if found is None:
        alias = database.row("SELECT 1 FROM aliases WHERE fingerprint = ?", fingerprint)
        return rules.DONE if alias is None else rules.ALIAS
    request, key = _request.decode(found[2]), found[12]
    return rules.on_the_way(_described(database, found, request, now), request, key)


def _described(database: Database, found: Any, request: Request, now: float) -> Whereabouts:
    id, state, _, deliveries, due, worker, expires, cause, error, at, host_id, blocked_until, key = found
    if state == "waiting":
        priority = rules.priority_of(request)
        (ahead,) = database.row(
            "SELECT count(*) FROM requests WHERE state = 'waiting' AND host = ?1"
            " AND (priority > ?2 OR priority = ?2 AND id < ?3)",
            host_id,
            priority,
            id,
        )
        return rules.describe_waiting(ahead, key, priority, blocked_until, now)
    if state == "delayed":
        return rules.describe_delayed(due, request.retry_count, cause)
    if state == "leased":
        return rules.describe_leased(worker, expires, deliveries)
    return rules.describe_dead(cause, error, deliveries, at)
