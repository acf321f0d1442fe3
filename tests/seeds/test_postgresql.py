from __future__ import annotations

import psycopg
import pytest

from silkline.errors import SourceError
from silkline.seeds.query import Query
from tests.seeds.databases import POSTGRESQL, postgresql
from tests.seeds.reading import requests_of


@pytest.fixture(scope="module", autouse=True)
def _server() -> None:
    postgresql()


def test_dates_that_python_has_no_word_for_come_as_the_server_writes_them() -> None:
    sql = """SELECT 'https://a.example/' AS url, 'infinity'::date AS a, '-infinity'::timestamptz AS b,
        '20000-01-01'::date AS c, '0044-03-15 BC'::timestamp AS d, '2030-01-31'::date AS e"""
    [request] = requests_of(Query(POSTGRESQL, sql))
    assert request.extra == {
        "a": "infinity",
        "b": "-infinity",
        "c": "20000-01-01",
        "d": "0044-03-15 00:00:00 BC",
        "e": "2030-01-31",
    }


def test_types_of_postgresql_become_what_json_can_say() -> None:
    sql = """SELECT 'https://a.example/' AS url, '{"k": [1]}'::jsonb AS j, ARRAY[1, 2] AS l,
        '10.0.0.1'::inet AS i, int4range(1, 5) AS r, 'NaN'::numeric AS n, '1 day'::interval AS t"""
    [request] = requests_of(Query(POSTGRESQL, sql))
    assert request.extra == {
        "j": {"k": [1]},
        "l": [1, 2],
        "i": "10.0.0.1",
        "r": "[1, 5)",
        "n": "NaN",
        "t": "P1D",
    }


def test_a_connection_that_is_cut_in_the_middle_may_pass() -> None:
    sql = """SELECT 'https://a.example/' || generate_series(1, 100000) AS url, pg_backend_pid() AS pid,
        current_setting('application_name') AS name"""
    batches = iter(Query(POSTGRESQL, sql))
    [first, *_] = next(batches)
    assert first.extra["name"] == "silkline seed"
    with psycopg.connect(POSTGRESQL, autocommit=True) as other:
        ended = other.execute("SELECT pg_terminate_backend(%s)", [first.extra["pid"]])
        assert ended.fetchall() == [(True,)]
    with pytest.raises(SourceError) as caught:
        list(batches)
    assert "\n" not in str(caught.value)
