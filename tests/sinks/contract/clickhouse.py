"""Tables of ClickHouse, read by the driver that waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import msgspec

from silkline.sinks.clickhouse_columns import MAX_COLUMNS, quoted
from silkline.sinks.columns import MORE
from tests.clickhouse.running import DATABASE, ClickHouseServer, any_url, client_of, rows_in
from tests.sinks.contract.sql import COMMON, loaded
from tests.sinks.contract.target import Row, Target

TEXTS: Mapping[str, str] = {
    "clock": time(23, 59, 59, 999999).isoformat(),
    "zoned_clock": "01:02:00+00:00",
    "span": msgspec.to_builtins(timedelta(days=3, microseconds=7)),
    "data": msgspec.to_builtins(b"\x00\xff'\\"),
}
"""What is kept of common values that have no type there."""


class ClickHouseTarget(Target):
    kind = "clickhouse"
    refused: ClassVar = {"text": "x", "day": date(1815, 12, 10)}
    values: ClassVar = {
        name: (value, TEXTS.get(name, expected)) for name, (value, expected) in COMMON.items()
    }
    most = MAX_COLUMNS
    tries_again = True

    def __init__(self, server: str = "") -> None:
        super().__init__()
        self.server = server or any_url()
        address = urlsplit(self.server)
        self.host, self.port = address.hostname or "127.0.0.1", address.port or 8123  # type: ignore[misc]

    def url(self, *, port: int | None = None, **options: str) -> str:
        address = urlsplit(self.server)
        login = f"{address.netloc.rpartition('@')[0]}@" if "@" in address.netloc else ""
        place = f"{login}{self.host}:{port or self.port}"
        return f"clickhouse://{place}/{DATABASE}?{urlencode({'table': self.table, **options})}"

    def wrong_urls(self) -> Mapping[str, str]:
        place = f"clickhouse://default:s3cret@{self.host}:{self.port}"
        return {
            f"{place}/no_such_database": "",
            f"{place}/{DATABASE}?fancy=1": "there is no option 'fancy'",
            f"{place}/{DATABASE}?timeout=soon": "timeout",
            f"{place}/{DATABASE}?ca_cert=/no/such/file": "/no/such/file",
            "clickhouse://default:s3cret@a,b/shop": "name one server",
        }

    @property
    def quoted(self) -> str:
        return f"{DATABASE}.{quoted(self.table)}"

    def rows(self) -> list[Row]:
        if self.table not in self.names():
            return []
        return [{n: meant(n, v) for n, v in row.items()} for row in rows_in(self.server, self.quoted)]

    def names(self) -> Sequence[str]:
        with client_of(self.server) as client:
            return [name for (name,) in client.query("SELECT name FROM system.tables").result_rows]

    def run(self, statement: str) -> None:
        with client_of(self.server) as client:
            client.command(statement)

    @classmethod
    @contextmanager
    def on_its_own_server(cls) -> Iterator[tuple[ClickHouseServer, ClickHouseTarget]]:
        server = ClickHouseServer()
        try:
            server.start()
            yield server, cls(server.url)
        finally:
            server.remove()

    def drop(self) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.quoted} SYNC")


def meant(name: str, value: Any) -> Any:
    """JSON text as what it says, and a decimal number without the zeros that fill its column."""
    if name in ("list", "dict", MORE):
        return loaded(value)
    return value.normalize() if isinstance(value, Decimal) else value
