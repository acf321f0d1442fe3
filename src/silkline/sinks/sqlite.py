"""An SQLite table: one row per item, one column per field."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from silkline.errors import SinkError
from silkline.outcome import Item
from silkline.sinks.columns import KEY, MORE, Naming, column_for
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import creating, foreign, name_of, prepare, starting, told
from silkline.sinks.record import json_of

NOTHING = "0"
"""The position of a table without rows."""

BUSY_SECONDS = 10.0
MAX_COLUMNS = 1_000
MAX_NAME = 200
KEYS = ("_id", "_fingerprint", "_index")
INTERNAL = (*KEYS, KEY, MORE)
TYPES: dict[type, str] = {int: "INTEGER", bool: "INTEGER", float: "REAL", str: "TEXT"}

NESTED = frozenset({list, dict})


class SqliteSink:
    """Items as rows of one table, made and widened as they need it.

    Rows are numbered (`_id`) in the order of their commits and the position is the last number that counts:
    rows behind it belong to a commit that never happened, and the next write deletes them. A page's
    rows are replaced as a whole, by its fingerprint, but where it is visited again for its dead items: then
    the others stay. (`_fingerprint`, `_index`) is unique.

    An item with a key of its own takes the place of the row that has its `_key`. That row goes with the next
    write, when the commit of its successor is certain: until then there may be both.

    A column is declared INTEGER, REAL or TEXT after the first value that is not None, and SQLite's column
    affinity applies to what comes later. Booleans are 0 and 1, nested values JSON text, integers beyond 64
    bits text, NaN and infinities NULL. A field whose name SQLite would take for another column's (it
    ignores the case of a-z) gets a checksum behind its name. Beyond 1,000 columns, and for names over 200
    characters, fields go into the column `_more`, as JSON.

    In the frontier's own file (see `share`) the rows are part of its transaction: what is not committed was
    never there.
    """

    def __init__(self, path: str | os.PathLike[str], table: str = "items") -> None:
        self.name = name_of(path) if table == "items" else f"{name_of(path)}#{table}"
        self._shown = os.fspath(path)
        self._path = os.path.realpath(path)
        self._plain = table
        self._table = quoted(table)
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._columns: dict[str, str | None] = {}
        self._replaced: set[str] | None = None
        """Keys that may have more than one row; None where any may."""
        self._lent: Callable[[], sqlite3.Connection] | None = None

    def is_in(self, path: str | os.PathLike[str]) -> bool:
        """Whether the table is in that file."""
        return self._path == os.path.realpath(path)

    def share(self, lent: Callable[[], sqlite3.Connection]) -> None:
        """Write in the transactions of the file's owner, who gives the connection while one is open."""
        self._lent = lent

    def open(self, position: str | None) -> None:
        if self._lent is not None:
            with starting(), self._told():
                if position is None and table_exists(self._lent(), self._plain):
                    raise SinkError(f"{self._shown} has a table {self._plain} already: choose another name")
                self._replace((), int(position or NOTHING))
            return
        with starting(), self._told():
            prepare(self._path, self._shown)
            size = os.path.getsize(self._path) if os.path.exists(self._path) else 0
            if not size and position not in (None, NOTHING):
                raise FileNotFoundError(self._path)
            if not size:  # of a database, closing a descriptor would end the locks that SQLite holds on it
                with creating(self._shown):
                    os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
            if size and position is None:
                raise SinkError(foreign(self._shown))
            self.write((), position)

    def encode(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """The item as it is, but for nested values. Integers beyond 64 bits are rare enough to be met only
        when they are written."""
        if NESTED.isdisjoint(map(type, item.values())):
            return item
        return {
            name: json_of(value).decode() if type(value) in NESTED else value for name, value in item.items()
        }

    def write(self, items: Sequence[Item], position: str | None) -> str:
        with self._told():
            if items or os.path.getsize(self._path):
                return self._replace(items, int(position or NOTHING))
        return NOTHING  # the database is made by the first item: until then an empty file is nobody's

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        self._replaced = None
        with self._told():
            return self._replace((), int(position or NOTHING))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._file = os.stat(self._path)
            # Used in the frontier's thread, closed in another one, never in two at once.
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
            self._connection.execute("PRAGMA synchronous = FULL")
        return self._connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self._lent is not None:
            self._columns = {}  # the transaction in which some were added may have been rolled back
            yield self._lent()
            return
        db = self._connected()
        if self._file is None or not os.path.samestat(os.stat(self._path), self._file):
            raise SinkError(
                f"{self._shown} was replaced by another file while the crawl was writing it: "
                "put the original back and run the same command again, or start over with --fresh"
            )
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            self._columns = {}  # columns added in here are gone again
            self._replaced = None
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _replace(self, items: Sequence[Item], committed: int) -> str:
        with self._transaction() as db:
            if not committed:
                db.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} (_id INTEGER PRIMARY KEY, "
                    "_fingerprint INTEGER NOT NULL, _index INTEGER NOT NULL, "
                    "UNIQUE (_fingerprint, _index))"
                )
            db.execute(f"DELETE FROM {self._table} WHERE _id > ?", (committed,))
            self._drop_replaced(db)
            self._insert(db, items, committed + 1)
            if items:
                reach("mid-write")
        if items:
            reach("after-write")
        self._replaced = {item.key for item in items if item.key is not None}
        return str(committed + len(items))

    def _drop_replaced(self, db: sqlite3.Connection) -> None:
        """Remove the rows that have a successor by now. Those of other processes' items go when these write
        again, or at the end."""
        if self._replaced == set() or KEY not in self._present(db):
            return
        rule = f"{KEY} IS NOT NULL" if self._replaced is None else f"{KEY} = ?"
        db.executemany(
            f"DELETE FROM {self._table} WHERE {rule} AND _id < "
            f"(SELECT max(_id) FROM {self._table} AS later WHERE later.{KEY} = {self._table}.{KEY})",
            [()] if self._replaced is None else [(key,) for key in self._replaced],
        )

    def _insert(self, db: sqlite3.Connection, items: Sequence[Item], first_id: int) -> None:
        self._drop_pages(db, {item.fingerprint for item in items if not item.missed})
        self._drop_rows(db, [item for item in items if item.missed])
        last = {item.key: number for number, item in enumerate(items, first_id)}
        numbered = [
            (number, item)
            for number, item in enumerate(items, first_id)
            if item.key is None or last[item.key] == number
        ]
        internal, name = self._keys_for(db, items), self.name
        keyed = KEY in internal
        for fields, group in itertools.groupby(numbered, key=lambda row: tuple(row[1].data[name])):
            rows = [
                (number, item.fingerprint, item.index, item.key, *item.data[name].values())
                if keyed
                else (number, item.fingerprint, item.index, *item.data[name].values())
                for number, item in group
            ]
            self._add_columns(db, fields, rows, len(internal))
            columns, rows = self._placed(fields, rows, len(internal))
            names = ", ".join((*internal, *map(quoted, columns)))
            marks = ", ".join("?" * (len(internal) + len(columns)))
            insert = f"INSERT INTO {self._table} ({names}) VALUES ({marks})"
            try:
                db.executemany(insert, rows)
            except OverflowError:
                db.execute(f"DELETE FROM {self._table} WHERE _id >= ?", rows[0][:1])
                db.executemany(insert, [tuple(map(_bound, row)) for row in rows])

    def _drop_pages(self, db: sqlite3.Connection, pages: Iterable[int]) -> None:
        """One statement for all: mostly there is nothing to remove, and only looking counts."""
        db.execute(
            f"DELETE FROM {self._table} WHERE _id IN (SELECT found._id FROM json_each(?) AS page "
            f"CROSS JOIN {self._table} AS found ON found._fingerprint = page.value)",
            (f"[{','.join(map(str, pages))}]",),
        )

    def _drop_rows(self, db: sqlite3.Connection, items: Iterable[Item]) -> None:
        db.executemany(
            f"DELETE FROM {self._table} WHERE _fingerprint = ? AND _index = ?",
            [(item.fingerprint, item.index) for item in items],
        )

    def _keys_for(self, db: sqlite3.Connection, items: Sequence[Item]) -> Sequence[str]:
        """The internal columns of these items: `_key` is made by the first one that has a key."""
        if all(item.key is None for item in items):
            return KEYS
        if KEY not in self._present(db):
            db.execute(f"ALTER TABLE {self._table} ADD COLUMN {KEY} TEXT")
        index = quoted(f"{self._plain}_{KEY}")
        db.execute(f"CREATE INDEX IF NOT EXISTS {index} ON {self._table} ({KEY}) WHERE {KEY} IS NOT NULL")
        return (*KEYS, KEY)

    def _present(self, db: sqlite3.Connection) -> list[str]:
        return [row[1] for row in db.execute(f"PRAGMA table_info({self._table})")]

    def _placed(
        self, fields: Sequence[str], rows: list[tuple[Any, ...]], start: int
    ) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """The columns for these fields and the rows fit for them: what has no column goes into `_more`.
        start: of the fields in a row."""
        homes = [
            (place, column) for place, field in enumerate(fields, start) if (column := self._columns[field])
        ]
        if len(homes) == len(fields):
            return [column for _, column in homes], rows
        rest = [(place, field) for place, field in enumerate(fields, start) if not self._columns[field]]
        placed = []
        for row in rows:
            more = json_of({field: row[place] for place, field in rest}).decode()
            placed.append((*row[:start], *(row[place] for place, _ in homes), more))
        return [*(column for _, column in homes), MORE], placed

    def _add_columns(
        self, db: sqlite3.Connection, fields: Sequence[str], rows: Sequence[tuple[Any, ...]], start: int
    ) -> None:
        """Have a column for every field; other processes add some, too, and none is ever dropped."""
        if all(field in self._columns for field in fields):
            return
        present = self._present(db)
        taken = {folded(name): name for name in present} | {folded(name): "" for name in INTERNAL}
        for place, field in enumerate(fields, start):
            if field in self._columns:
                continue
            column = self._columns[field] = column_for(field, taken, NAMING)
            value = next((row[place] for row in rows if row[place] is not None), None)
            kind = _type_of(value)
            if column is None:
                column, kind = MORE, "TEXT"
            if column not in present:
                db.execute(f"ALTER TABLE {self._table} ADD COLUMN {quoted(column)} {kind}")
                present.append(column)
                taken.setdefault(folded(column), column)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with told(self._shown):
                yield
        except sqlite3.Error as error:
            if str(error) in (f"no such table: {self._plain}", f"no such table: main.{self._plain}"):
                raise SinkError(
                    f"{self._shown}: the table {self._plain} is gone, with what was written to it: "
                    "put it back, or start over with --fresh"
                ) from error
            raise SinkError(_line(self._shown, error)) from error
        except UnicodeEncodeError as error:
            raise SinkError(
                f"cannot write {self._shown}: {error}; make items plain first, by silkline.sinks.record"
            ) from error


