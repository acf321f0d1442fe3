"""What decides how fast hosts are asked in an SQLite file, and by whom: paces, shared keys, hunger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import msgspec

from silkline.frontier.rules import HUNGER
from silkline.frontier.sqlite_file import Database
from silkline.protocols import Decide


def decide_paces(database: Database, hosts: Sequence[str], decide: Decide, now: float) -> list[str]:
    """Inside a transaction. Returns the hosts whose queues are to be settled anew."""
    changed = []
    for host in dict.fromkeys(hosts):
        known = database.row(
            "SELECT p.state FROM hosts AS h JOIN paces AS p ON p.host = h.id WHERE h.key = ?", host
        )
        paced = decide(host, None if known is None else known[0], now)
        if paced is None:
            continue
        block(database, host, now + paced.block if paced.block > 0 else -inf)
        database.run(
            "INSERT OR REPLACE INTO paces (host, cap, delay, state) "
            "SELECT id, ?, ?, ? FROM hosts WHERE key = ?",
            paced.cap,
            paced.delay,
            paced.state,
            host,
        )
        changed.append(host)
    return changed


def block(database: Database, host: str, until: float) -> None:
    database.run(
        "INSERT INTO hosts (key, blocked_until) VALUES (?, ?) ON CONFLICT DO UPDATE "
        "SET blocked_until = max(blocked_until, excluded.blocked_until)",
        host,
        until,
    )


def limit(database: Database, host: str, delay: float | None, cap: int | None, *, only_raise: bool) -> None:
    """only_raise: a longer delay stays."""
    wanted = "max(coalesce(delay, 0.0), excluded.delay)" if only_raise else "excluded.delay"
    database.run(
        "INSERT INTO hosts (key, delay, cap) VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
        f"SET delay = coalesce({wanted}, delay), cap = coalesce(excluded.cap, cap)",
        host,
        delay,
        cap,
    )


def decide_groups(database: Database, proposals: Mapping[str, str]) -> dict[str, str]:
    """See `groups.Decided`. Not synced by itself: what is enqueued by it comes later in the log."""
    asked = msgspec.json.encode(proposals).decode()
    with database.unsynced(), database.transaction():
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
