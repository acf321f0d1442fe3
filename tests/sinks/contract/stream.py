"""Redis streams, read by the synchronous client: of each key the last entry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import urlencode

from tests import servers
from tests.sinks.contract.target import Row, Target


class RedisStreamTarget(Target):
    kind = "redis+stream"
    columns = False

    @property
    def port(self) -> int:  # type: ignore[override]
        return servers.valkey().port

    values: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        "text": ("Chair", "Chair"),
        "yes": (True, True),
        "whole": (2**64, 2**64),
        "double": (0.1 + 0.2, 0.1 + 0.2),
        "price": (Decimal("9.50"), "9.50"),
        "moment": (datetime(2030, 1, 31, 12, tzinfo=UTC), "2030-01-31T12:00:00Z"),
        "day": (date(2030, 1, 31), "2030-01-31"),
        "data": (b"\x00\xff", "AP8="),
        "dict": ({"a": [1, None]}, {"a": [1, None]}),
        "nothing": (None, None),
    }

    def url(self, *, port: int | None = None, **options: str) -> str:
        return (
            f"redis+stream://127.0.0.1:{port or self.port}/0?{urlencode({'stream': self.table, **options})}"
        )

    def wrong_urls(self) -> Mapping[str, str]:
        return {
            f"redis+stream://me:s3cret@127.0.0.1:{self.port}/0": "refuses the user or the password",
            f"redis+stream://127.0.0.1:{self.port}/shop": "no database's number",
            f"{self.url()}&fancy=1": "there is no option 'fancy'; there are: batch",
            f"{self.url()}&maxlen=x": "maxlen",
        }

    def entries(self) -> list[dict[str, str]]:
        with servers.valkey().client() as client:
            return [fields for _, fields in client.xrange(self.table)]

    def rows(self) -> list[Row]:
        last = {}
        for fields in self.entries():
            head = {"_key": fields["key"], "_fingerprint": int(fields["fingerprint"])}
            head["_index"] = int(fields["index"]) if fields["index"] else None
            row = json.loads(fields["item"])
            clashing = {name: row.pop(name) for name in head if name in row}
            last[fields["key"]] = {**row, **head, **({"_more": clashing} if clashing else {})}
        return [last[key] for key in sorted(last)]

    def names(self) -> Sequence[str]:
        with servers.valkey().client() as client:
            return [str(name) for name in client.keys("*")]

    def run(self, statement: str) -> None:
        with servers.valkey().client() as client:
            client.execute_command(statement)

    def drop(self) -> None:
        with servers.valkey().client() as client:
            for name in client.keys("*"):
                if self.table in name:
                    client.delete(name)
