from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import os
import subprocess
import sys
import types
import uuid
from io import BytesIO
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silkline.errors import ItemError
from silkline.sinks.record import fields_of, json_of, record_of, text_of


@dataclasses.dataclass
class DataclassAuthor:
    name: str
    born: datetime.date


class StructAuthor(msgspec.Struct):
    name: str
    born: datetime.date


@attrs.define
class AttrsAuthor:
    name: str
    born: datetime.date


class PydanticAuthor(pydantic.BaseModel):
    name: str
    born: datetime.date


KINDS = [DataclassAuthor, StructAuthor, AttrsAuthor, PydanticAuthor, dict, types.SimpleNamespace]
BORN = datetime.date(1815, 12, 10)


@pytest.mark.parametrize("kind", [DataclassAuthor, StructAuthor, AttrsAuthor, PydanticAuthor, dict])
def test_every_kind_of_item_makes_the_same_record(kind: Any) -> None:
    author = kind(name="Ada", born=BORN)
    assert record_of(author) == {"name": "Ada", "born": "1815-12-10"}
    assert record_of({"author": author, "all": [author]}) == {
        "author": {"name": "Ada", "born": "1815-12-10"},
        "all": [{"name": "Ada", "born": "1815-12-10"}],
    }


def test_mappings_that_are_no_dict_are_items_too() -> None:
    assert record_of(types.MappingProxyType({"a": 1})) == {"a": 1}
    assert record_of(collections.ChainMap({"a": 1}, {"b": 2})) == {"a": 1, "b": 2}


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.UTC), "2024-02-29T12:00:00Z"),
        (b"\x00\xff", "AP8="),
        ({3}, [3]),
        ((1, (2,)), [1, [2]]),
        (range(2), [0, 1]),
        (collections.deque([1]), [1]),
        (Colour.RED, "red"),
        (float("nan"), None),
        ([float("inf"), -float("inf")], [None, None]),
        (2**70, 2**70),
        ({1: "one"}, {"1": "one"}),
        ("a\ud800b", "a�b"),
        ("\ud83d\ude00", "😀"),
        ({"\udc00": ["\udc00"]}, {"�": ["�"]}),
    ],
    ids=repr,
)
def test_values_become_what_json_can_say(value: object, plain: object) -> None:
    assert record_of({"value": value}) == {"value": plain}


class Text(str):
    """Like the strings that parsers of other libraries return."""


class Amount(float):
    pass


class Day(datetime.date):
    pass


def test_subclasses_of_plain_types_become_plain() -> None:
    record = record_of({"text": Text("x"), "amount": Amount(1.5), "day": Day(2024, 1, 2)})
    assert record == {"text": "x", "amount": 1.5, "day": "2024-01-02"}
    assert [type(value) for value in record.values()] == [str, float, str]


def test_the_record_is_a_copy() -> None:
    tags = ["a"]
    record = record_of({"tags": tags})
    tags.append("b")
    assert record == {"tags": ["a"]}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("text", ["dict, dataclass", "not str", "'text'"]),
        (7, ["not int"]),
        ([{"a": 1}], ["not list"]),
        (DataclassAuthor, ["the class DataclassAuthor"]),
        (types.SimpleNamespace(a=1), ["SimpleNamespace"]),
        ({1: "a"}, ["field names must be text", "int"]),
        ({"ok": 1, "file": BytesIO()}, ["'file'", "BytesIO", "turn it into text"]),
        ({"deep": [{"file": BytesIO()}]}, ["'deep'", "BytesIO"]),
        ({"made": (n for n in "ab")}, ["'made'", "generator"]),
        ({"key": {(1, 2): 3}}, ["'key'"]),
    ],
    ids=lambda value: repr(value)[:30] if not isinstance(value, list) else "",
)
def test_what_cannot_be_written_is_an_item_error_in_one_line(item: object, words: list[str]) -> None:
    with pytest.raises(ItemError) as caught:
        record_of(item)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_item_that_contains_itself_fails_alone() -> None:
    item: dict[str, Any] = {}
    item["self"] = item
    with pytest.raises(ItemError, match="contains itself"):
        record_of(item)


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "value",
    [functools.reduce(lambda inner, _: {"in": inner}, range(5_000), {}), 10**5_000, Mute()],
    ids=["deep", "huge", "mute"],
)
def test_what_cannot_even_be_shown_is_told_in_one_line(value: Any) -> None:
    for item in (value, {"n": value}, {value: 1} if not isinstance(value, dict) else {"a": {"b": value}}):
        with pytest.raises(ItemError) as caught:
            record_of(item)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    assert json.loads(text_of({"n": value, "name": "x"})) == {
        "n": f"<{type(value).__name__}, which cannot be shown>",
        "name": "x",
    }


def test_a_model_that_fails_to_dump_is_an_item_error() -> None:
    class Odd(pydantic.BaseModel):
        value: int = 1

        @pydantic.field_serializer("value")
        def fail(self, value: int) -> int:
            raise RuntimeError("no\nway")

    with pytest.raises(ItemError, match="no way"):
        record_of(Odd())


def test_neither_pydantic_nor_attrs_is_imported_or_needed() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = sys.modules['attrs'] = sys.modules['attr'] = None\n"
        "from silkline.sinks.record import record_of\n"
        "from silkline.errors import ItemError\n"
        "assert record_of({'a': 1}) == {'a': 1}\n"
        "try: record_of({'a': object()})\n"
        "except ItemError: print('fine')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("fine\n", "")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(st.characters(exclude_categories=())), VALUES, max_size=5))
def test_any_record_is_json_and_stable(item: dict[str, Any]) -> None:
    record = record_of(item)
    assert json.loads(json_of(record)) == record
    assert record_of(record) == record


def test_fields_keep_types_that_databases_have() -> None:
    @dataclasses.dataclass
    class Offer:
        price: decimal.Decimal
        seen: datetime.datetime
        more: list[decimal.Decimal]

    moment = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)
    offer = Offer(decimal.Decimal("9.50"), moment, [decimal.Decimal("1.0")])
    assert fields_of(offer) == {"price": decimal.Decimal("9.50"), "seen": moment, "more": ["1.0"]}
    assert fields_of({"a": float("nan"), "b": b"\x00", "c": "\ud800"}) == {"a": None, "b": b"\x00", "c": "�"}


def test_a_path_is_text() -> None:
    """Such as `page.save` returns."""
    assert record_of({"file": Path("a/b.pdf"), "all": [Path("c")]}) == {"file": "a/b.pdf", "all": ["c"]}
    assert record_of({"file": os.fsdecode(b"\xff")}) == record_of({"file": Path(os.fsdecode(b"\xff"))})
