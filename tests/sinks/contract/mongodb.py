"""Collections of MongoDB, read by the driver alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import msgspec
from bson.decimal128 import Decimal128
from pymongo import MongoClient

from silkline.sinks.mongodb_document import DOLLAR, DOT, MAX_DEPTH, NUL
from tests.mongodb.running import DATABASE, MongoServer, any_url, documents_in, drop
from tests.sinks.contract.sql import COMMON
from tests.sinks.contract.target import Row, Target

OWN: Mapping[str, Any] = {
    "huge": Decimal(2**64),
    "moment": datetime(2030, 1, 31, 6, 30, 0, 123_000, UTC),
    "day": date(2030, 1, 31).isoformat(),
    "clock": time(23, 59, 59, 999999).isoformat(),
    "zoned_clock": "01:02:00Z",
    "span": msgspec.to_builtins(timedelta(days=3, microseconds=7)),
}
"""What is kept of some of the common values: text where BSON has no type, and milliseconds."""


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


class MongodbTarget(Target):
    kind = "mongodb"
    columns = False
    refused: ClassVar = {"text": nested(MAX_DEPTH)}
    values: ClassVar = {name: (value, OWN.get(name, expected)) for name, (value, expected) in COMMON.items()}

    def __init__(self, server: str = "") -> None:
        super().__init__()
        self.server = server or any_url()
        address = urlsplit(self.server)
        self.host, self.port = address.hostname or "127.0.0.1", address.port or 27017  # type: ignore[misc]

    def url(self, *, port: int | None = None, **options: str) -> str:
        server = self.server
        if port is not None:
            server = f"mongodb://127.0.0.1:{port}"
            options = {"serverSelectionTimeoutMS": "1000", **options}
        query = urlencode({"collection": self.table, "directConnection": "true", **options})
        return f"{server}/{DATABASE}?{query}"

    def wrong_urls(self) -> Mapping[str, str]:
        place = "mongodb://ann:s3cret@localhost"
        return {
            f"{place}": "name the database",
            f"{place}/shop?fancy=1": "option",
            f"{place}/shop?timeout=soon": "timeout",
            f"{place}/shop?collection=system.users": "can be no collection's name",
        }

    def rows(self) -> list[Row]:
        found = []
        for document in documents_in(self.server, self.table).values():
            row = {plain_name(name): plain(value) for name, value in document.items()}
            found.append({"_key": row.pop("_id"), **row})
        return sorted(found, key=lambda row: row["_key"].encode())

    def names(self) -> Sequence[str]:
        with MongoClient[Row](self.server) as client:
            return client[DATABASE].list_collection_names()

    @classmethod
    @contextmanager
    def on_its_own_server(cls) -> Iterator[tuple[MongoServer, MongodbTarget]]:
        server = MongoServer()
        try:
            server.start()
            yield server, cls(server.url)
        finally:
            server.remove()

    def drop(self) -> None:
        drop(self.server, self.table)


def plain_name(name: str) -> str:
    return name.replace(DOT, ".").replace(DOLLAR, "$").replace(NUL, "\0")


def plain(value: Any) -> Any:
    """With the types that Python has: Int64 is none of them."""
    if isinstance(value, Decimal128):
        return value.to_decimal()
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
