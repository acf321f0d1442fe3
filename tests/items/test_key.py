"""The stable key of an item."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ConfigError, ItemError
from silkline.items import ItemKeys


@dataclass
class Product:
    sku: Any
    shop: Any = "ulm"


class Offer(msgspec.Struct, rename="camel"):
    __item_key__ = "sku_number"
    sku_number: int


class Special(Offer):
    percent: int = 10


@attrs.define
class Shop:
    __item_key__ = ("city", "street")
    city: str
    street: str | None


class Rating(pydantic.BaseModel):
    __item_key__ = "id"
    id: int


class Size(Enum):
    LARGE = "L"


def keys(*names: str) -> ItemKeys:
    keys = ItemKeys()
    keys.add(Product, names or "sku")
    return keys


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("A-7", "A-7"),
        (7, "7"),
        (7.0, "7"),
        ("7", "7"),
        (7.5, "7.5"),
        (True, "true"),
        (2**70, str(2**70)),
        (Decimal("9.50"), "9.50"),
        (date(2030, 1, 31), "2030-01-31"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Size.LARGE, "L"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_a_value_is_a_key_as_the_text_that_outputs_write(value: Any, text: str) -> None:
    assert keys().of(Product(value)) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the key field 'sku' is None"),
        ("", "the key field 'sku' is empty"),
        ([1], r"the key field 'sku' must be text or a number, not \[1\]"),
        ({}, "must be text or a number"),
        (float("nan"), "the key field 'sku' is None"),
        (object(), "cannot be written"),
    ],
)
def test_what_is_no_key_is_said(value: Any, reason: str) -> None:
    with pytest.raises(ItemError, match=reason):
        keys().of(Product(value))


@given(
    st.lists(st.text(min_size=1), min_size=2, max_size=2),
    st.lists(st.text(min_size=1), min_size=2, max_size=2),
)
def test_two_keys_of_several_fields_are_equal_only_where_all_of_them_are(
    one: list[str], other: list[str]
) -> None:
    several = keys("sku", "shop")
    first, second = several.of(Product(*one)), several.of(Product(*other))
    plain = [
        [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in part]
        for part in (one, other)
    ]
    assert (first == second) == (plain[0] == plain[1])
    assert first is not None
    assert json.loads(first) == plain[0]


def test_a_class_of_any_kind_names_its_key_and_a_subclass_has_it() -> None:
    keys = ItemKeys()
    assert keys.of(Offer(7)) == keys.of(Special(7)) == "7"
    assert keys.of(Shop("Ulm", "A 1")) == '["Ulm","A 1"]'
    assert keys.of(Rating(id=3)) == "3"
    assert keys.of(Product("A")) is None
    with pytest.raises(ItemError, match="'street' is None"):
        keys.of(Shop("Ulm", None))


def test_what_is_declared_wins_over_the_attribute() -> None:
    keys = ItemKeys()
    assert keys.of(Rating(id=3)) == "3"

    class Other(Rating):
        code: str

    keys.add(Other, key := "code")
    assert keys.of(Other(id=3, code="x")) == "x", key
    assert keys.of(Rating(id=3)) == "3"


def test_dicts_have_a_key_of_their_own_and_objects_do_not_have_it() -> None:
    keys = ItemKeys().with_dicts(["sku"])
    assert keys.of({"sku": 7}) == keys.of(OrderedDict(sku=7)) == "7"
    assert keys.of(Product("A")) is None
    with pytest.raises(ItemError, match="the key field 'sku' is missing"):
        keys.of({"name": "x"})
    assert ItemKeys().of({"sku": 7}) is None


@pytest.mark.parametrize(
    ("kind", "names", "reason"),
    [
        (Product, "skuu", "the key of Product has no field 'skuu'; there are shop, sku"),
        (Product, (), "must be the name of a field"),
        (Product, 7, "must be the name of a field"),
        (dict, "sku", "the key of dicts is a setting: item_key='sku'"),
        (OrderedDict, "sku", "item_key='sku'"),
        (int, "sku", "int is no dataclass, msgspec.Struct, attrs or pydantic class"),
        ("Product", "sku", "is no class"),
    ],
)
def test_a_key_that_no_item_could_have_is_refused(kind: Any, names: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ItemKeys().add(kind, names)
