"""From the user's `--frontier` to a frontier."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import sqlite_reads
from silkline.frontier.liveness import remove_locks
from silkline.frontier.memory import MemoryFrontier
from silkline.frontier.sqlite import SqliteFrontier
from silkline.frontier.sqlite_file import Database, open_reader, primary_code, refuse_foreign_file
from silkline.protocols import Frontier

SQLITE = "sqlite:///"
ONLY_ON_A_SERVER = ("partitions", "dedup", "keep_done_urls")

T = TypeVar("T")


def frontier_from(url: str, options: FrontierOptions) -> Frontier:
    """ "memory:", "sqlite:///relative/path" or "sqlite:////absolute/path"; not opened yet.

    Raises ConfigError for anything else, and for options that this frontier does not know.
    """
    check_options(url, options)
    if url == "memory:":
        return MemoryFrontier(options)
    return SqliteFrontier(_path(url), options)


def check_options(url: str, options: FrontierOptions) -> None:
    """Raise ConfigError for a URL that is no frontier, and for options that only a server's knows."""
    store_file(url)
    plain = FrontierOptions()
    for name in ONLY_ON_A_SERVER:
        if getattr(options, name) != getattr(plain, name):
            raise ConfigError(
                f"{name} = {getattr(options, name)} needs a frontier on a server (redis://...), "
                f"not {url}: leave {name} out, or name one with --frontier"
            )


def store_file(url: str) -> Path | None:
    """The file behind the URL, None for memory. Raises ConfigError for a URL that is no frontier."""
    return None if url == "memory:" else _path(url)


def outputs_in(url: str) -> frozenset[str]:
    """The names of the sinks that have a committed position in the store: what the job may call its own.

    Empty for memory, for a file that does not exist, and for one too damaged to tell. Changes nothing.

    Raises JobError for a file that is no frontier.
    """
    try:
        return frozenset(_looked_up(url, sqlite_reads.positions) or ())
    except FrontierError as error:
        if primary_code(error.__cause__) == sqlite3.SQLITE_CORRUPT:
            return frozenset()
        raise


def options_in(url: str) -> FrontierOptions | None:
    """The job that is kept there, with the limits that it was opened with last; the rest are defaults.

    None for memory, for a file that does not exist, and for one that holds no job yet. Changes nothing.

    Raises JobError for a file that is no frontier, FrontierError for a damaged one.
    """
    row = _looked_up(url, lambda database: database.row("SELECT job, per_host, delay FROM meta"))
    return None if row is None else FrontierOptions(job=row[0], per_host=row[1], delay=row[2])


def _looked_up(url: str, look: Callable[[Database], T]) -> T | None:
    path = store_file(url)
    if path is None or not path.exists():
        return None
    refuse_foreign_file(path)
    database = open_reader(path)
    try:
        return look(database) if database.row("PRAGMA user_version") != (0,) else None
    finally:
        database.close()


def remove_store(url: str, job: str | None = None) -> None:
    """Forget the job that is kept there: what `--fresh` does. Nothing there is fine.

    job: the name it must have; None for any.

    Raises JobError for a file that is no frontier, that is another job's, or that a running crawl uses.
    """
    path = store_file(url)
    if path is None:
        return
    if path.exists():
        refuse_foreign_file(path)
        if job is not None:
            _refuse_other_job(url, job)
    remove_locks(path)
    try:
        # The log first: without its file it means nothing, and a new file must not find it.
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot remove {path}: {error.strerror}; check its permissions") from error


def _refuse_other_job(url: str, job: str) -> None:
    try:
        kept = options_in(url)
    except FrontierError:
        return  # too damaged to tell: starting over is what helps
    if kept is not None and kept.job != job:
        raise JobError(
            f"{store_file(url)} belongs to the job {kept.job!r}, not {job!r}, and will not be removed: "
            "give that name with --job, or choose another file with --frontier"
        )


def _path(url: str) -> Path:
    path = url.removeprefix(SQLITE)
    if path == url or not path or path.endswith("/"):
        raise ConfigError(
            f"{url!r} is no frontier: write memory:, or sqlite:///path/to/file.db "
            "(with four slashes for an absolute path)"
        )
    return Path(path)
