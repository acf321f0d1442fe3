"""What decides how fast hosts are asked in an SQLite file, and by whom: limits, paces, shared keys, hunger.

Synchronous; the transaction is the caller's to open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import msgspec

from silkline.config import FrontierOptions
from silkline.frontier.rules import HUNGER
from silkline.frontier.sqlite_file import Database
from silkline.protocols import Decide


def block_host(database: Database, host: str, seconds: float, now: float) -> None:
    _block(database, host, now + seconds)
    _settle(database, host, now)


def limit_host(
    database: Database, host: str, delay: float | None, cap: int | None, now: float, *, only_raise: bool
) -> None:
    """only_raise: a longer delay stays."""
    wanted = "max(coalesce(delay, 0.0), excluded.delay)" if only_raise else "excluded.delay"
    database.run(
        "INSERT INTO hosts (key, delay, cap) VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
        f"SET delay = coalesce({wanted}, delay), cap = coalesce(excluded.cap, cap)",
        host,
        delay,
        cap,
    )
    _settle_anew(database, host, now)


def pace(database: Database, hosts: Sequence[str], decide: Decide, now: float) -> None:
    for host in dict.fromkeys(hosts):
        known = database.row(
            "SELECT p.state FROM hosts AS h JOIN paces AS p ON p.host = h.id WHERE h.key = ?", host
        )
        paced = decide(host, None if known is None else known[0], now)
        if paced is None:
            continue
        _block(database, host, now + paced.block if paced.block > 0 else -inf)
        database.run(
            "INSERT OR REPLACE INTO paces (host, cap, delay, state) "
            "SELECT id, ?, ?, ? FROM hosts WHERE key = ?",
            paced.cap,
            paced.delay,
            paced.state,
            host,
        )
        _settle_anew(database, host, now)


def settle_by_new_limits(database: Database, options: FrontierOptions, now: float) -> None:
    """Where the queues were last computed with other limits than this worker's, compute them again."""
    if database.row("SELECT per_host, delay, ceiling FROM meta") != _limits(options):
        settle_by(database, options, now)


def settle_by(database: Database, options: FrontierOptions, now: float) -> None:
    """Compute all queues again, by these limits."""
    database.run("UPDATE meta SET per_host = ?, delay = ?, ceiling = ?", *_limits(options))
    database.run("UPDATE queues SET due = 1e999")
    database.run("INSERT INTO touched (host, priority) SELECT host, priority FROM queues")
    database.run("INSERT INTO settle VALUES (?)", now)


def decide_groups(database: Database, proposals: Mapping[str, str]) -> dict[str, str]:
    """See `groups.Decided`. Need not be synced: what is enqueued by it comes later in the log."""
    asked = msgspec.json.encode(proposals).decode()
    database.run(
        "INSERT INTO groups (host, key) SELECT key, value FROM json_each(?) WHERE value <> '' "
        "ON CONFLICT DO NOTHING",
        asked,
    )
    return dict(
        database.rows(
            "SELECT g.host, g.key FROM json_each(?) AS j CROSS JOIN groups AS g ON g.host = j.key", asked
        )
    )


def be_hungry(database: Database, worker: str, now: float) -> None:
    """It got fewer leases than it asked for. Not written anew each time: an idle worker asks often."""
    database.run(
        "INSERT INTO hungry VALUES (?, ?) "
        "ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at > at + ?",
        worker,
        now,
        HUNGER / 3,
    )


def forget_worker(database: Database, worker: str) -> None:
    """What it said of itself."""
    database.run("DELETE FROM workers WHERE id = ?", worker)
    database.run("DELETE FROM hungry WHERE worker = ?", worker)


def _block(database: Database, host: str, until: float) -> None:
    database.run(
        "INSERT INTO hosts (key, blocked_until) VALUES (?, ?) ON CONFLICT DO UPDATE "
        "SET blocked_until = max(blocked_until, excluded.blocked_until)",
        host,
        until,
    )


def _settle_anew(database: Database, host: str, now: float) -> None:
    """Infinite makes `settle` forget what the old limits said."""
    database.run("UPDATE queues SET due = 1e999 WHERE host = (SELECT id FROM hosts WHERE key = ?)", host)
    _settle(database, host, now)


def _settle(database: Database, host: str, now: float) -> None:
    database.run(
        "INSERT INTO touched (host, priority) SELECT q.host, q.priority "
        "FROM hosts AS h JOIN queues AS q ON q.host = h.id WHERE h.key = ?",
        host,
    )
    database.run("INSERT INTO settle VALUES (?)", now)


def _limits(options: FrontierOptions) -> tuple[int, float, int | None]:
    return (options.per_host, options.delay, options.ceiling)
