from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import bson
import hypothesis.strategies as st
import pytest
from bson.codec_options import CodecOptions
from bson.decimal128 import Decimal128
from hypothesis import given

from silkline.outcome import Item
from silkline.sinks.mongodb_document import OPTIONS, Unstorable, body_of, documents_of, name_of
from silkline.sinks.record import fields_of

READING: CodecOptions[dict[str, Any]] = OPTIONS.with_options(tz_aware=True)


def stored(fields: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    """What a server gets, without the internal fields."""
    body = body_of(fields_of(fields))
    [made] = documents_of([Item(-1, 3, {"sink": body}, key=key)], "sink")
    document = bson.decode(bson.encode(made, codec_options=OPTIONS), READING)
    assert document.pop("_id") == (key or "ffffffffffffffff-3")
    assert document.pop("_fingerprint") == -1
    assert document.pop("_index") == (None if key else 3)
    return document


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("é \0 \U0001f578", "é \0 \U0001f578"),
        (2**63 - 1, 2**63 - 1),
        (2**63, Decimal128(str(2**63))),
        (-(10**34) + 1, Decimal128(str(-(10**34) + 1))),
        (10**40 + 1, str(10**40 + 1)),
        (Decimal("9.50"), Decimal128("9.50")),
        (Decimal("1." + "1" * 34), "1." + "1" * 34),
        (Decimal("1e7000"), "1E+7000"),
        (Decimal("NaN"), Decimal128("NaN")),
        (Decimal("NaN123"), "NaN123"),
        (float("inf"), None),
        (b"\x00\xff", b"\x00\xff"),
        (UUID(int=7), UUID(int=7)),
        (date(2030, 1, 31), "2030-01-31"),
        (time(12, 30), "12:30:00"),
        (timedelta(hours=1), "PT3600S"),
        (datetime(2030, 1, 31, 12), datetime(2030, 1, 31, 12, tzinfo=UTC)),
        (
            datetime(2030, 1, 31, 12, 0, 0, 1999, tzinfo=timezone(timedelta(hours=2))),
            datetime(2030, 1, 31, 10, 0, 0, 1000, tzinfo=UTC),
        ),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=2))), "9999-12-31T23:59:59.999999-02:00"),
        ([1, {"a": 2**70, "b": [2**200]}], [1, {"a": Decimal128(str(2**70)), "b": [str(2**200)]}]),
    ],
)
def test_a_value_keeps_its_type_or_else_all_of_it_as_text(value: Any, kept: Any) -> None:
    found = stored({"value": value})["value"]
    assert isinstance(found, type(kept))
    assert repr(found) == repr(kept) or found == kept


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("price", "price"),
        ("", ""),
        ("a.b", "a．b"),
        ("$set", "＄set"),
        ("us$", "us$"),
        ("a\0b", "a␀b"),
        ("_id", "_id_6641c530"),
        ("_key", "_key_c7fbb253"),
        ("a．b", "a．b_26944a4b"),
    ],
)
def test_a_name_that_a_server_might_take_for_syntax_gets_stand_ins(field: str, name: str) -> None:
    assert list(stored({field: 1})) == [name]
    assert list(stored({"nested": {field: 1}})["nested"]) == [name]


SYNTAX = st.text(st.sampled_from("a.$\0．＄␀_id"), max_size=4)


@given(st.sets(SYNTAX, max_size=20))
def test_no_field_takes_the_place_of_another_or_of_an_internal_one(fields: set[str]) -> None:
    names = list(stored(dict.fromkeys(fields, 1), key="k"))
    assert len(names) == len(fields)
    assert not any("." in name or name[:1] == "$" or "\0" in name for name in names)


def test_a_field_that_wants_the_name_of_another_goes_into_more() -> None:
    clash = name_of("a．b")  # as a page may write it on purpose
    assert stored({clash.replace("．", "."): 1, "a．b": 2}) == {clash: 1, "_more": '{"a．b":2}'}


def test_a_value_that_is_nested_too_deeply_has_no_document() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    assert stored({"value": nested(99)})
    reason = body_of({"value": nested(100)})
    assert isinstance(reason, Unstorable)
    assert str(reason) == "a value is nested deeper than the 100 levels that MongoDB can hold"
