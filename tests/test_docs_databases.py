"""docs/databases.md: its snippets run on real servers, and its tables are what the sinks do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from silkline.demo import serve_in_thread
from silkline.errors import ConfigError
from silkline.sinks import (
    clickhouse,
    clickhouse_columns,
    mysql_connection,
    mysql_values,
    postgresql,
    postgresql_columns,
)
from silkline.sinks.choose import SCHEMES, keyed_sinks_for
from silkline.sinks.columns import KEYS, MORE
from silkline.testing import MockFetcher
from tests.documents import blocks, run, section, snippet, text_of
from tests.mongodb.running import any_url, documents_in
from tests.sinks.contract.clickhouse import ClickHouseTarget
from tests.sinks.contract.sql import MysqlTarget, PostgresqlTarget
from tests.sinks.contract.stream import RedisStreamTarget
from tests.sinks.contract.target import Target

DATABASES = "docs/databases.md"
SHOP = "https://shop.example/"
PAGE = "<h1>Chair</h1><p class=sku>7</p><p class=price>9.50</p>"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


TARGETS: dict[str, tuple[str, type[Target]]] = {
    "postgresql": ("postgresql://shop:secret@db.example/shop?table=products", PostgresqlTarget),
    "mysql": ("mysql://shop:secret@db.example/shop?table=products", MysqlTarget),
    "clickhouse": ("clickhouse://shop:secret@db.example:8123/shop?table=products", ClickHouseTarget),
    "stream": ("redis+stream://queue.example:6379/0?stream=products", RedisStreamTarget),
}


@pytest.mark.parametrize("name", TARGETS)
def test_items_arrive_as_shown(name: str) -> None:
    url, kind = TARGETS[name]
    target: Target = kind()
    try:
        names: dict[str, Any] = {}
        run(DATABASES, name, names, {url: target.url()})
        names["crawler"]._fetcher = MockFetcher({SHOP: PAGE})
        names["crawler"].run(SHOP, quiet=True)
        [row] = target.rows()
        assert {n: value for n, value in row.items() if n[0] != "_"} == {
            "sku": "7",
            "name": "Chair",
            "price": 9.5,
        }
        assert {*KEYS} == {n for n in row if n[0] == "_"}
    finally:
        target.drop()


def test_a_sink_of_ones_own_is_two_methods(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    run(DATABASES, "own", names)
    crawler = names["crawler"]
    crawler.handler(lambda page: {"name": page.text("h1")})
    crawler._fetcher = MockFetcher({SHOP: PAGE})
    crawler.run(SHOP, quiet=True)
    [letter] = (tmp_path / "letters").iterdir()
    assert letter.read_text() == "name: Chair"
    assert len(snippet(DATABASES, "own").split("\n\n\n")[1].splitlines()) <= 20


def test_every_block_is_run_by_a_test() -> None:
    assert {block.name for block in blocks(DATABASES) if block.language == "python"} == {*TARGETS, "own"}


def test_every_scheme_and_column_is_named() -> None:
    assert {*re.findall(r"^\| `([\w+]+)://", text_of(DATABASES), re.M)} <= set(SCHEMES)
    assert {module for module, _, _ in SCHEMES.values()} >= {*TARGETS}
    for column in (*KEYS, MORE):
        assert f"| `{column}` |" in section(DATABASES, "Rows")


def test_the_table_of_types_is_the_programs() -> None:
    rows = re.findall(r"^\| `\w+`.* \| `([^`]+)`.* \| `([^`]+)`.* \|$", section(DATABASES, "Columns"), re.M)
    assert sorted(row[0] for row in rows) == sorted(postgresql_columns.TYPES.values())
    assert sorted(row[1] for row in rows) == sorted(mysql_values.TYPES.values())
    most = f"({postgresql_columns.MAX_COLUMNS} in PostgreSQL, {mysql_values.MAX_COLUMNS} in MySQL"
    assert f"beyond {clickhouse_columns.MAX_COLUMNS:,} columns {most}" in text_of(DATABASES)
    digits = mysql_values.DIGITS - mysql_values.PLACES
    assert f"{digits} digits before the point and {mysql_values.PLACES} behind it" in text_of(DATABASES)


@pytest.mark.parametrize(
    ("url", "heading", "options"),
    [
        ("postgresql://h/d", "PostgreSQL", {n for n in postgresql.OPTIONS if not n.startswith("ssl_m")}),
        ("mysql://h/d", "MySQL and MariaDB", mysql_connection.OPTIONS),
    ],
)
def test_every_option_is_named_and_no_other_taken(url: str, heading: str, options: set[str]) -> None:
    for option in options:
        assert re.search(rf"`{option}[`=]", section(DATABASES, heading)), option
    with pytest.raises(ConfigError) as caught:
        keyed_sinks_for([f"{url}?no=1"])
    for option in re.findall(r"^\| `(\w+)` \|", section(DATABASES, "Options"), re.M):
        assert option in str(caught.value)


def test_what_is_said_of_clickhouse_is_so() -> None:
    said = section(DATABASES, "ClickHouse")
    assert {*re.findall(r"`(Nullable\(.*?\))`", said)} == {*clickhouse.TYPES.values()}
    for name in (clickhouse.VERSION, clickhouse.DELETED, *clickhouse.OPTIONS):
        assert f"`{name}" in said
    assert f"batch={clickhouse.USUAL.count}&batch_seconds={clickhouse.USUAL.seconds:.0f}`" in said


def crawl(name: str, folder: Path, **replace: str) -> None:
    """Type a snippet's command, with the demo shop in place of the example's."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with serve_in_thread() as shop:
        code = snippet(DATABASES, name).rstrip().replace("https://shop.example", shop)
        for old, new in replace.items():
            assert old in code
            code = code.replace(old, new)
        done = subprocess.run(
            ["bash", "-euc", f"{code} --allow-private"],
            cwd=folder,
            env={"PATH": path},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr


def test_a_crawl_fills_a_collection_of_mongodb(tmp_path: Path) -> None:
    crawl("mongodb", tmp_path, **{"mongodb://localhost:27017/shop": f"{any_url()}/silkline_test"})
    documents = list(documents_in(any_url(), "products").values())
    assert len(documents) > 10
    assert all(each["name"] and each["price"] and each["_fingerprint"] for each in documents)
