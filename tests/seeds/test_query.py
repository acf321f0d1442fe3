"""The same promises on every kind of database, with the real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from silkline.errors import ConfigError, SourceError
from silkline.request import Request
from silkline.seeds import Seeds
from silkline.seeds.query import Query
from tests.seeds.databases import ROWS, TABLE, Database
from tests.seeds.reading import requests_of


def test_rows_are_requests_and_a_bad_one_is_refused_alone(database: Database) -> None:
    query = Query(database.url, f"SELECT * FROM {TABLE} ORDER BY id")
    first, second = requests_of(query)
    assert first == Request(
        "https://shop.example/p/1",
        priority=5,
        extra={"id": 1, "price": "9.50", "image": "AP8=", "day": "2030-01-31"},
    )
    assert second == Request(
        "https://shop.example/p/2", extra={"id": 2, "price": None, "image": None, "day": None}
    )
    assert query.invalid == 1
    assert query.reasons == ("row 3: 'shop.example/p/3' has no scheme; write https://shop.example/p/3",)


def test_rows_are_numbered_and_counted_over_all_batches(database: Database) -> None:
    query = Query(database.url, f"SELECT url FROM {TABLE} ORDER BY id", batch=1)
    assert [len(batch) for batch in query] == [1, 1]
    assert query.reasons[0].startswith("row 3: ")


def test_a_query_is_a_seed_among_others(database: Database) -> None:
    seeds = Seeds("https://a.example/", Query(database.url, f"SELECT url FROM {TABLE}"), ["nope"])
    assert len(requests_of(seeds)) == len(ROWS)
    assert seeds.invalid == 2


def test_an_answer_of_a_billion_rows_is_read_as_far_as_it_is_wanted(database: Database) -> None:
    """That the first rows come at all shows that neither side keeps the whole answer."""
    batches = iter(Query(database.url, database.billion, batch=100))
    assert [len(next(batches)) for _ in range(3)] == [100, 100, 100]
    batches.close()  # type: ignore[attr-defined]
    if database.kind == "sqlite":
        return
    sessions = {
        "postgresql": "SELECT 'https://a.example/' || pid AS url FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND query LIKE '%generate_series(1, 1000000000)%'",
        "mysql": "SELECT concat('https://a.example/', id) AS url FROM information_schema.processlist"
        " WHERE info LIKE '%uuid()%' AND id <> connection_id()",
    }
    for _ in range(500):
        if not requests_of(Query(database.url, sessions[database.kind])):
            return
    pytest.fail("the server still works on the query")


def test_an_empty_answer_is_no_error(database: Database) -> None:
    assert requests_of(Query(database.url, f"SELECT * FROM {TABLE} WHERE id > 9")) == []


def test_percent_signs_and_a_semicolon_are_left_to_the_database(database: Database) -> None:
    query = Query(database.url, f"SELECT url FROM {TABLE} WHERE url LIKE '%/p/1';")
    assert len(requests_of(query)) == 1


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT url AS link FROM {table}", "the query gives no column url, only link"),
        ("SELECT url AS link FROM {table} WHERE id > 9", "the query gives no column url, only link"),
        ("SELECT url FROM {table} WHERE id = 3", "the query gives no valid URL; row 1: "),
        ("SELECT nothing FROM {table}", "nothing"),
        ("SELEC 1", "SELEC"),
        ("DELETE FROM {table}", ""),
        ("CREATE TABLE {table}_2 (id integer)", ""),
    ],
)
def test_what_the_user_has_to_mend_is_one_line(database: Database, sql: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        requests_of(Query(database.url, sql.format(table=TABLE)))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(requests_of(Query(database.url, f"SELECT url FROM {TABLE}"))) == 2, "nothing was changed"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "mysql", "mariadb"])
def test_a_server_that_is_away_may_be_there_the_next_time(scheme: str) -> None:
    with pytest.raises(SourceError) as caught:
        requests_of(Query(f"{scheme}://me:hush@127.0.0.1:1/shop", "SELECT 1 AS url"))
    assert "refused" in str(caught.value)
    assert f"{scheme}://me:***@127.0.0.1:1/shop" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush%zz@127.0.0.1/shop",
        "postgresql://me:hu sh@127.0.0.1/shop",
        "postgresql://me:hush@127.0.0.1:port/shop",
        "postgresql://127.0.0.1/shop?password=hush&colour=red",
        "mysql://me:hush@127.0.0.1:port/shop",
        "mysql://me:hush@127.0.0.1/shop?colour=red",
        "mysql://me:hush@127.0.0.1/shop?connect_timeout=soon",
        "mysql://me:hush@127.0.0.1/shop?ssl_ca=/nowhere.pem",
        "oracle://me:hush@127.0.0.1/shop",
        "sqlite://me:hush@shop.db",
    ],
)
def test_a_url_that_is_wrong_is_one_line_without_its_password(url: str) -> None:
    with pytest.raises((ConfigError, SourceError)) as caught:
        requests_of(Query(url, "SELECT 1 AS url"))
    assert "hu" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.db: no such file"):
        requests_of(Query(f"sqlite:///{tmp_path}/gone.db", "SELECT 1 AS url"))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_text("no database " * 100)
    with pytest.raises(ConfigError, match="not a database"):
        requests_of(Query(f"sqlite:///{tmp_path}/shop.db", "SELECT url FROM products"))


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("postgresql://h/d", "psycopg", "silkline[postgresql]"),
        ("mysql://h/d", "pymysql", "silkline[mysql]"),
    ],
)
def test_a_driver_that_is_missing_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, url: str, driver: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == driver]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"silkline.seeds.{url.partition(':')[0]}", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Without(driver), *sys.meta_path])
    with pytest.raises(ConfigError, match=f"needs the driver {driver}: pip install") as caught:
        Query(url, "SELECT 1")
    assert extra in str(caught.value)


class _Without:
    """As if a package were not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
