"""ClickHouse servers for tests: the engine behind a small front in a process of its own, or the server that
SILKLINE_TEST_CLICKHOUSE names, as clickhouse://user:password@host:port."""

from __future__ import annotations

import atexit
import importlib.util
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client

from tests.processes import ServerProcess

REAL = os.environ.get("SILKLINE_TEST_CLICKHOUSE", "").rstrip("/")
"""Read before the tests' environment is cleared. Its database `silkline_test` is used."""
DATABASE = "silkline_test"


def needs_engine() -> None:
    """Skip where there is no chdb: it has no wheels for Windows, nor for musl."""
    if importlib.util.find_spec("chdb") is None:
        pytest.skip("chdb-core is not installed (SILKLINE_TEST_CLICKHOUSE names a server instead)")


class ClickHouseServer(ServerProcess):
    kind = "clickhouse"

    def __init__(self, login: Sequence[str] = ()) -> None:
        needs_engine()
        super().__init__(login)

    @property
    def url(self) -> str:
        return f"clickhouse://127.0.0.1:{self.port}"

    def start(self) -> ClickHouseServer:
        process = self.launch()
        deadline = time.monotonic() + 60
        while True:
            try:
                self.ask("ping")
                return self
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.02)

    def ask(self, path: str, **parameters: Any) -> None:
        url = f"http://127.0.0.1:{self.port}/{path}?{urlencode(parameters)}"
        urllib.request.urlopen(url, timeout=10).close()

    def fail(self, code: int, word: str, times: int = 1) -> None:
        """Let the next queries with this word fail with this error."""
        self.ask("fail", code=code, word=word, times=times)


@cache
def shared() -> ClickHouseServer:
    server = ClickHouseServer().start()
    atexit.register(server.remove)
    return server


@cache
def any_url() -> str:
    """Of the real server, if there is one, or of one that all tests share."""
    if not REAL:
        return shared().url
    with client_of(REAL) as client:
        client.command(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    return REAL


def client_of(url: str) -> Client:
    """The driver that waits, for tests to look at what the other one has written."""
    parts = urlsplit(url)
    return clickhouse_connect.get_client(
        host=parts.hostname,
        port=parts.port or 8123,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        tz_mode="aware",
        autogenerate_session_id=False,
    )


def rows_in(url: str, table: str) -> list[dict[str, Any]]:
    """The rows that count, sorted by `_key`, without `_version` and `_deleted`."""
    with client_of(url) as client:
        found = client.query(f"SELECT * FROM {table} FINAL ORDER BY _key")
        rows = [dict(zip(found.column_names, row, strict=True)) for row in found.result_rows]
    return [{n: v for n, v in row.items() if n not in ("_version", "_deleted")} for row in rows]
