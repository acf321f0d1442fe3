from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import uuid
from typing import Any

import msgspec
import pytest

from silkline.errors import ConfigError, TaskError
from silkline.request import Request
from silkline.seeds.rows import RowReader

URL = "https://shop.example/p/1"


def request_of(**row: Any) -> Request:
    return RowReader(tuple(row)).request(tuple(row.values()))


def test_the_columns_of_a_request_are_its_fields_and_the_others_its_extra() -> None:
    request = request_of(
        id=7,
        url=URL,
        label="product",
        priority=5,
        method="post",
        key="p1",
        headers={"a": "1"},
        body=b"\xff",
    )
    assert request == Request(
        URL,
        label="product",
        priority=5,
        method="POST",
        key="p1",
        headers={"a": "1"},
        body=b"\xff",
        extra={"id": 7},
    )


def test_null_is_a_field_that_is_not_given() -> None:
    request = request_of(url=URL, label=None, priority=None, method=None, headers=None, body=None, key=None)
    assert request == Request(URL)
    assert request_of(url=URL, sku=None).extra == {"sku": None}


def test_columns_are_known_in_any_case_and_extra_ones_keep_theirs() -> None:
    assert request_of(URL=URL, Priority=2, Sku=1) == Request(URL, priority=2, extra={"Sku": 1})


@pytest.mark.parametrize("extra", [{"a": 1, "b": 2}, '{"a": 1, "b": 2}'])
def test_an_object_in_the_column_extra_is_taken_apart_and_other_columns_win(extra: object) -> None:
    assert request_of(url=URL, extra=extra, b=3).extra == {"a": 1, "b": 3}


def test_values_become_what_json_can_say() -> None:
    values: dict[str, Any] = {
        "day": datetime.date(2030, 1, 31),
        "at": datetime.datetime(2030, 1, 31, 12, 0, 1, tzinfo=datetime.UTC),
        "price": decimal.Decimal("9.50"),
        "id": uuid.UUID(int=1),
        "image": b"\x00\xff",
        "tags": ["new", decimal.Decimal("1.0")],
        "attributes": {1: {"deep": datetime.date(2030, 1, 1)}},
        "address": ipaddress.ip_address("127.0.0.1"),
        "lasts": datetime.timedelta(hours=1),
        "flag": True,
        "ratio": 0.5,
        "none": None,
    }
    extra = request_of(url=URL, **values).extra
    assert json.loads(msgspec.json.encode(extra)) == extra
    assert extra == {
        "day": "2030-01-31",
        "at": "2030-01-31T12:00:01Z",
        "price": "9.50",
        "id": "00000000-0000-0000-0000-000000000001",
        "image": "AP8=",
        "tags": ["new", "1.0"],
        "attributes": {"1": {"deep": "2030-01-01"}},
        "address": "127.0.0.1",
        "lasts": "PT3600S",
        "flag": True,
        "ratio": 0.5,
        "none": None,
    }


@pytest.mark.parametrize("priority", [5, 5.0, decimal.Decimal("5.00")])
def test_a_whole_number_of_any_type_is_a_priority(priority: object) -> None:
    assert request_of(url=URL, priority=priority).priority == 5


def test_keys_labels_and_bodies_may_be_of_the_types_that_tables_have() -> None:
    assert request_of(url=URL, key=7, label=uuid.UUID(int=1), body="ü") == Request(
        URL, key="7", label="00000000-0000-0000-0000-000000000001", body="ü".encode()
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"url": None}, "url is NULL"),
        ({"url": 5}, "url is no text"),
        ({"url": "shop.example"}, "write https://shop.example"),
        ({"url": URL, "priority": 5_000}, "priority 5000 is outside"),
        ({"url": URL, "priority": decimal.Decimal("0.5")}, "priority"),
        ({"url": URL, "priority": "high"}, "priority"),
        ({"url": URL, "method": "GET /"}, "is not an HTTP method"),
        ({"url": URL, "headers": "X-A: 1"}, "headers holds no JSON object"),
        ({"url": URL, "headers": {"X-A": "1\r\nX-B: 2"}}, "is not an HTTP header"),
        ({"url": URL, "extra": "[1]"}, "extra holds no JSON object"),
    ],
)
def test_a_row_that_is_no_request_says_why_in_one_line(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(TaskError) as caught:
        request_of(**row)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_without_a_url_or_with_two_columns_of_one_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="no column url, only link, id; write SELECT"):
        RowReader(("link", "id"))
    with pytest.raises(ConfigError, match="two columns 'id'; name them apart with AS"):
        RowReader(("url", "id", "id"))
