"""What is in the SQLite frontier of a job."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from silkline.request import Request


def store_of(folder: Path, job: str) -> Path:
    return folder / ".silkline" / f"{job}.db"


def waiting_in(folder: Path, job: str) -> list[Request]:
    """The requests that are not done, those to visit first at the beginning."""
    with closing(sqlite3.connect(f"file:{store_of(folder, job)}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT request FROM requests ORDER BY priority DESC, id")
        return [msgspec.json.decode(text, type=Request) for (text,) in rows]


def count_in(folder: Path, job: str) -> int:
    """How many there are by now; 0 also where there is no store yet."""
    path = store_of(folder, job)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM requests").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
