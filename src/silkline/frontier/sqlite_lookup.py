"""What can be asked of a job in a file without joining it. Synchronous: for commands before a crawl."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import sqlite_notes, sqlite_reads
from silkline.frontier.liveness import remove_locks
from silkline.frontier.sqlite_file import Database, open_reader, primary_code, refuse_foreign_file

T = TypeVar("T")


def outputs_in(path: Path) -> frozenset[str]:
    """The names of the sinks that have a committed position; none where the file is too damaged to tell.

    Raises JobError for a file that is no frontier.
    """
    return frozenset(_if_legible(positions_in, path))


def facts_in(path: Path) -> Mapping[str, str]:
    """What `Frontier.remember` keeps about the job; nothing where the file is too damaged to tell.

    Raises JobError for a file that is no frontier.
    """
    return _if_legible(lambda path: _looked_up(path, sqlite_notes.facts) or {}, path)


def positions_in(path: Path) -> dict[str, str]:
    """The committed position of each sink, by its name, as the sink wrote it.

    Raises JobError for a file that is no frontier, FrontierError for a damaged one.
    """
    return dict(_looked_up(path, sqlite_reads.positions) or {})


def options_in(path: Path) -> FrontierOptions | None:
    """The job that is kept there, with the limits that were applied last; the rest are defaults.

    Raises JobError for a file that is no frontier, FrontierError for a damaged one.
    """
    row = _looked_up(path, _limits)
    if row is None:
        return None
    return FrontierOptions(
        job=row[0], per_host=row[1], delay=row[2], ceiling=row[3], politeness_by=row[4] or "host"
    )


def _limits(database: Database) -> Any:
    """A file that no worker has opened since it was made by an older version has not all of it yet."""
    (version,) = database.row("PRAGMA user_version")
    ceiling = "ceiling" if version >= 6 else "10000"
    by = "SELECT value FROM begun_with WHERE name = 'politeness_by'" if version >= 4 else "NULL"
    return database.row(f"SELECT job, per_host, delay, {ceiling}, ({by}) FROM meta")


def remove(path: Path, job: str | None = None) -> None:
    """Remove the file. job: the name that its job must have; None for any.

    Raises JobError for a file that is no frontier, that is another job's, or that a running crawl uses.
    """
    if path.exists():
        refuse_foreign_file(path)
        if job is not None:
            _refuse_other_job(path, job)
    remove_locks(path)
    try:
        # The log first: without its file it means nothing, and a new file must not find it.
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot remove {path}: {error.strerror}; check its permissions") from error


def _refuse_other_job(path: Path, job: str) -> None:
    try:
        kept = options_in(path)
    except FrontierError:
        return  # too damaged to tell: starting over is what helps
    if kept is not None and kept.job != job:
        raise JobError(
            f"{path} belongs to the job {kept.job!r}, not {job!r}, and will not be removed: "
            "give that name with --job, or choose another file with --frontier"
        )


def _if_legible(look: Callable[[Path], Mapping[str, str]], path: Path) -> Mapping[str, str]:
    try:
        return look(path)
    except FrontierError as error:
        if primary_code(error.__cause__) == sqlite3.SQLITE_CORRUPT:
            return {}
        raise


def _looked_up(path: Path, look: Callable[[Database], T]) -> T | None:
    """None for a file that does not exist, and for one that holds no job yet. Changes nothing."""
    if not path.exists():
        return None
    refuse_foreign_file(path)
    database = open_reader(path)
    try:
        return look(database) if database.row("PRAGMA user_version") != (0,) else None
    finally:
        database.close()