def holds_only_items(path: str, shown: str) -> bool | None:
    """Whether every table in the database is one that a SqliteSink made; None where it is no sound database.

    Raises SinkError where it cannot be looked at.
    """
    with told(shown):
        os.stat(path)  # SQLite would make a file where there is none
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as db:
            found = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            tables = [name for (name,) in found if not name.startswith("sqlite_")]
            columns = [{row[1] for row in db.execute(f"PRAGMA table_info({quoted(t)})")} for t in tables]
    except sqlite3.Error as error:
        if primary_code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return None
        raise SinkError(_line(shown, error)) from error
    return all(names.issuperset(KEYS) for names in columns)


def table_exists(db: sqlite3.Connection, table: str = "items") -> bool:
    row = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return row is not None


def folded(name: str) -> bytes:
    """Names that SQLite holds for the same are equal: ASCII letters without their case."""
    return name.encode().lower()


NAMING = Naming(folded, lambda name: 0 < len(name) <= MAX_NAME and "\0" not in name, MAX_COLUMNS)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bound(value: Any) -> Any:
    return str(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


def _type_of(value: Any) -> str:
    return TYPES.get(type(_bound(value)), "")


def primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _line(shown: str, error: sqlite3.Error) -> str:
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return f"disk full while writing {shown}; nothing is lost, free space and run the same command again"
    if code == sqlite3.SQLITE_NOTADB:
        return f"{shown} is not an SQLite database: choose another name, or start over with --fresh"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"{shown} is locked by another program: end that and run the same command again"
    return f"cannot write {shown}: {error}; nothing is lost, mend it and run the same command again"
