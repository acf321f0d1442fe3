"""What the contract suite knows of a sink: how it is made, and another way to what it has written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, ClassVar, Protocol

from silkline.outcome import Item
from silkline.protocols import KeyedSink
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.record import fields_of

_numbers = count(1)
Row = dict[str, Any]


class Restartable(Protocol):
    def start(self) -> Any: ...

    def stop(self, *, kill: bool = False) -> None:
        """End the server; what it has confirmed is there when it is started again."""


class Target:
    """One table, collection or stream of a real server; `__init__` skips the test where there is no server.
    `table` is its own name and nobody else's."""

    kind: ClassVar[str] = ""
    """The scheme of its URL."""
    host = "127.0.0.1"
    port = 0
    columns: ClassVar[bool] = True
    """Whether rows have columns, which are made for them and can be forbidden (--no-create)."""
    refused: ClassVar[Row | None] = None
    """Fields that the server itself refuses; None where it takes everything."""
    tries_again: ClassVar[bool] = False
    """Whether the driver itself sends again what was cut off."""
    values: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    """By field: what is written, and what `rows` gives of it."""
    most: ClassVar[int | None] = None
    """Columns of a table; None for no limit."""

    def __init__(self) -> None:
        self.table = f"silkline_contract_{os.getpid()}_{next(_numbers)}"

    def url(self, *, port: int | None = None, **options: str) -> str:
        """port: another way to the server. options: of the sink, as `timeout`."""
        raise NotImplementedError

    def wrong_urls(self) -> Mapping[str, str]:
        """URLs that no waiting mends, with a part of what the message says; the password is `s3cret`."""
        return {}

    def rows(self) -> list[Row]:
        """What is there, sorted by `_key`; not by way of the sink. Nothing where there is no table yet."""
        raise NotImplementedError

    def names(self) -> Sequence[str]:
        """The names of all tables (collections, streams) of the database."""
        raise NotImplementedError

    def run(self, statement: str) -> None:
        """A statement in the server's own language."""
        raise NotImplementedError

    def drop(self) -> None:
        """Remove the table, if there is one."""
        raise NotImplementedError

    @classmethod
    def on_its_own_server(cls) -> AbstractContextManager[tuple[Restartable, Target]]:
        """A server that may be stopped and started again, and a target on it. Only where there is one."""
        raise NotImplementedError

    def sink(self, *, create: bool = True, port: int | None = None, **options: str) -> KeyedSink:
        return self.sink_for(self.url(port=port, **options), create=create)

    def sink_for(self, url: str, *, create: bool = True) -> KeyedSink:
        return keyed_sink_for(url, create=create)


def item(sink: KeyedSink, fields: Any, *, page: int = 1, index: int = 0, key: str | None = None) -> Item:
    ready = fields_of(fields)
    return Item(page, index, {sink.name: sink.encode(ready)}, key, fields=fields, size=100)


def own(row: Row) -> Row:
    """The fields of the user's that have a value."""
    return {name: value for name, value in row.items() if name[0] != "_" and value is not None}
