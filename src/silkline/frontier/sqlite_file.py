"""The frontier's file: opening and checking it, what its errors mean to the user, removing it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.files import make_private
from silkline.frontier.rules import other_grouping, other_keys
from silkline.keys import KeyRules, agreed, expanded
from silkline.values import PolitenessBy

T = TypeVar("T")

APPLICATION_ID = 0x51_1C_11_4E
SCHEMA_VERSION = 7
OLDEST_SQLITE = (3, 38, 0)
BUSY_SECONDS = 30.0
"""How long a verb waits for the other processes that share the file."""

VERBS = ("settle", "sweep", "add", "lease", "commit", "release", "resend")

_HINTS = {
    sqlite3.SQLITE_FULL: "free some space on the disk and run the same command again",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked; end it and run the same command again",
    sqlite3.SQLITE_CORRUPT: "restore the file from a copy, or start over with --fresh",
    sqlite3.SQLITE_IOERR: "check the disk and run the same command again",
}


class Database:
    """One connection to the file. Its errors are FrontierError, and then nothing of the call happened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Only one thread at a time uses it, but not always the same one.
        self._connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )

    def run(self, sql: str, *values: Any) -> int:
        """Execute one statement; how many rows it changed."""
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise self._named(error) from error

    def rows(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._named(error) from error

    def row(self, sql: str, *values: Any) -> Any:
        """The first row, or None."""
        return next(iter(self.rows(sql, *values)), None)

    def script(self, name: str) -> None:
        """Run a packaged file of statements, in the transaction that is open."""
        statement = ""
        for line in resources.files("silkline.frontier").joinpath(name).read_text("utf-8").splitlines(True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.run(statement)
                statement = ""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, under the write lock from the start."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # After some errors, a full disk for one, SQLite has rolled back itself.
            if self._connection.in_transaction:
                with contextlib.suppress(FrontierError):  # the first error says more
                    self.run("ROLLBACK")
            raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment."""
        self.run("BEGIN")
        try:
            yield
        finally:
            self.run("ROLLBACK")

    @contextlib.contextmanager
    def unsynced(self) -> Iterator[None]:
        """Do not wait for the disk: a power cut may undo what changes here, and does it no harm.

        For leases, which no worker survives a power cut to use. The next commit syncs these changes too.
        """
        self.run("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self.run("PRAGMA synchronous = FULL")

    def lent(self) -> sqlite3.Connection:
        """The connection, for somebody who writes in a transaction that is open."""
        assert self._connection.in_transaction, "only a transaction is shared"
        return self._connection

    def close(self) -> None:
        self._connection.close()

    def _named(self, error: sqlite3.Error) -> FrontierError:
        hint = _HINTS.get(primary_code(error), "nothing committed is lost; run the same command again")
        return FrontierError(f"the frontier {self.path} failed: {error}; {hint}")


class Run(Protocol):
    """Runs a step on a connection, in the thread that this is for."""

    async def __call__(self, step: Callable[[Database], T], /) -> T: ...


def open_writer(path: Path, options: FrontierOptions) -> Database:
    """Open the job's file, and create it if need be. Raises ConfigError, JobError or FrontierError."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigError(
            f"SQLite {sqlite3.sqlite_version} is too old for the frontier: "
            f"use a Python that has {oldest} or newer"
        )
    with _opening(path):
        make_private(path)  # SQLite gives its other files the same permissions
        database = Database(path)
        try:
            _refuse_foreign(database)
            _configure(database)
            with database.transaction():
                _create_or_migrate(database, options)
                _refuse_other_job(database, options.job)
                _refuse_other_keys(database, options)
                _refuse_other_grouping(database, options)
            for verb in VERBS:
                database.script(f"verbs/{verb}.sql")
        except BaseException:
            database.close()
            raise
        return database


def open_reader(path: Path) -> Database:
    with _opening(path):
        database = Database(path)
        database.run("PRAGMA query_only = ON")
        return database


def refuse_foreign_file(path: Path) -> None:
    """Raise JobError unless the file is a frontier that this version can read, or empty."""
    with _opening(path):
        database = Database(path)
        try:
            _refuse_foreign(database)
        except FrontierError as error:
            # Even its schema may be damaged; the first bytes still tell whose it is.
            if primary_code(error.__cause__) != sqlite3.SQLITE_CORRUPT or not _is_marked(path):
                raise
        finally:
            database.close()


def _is_marked(path: Path) -> bool:
    """Whether the header has our application_id (SQLite's file format, section 1.3.19)."""
    with path.open("rb") as file:
        return file.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")


def _refuse_foreign(database: Database) -> None:
    """Raise JobError unless it is a frontier that this version can read, or empty. Changes nothing."""
    # One statement, so one snapshot: another worker may be creating the schema at this moment.
    try:
        application, version, tables = database.row(
            "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema) "
            "FROM pragma_application_id AS a, pragma_user_version AS v"
        )
    except FrontierError as error:
        if primary_code(error.__cause__) != sqlite3.SQLITE_CORRUPT:
            raise
        # The schema is beyond reading; the header may still tell whose file it is.
        (application,), (version,) = (
            database.row("PRAGMA application_id"),
            database.row("PRAGMA user_version"),
        )
        tables = 1
    if application != APPLICATION_ID and (application or version or tables):
        raise JobError(_foreign(database.path))
    if version > SCHEMA_VERSION:
        raise JobError(
            f"{database.path} was made by a newer silkline (schema {version}, this one knows "
            f"{SCHEMA_VERSION}): upgrade silkline, or choose another file with --frontier"
        )


def _configure(database: Database) -> None:
    database.run("PRAGMA auto_vacuum = NONE")  # where it is on by default, it moves pages in every commit
    _switch_to_wal(database)
    # FULL: a commit is on the disk when it returns, so that not even a power cut brings a done page back.
    database.run("PRAGMA synchronous = FULL")
    database.run("PRAGMA secure_delete = OFF")
    database.run("PRAGMA temp_store = MEMORY")
    database.run("PRAGMA cache_size = -65536")  # KiB
    database.run("PRAGMA wal_autocheckpoint = 4000")  # pages of 4 KiB
    database.run("PRAGMA journal_size_limit = 33554432")  # bytes


def _switch_to_wal(database: Database) -> None:
    # SQLite's own busy timeout does not cover this switch when two processes create the file at once.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            database.run("PRAGMA journal_mode = WAL")
            return
        except FrontierError as error:
            if primary_code(error.__cause__) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _create_or_migrate(database: Database, options: FrontierOptions) -> None:
    (version,) = database.row("PRAGMA user_version")
    if version == SCHEMA_VERSION:
        return
    if version == 0:
        database.script("schema.sql")
        database.run(
            "INSERT INTO meta (job, per_host, delay, ceiling) VALUES (?, ?, ?, ?)",
            options.job,
            options.per_host,
            options.delay,
            options.ceiling,
        )
        database.run("INSERT INTO begun_with VALUES ('ignore_params', ?)", key_rules(options))
        database.run("INSERT INTO begun_with VALUES ('politeness_by', ?)", options.politeness_by or "host")
        database.run(f"PRAGMA application_id = {APPLICATION_ID}")
    else:
        _refuse_other_job(database, options.job)
        for step in range(version + 1, SCHEMA_VERSION + 1):
            database.script(f"migrations/{step}.sql")
    database.run(f"PRAGMA user_version = {SCHEMA_VERSION}")


def key_rules(options: FrontierOptions) -> str:
    return msgspec.json.encode(expanded(options.ignore_params)).decode()


def kept_keys(database: Database) -> KeyRules:
    """A job of an older version has none, and goes on without."""
    row = database.row("SELECT value FROM begun_with WHERE name = 'ignore_params'")
    return KeyRules(() if row is None else msgspec.json.decode(row[0], type=tuple[str, ...]))


def kept_grouping(database: Database) -> PolitenessBy:
    """A job of version 4 or 5 tells hosts apart by themselves."""
    row = database.row("SELECT value FROM begun_with WHERE name = 'politeness_by'")
    return "host" if row is None else row[0]


def _refuse_other_grouping(database: Database, options: FrontierOptions) -> None:
    kept, asked = kept_grouping(database), options.politeness_by
    if asked is not None and asked != kept:
        raise JobError(other_grouping(options.job, kept, asked))


def _refuse_other_keys(database: Database, options: FrontierOptions) -> None:
    kept = kept_keys(database).ignored
    if not agreed(options.ignore_params, kept):
        raise JobError(other_keys(options.job, kept))


def _refuse_other_job(database: Database, job: str) -> None:
    (owner,) = database.row("SELECT job FROM meta")
    if owner != job:
        raise JobError(
            f"{database.path} belongs to the job {owner!r}, not {job!r}: "
            "give that name with --job, or choose another file with --frontier"
        )


@contextlib.contextmanager
def _opening(path: Path) -> Iterator[None]:
    """While opening, most that is wrong with the file is the user's to mend."""
    if path.is_dir():
        raise ConfigError(f"{path} is a directory: name a file for the frontier")
    try:
        yield
    except (sqlite3.Error, FrontierError) as error:
        cause = error if isinstance(error, sqlite3.Error) else error.__cause__
        code = primary_code(cause)
        if code == sqlite3.SQLITE_NOTADB:
            raise JobError(_foreign(path)) from cause
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise ConfigError(
                f"cannot write the frontier {path}: {cause}; check the permissions of file and directory"
            ) from cause
        raise


def _foreign(path: Path) -> str:
    return f"{path} is not a silkline frontier: choose another file with --frontier"


def primary_code(error: BaseException | None) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
