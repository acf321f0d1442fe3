"""What is kept about a job in an SQLite file, beside its requests: facts, live settings, values for a while.

Synchronous; the transaction is the caller's to open.
"""

from __future__ import annotations

from collections.abc import Mapping

from silkline.frontier.rules import SWEEP
from silkline.frontier.sqlite_file import Database
from silkline.outcome import KeptValue


def remember(database: Database, facts: Mapping[str, str]) -> None:
    for fact in facts.items():
        database.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", *fact)


def facts(database: Database) -> Mapping[str, str]:
    return dict(database.rows("SELECT name, value FROM facts"))


def configure(database: Database, changes: Mapping[str, str | None]) -> Mapping[str, str]:
    """Returns all the live settings."""
    for name, text in changes.items():
        if text is None:
            database.run("DELETE FROM live WHERE name = ?", name)
        else:
            database.run("INSERT OR REPLACE INTO live (name, value) VALUES (?, ?)", name, text)
    return live(database)


def live(database: Database) -> Mapping[str, str]:
    return dict(database.rows("SELECT name, value FROM live"))


def keep(database: Database, name: str, value: bytes, seconds: float, now: float) -> None:
    database.run(
        "DELETE FROM kept WHERE name IN (SELECT name FROM kept WHERE until <= ? LIMIT ?)", now, SWEEP
    )
    database.run(
        "INSERT OR REPLACE INTO kept (name, value, until) VALUES (?, ?, ?)", name, value, now + seconds
    )


def kept(database: Database, name: str, now: float) -> KeptValue | None:
    found = database.row("SELECT value, until - ?2 FROM kept WHERE name = ?1 AND until > ?2", name, now)
    return None if found is None else KeptValue(*found)
