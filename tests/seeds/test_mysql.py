from __future__ import annotations

import gc
import socket
import time
from contextlib import closing

import pymysql
import pytest

from silkline.errors import ConfigError, SourceError
from silkline.seeds.mysql import fetch, options_from
from silkline.seeds.query import Query
from tests.seeds.databases import MYSQL, Database, mysql
from tests.seeds.reading import requests_of


@pytest.fixture(scope="module")
def server() -> Database:
    return mysql()


def test_the_server_waits_for_a_reader_that_pauses(server: Database) -> None:
    sql = "SELECT 'https://a.example/' AS url, @@session.net_write_timeout AS seconds"
    [request] = requests_of(Query(server.url, sql))
    assert request.extra["seconds"] >= 31_536_000


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_hanging_up_reads_nothing_more_and_says_nothing(server: Database) -> None:
    batches = iter(Query(server.url, server.billion, batch=10))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    del batches
    gc.collect()


def test_a_connection_that_is_cut_in_the_middle_may_pass(server: Database) -> None:
    sql = server.billion.replace(" AS url", " AS url, connection_id() AS id")
    batches = iter(Query(server.url, sql))
    [first, *_] = next(batches)
    with closing(pymysql.connect(**options_from(MYSQL))) as other:
        other.cursor().execute(f"KILL {first.extra['id']}")
    with pytest.raises(SourceError) as caught:
        for _ in batches:
            pass
    assert "\n" not in str(caught.value)


def test_a_wrong_password_is_for_the_user_to_mend_and_is_not_shown(server: Database) -> None:
    with pytest.raises(ConfigError, match="Access denied") as caught:
        requests_of(Query("mysql://root:hush@127.0.0.1/test", "SELECT 1 AS url"))
    assert "hush" not in str(caught.value)


def test_the_parts_of_a_url_are_arguments_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_from("mariadb://m%40e:p%2Fw@db.example:33/shop?ssl_ca=/ca.pem&read_timeout=5")
    assert (options["user"], options["password"], options["host"]) == ("m@e", "p/w", "db.example")
    assert (options["port"], options["database"], options["charset"]) == (33, "shop", "utf8mb4")
    assert (options["ssl_ca"], options["read_timeout"]) == ("/ca.pem", 5)
    monkeypatch.setenv("MYSQL_PWD", "from outside")
    assert options_from("mysql://me@h/d")["password"] == "from outside"
    assert options_from("mysql://me:own@h/d")["password"] == "own"


def test_what_answers_with_silence_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(SourceError, match=str(port)):
            next(fetch(f"mysql://root@127.0.0.1:{port}/test?connect_timeout=1", "SELECT 1", 10))
        assert time.monotonic() - began < 8
