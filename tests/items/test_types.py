"""Items hold what their classes declare."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ItemError
from silkline.items import TypeChecks
from silkline.sinks.record import record_of


class Size(Enum):
    LARGE = "L"


class Rating(pydantic.BaseModel):
    stars: int


@dataclass
class Offer:
    price: Decimal
    until: date | None = None


@dataclass
class Product:
    name: str
    price: Decimal | None = None
    seen: datetime | None = None
    weight: float = 1.0
    size: Size = Size.LARGE
    kind: Literal["chair", "table"] = "chair"
    stock: Annotated[int, msgspec.Meta(ge=0)] = 0
    tags: set[str] = field(default_factory=set)
    offers: list[Offer] = field(default_factory=list)
    file: Path | None = None
    rating: Rating | None = None
    anything: Any = None
    _hidden: int = 0


class Shop(msgspec.Struct, rename="camel"):
    opened_on: date
    best: Offer | None = None


@attrs.define
class Author:
    name: str
    works: dict[str, int] = attrs.Factory(dict)


converted = TypeChecks().converted


@pytest.mark.parametrize(
    "item",
    [
        Product("Chair"),
        Product(
            "Chair",
            Decimal("9.50"),
            datetime(2030, 1, 31, tzinfo=UTC),
            2.5,
            Size.LARGE,
            "table",
            3,
            {"a"},
            [Offer(Decimal(1)), Offer(Decimal(2), date(2030, 1, 31))],
            Path("x"),
            Rating(stars=5),
            object(),
            _hidden="text",  # type: ignore[arg-type]
        ),
        Shop(date(2030, 1, 31), Offer(Decimal(1))),
        Author("Ada", {"Notes": 1}),
        {"anything": object()},
        Rating(stars=5),
        object(),
    ],
)
def test_what_is_right_stays_as_it_is(item: object) -> None:
    assert converted(item) == {}


WRONG: list[tuple[Any, str]] = [
    (Product(None), "Product: field 'name' is None: expected `str`, got `null`"),  # type: ignore[arg-type]
    (Product("x", "n/a"), "Product: field 'price' is 'n/a': invalid decimal string"),  # type: ignore[arg-type]
    (Product("x", seen="soon"), "field 'seen' is 'soon': invalid RFC3339"),  # type: ignore[arg-type]
    (Product("x", size="XL"), "field 'size' is 'XL': invalid enum value"),  # type: ignore[arg-type]
    (Product("x", kind="bed"), "field 'kind' is 'bed'"),  # type: ignore[arg-type]
    (Product("x", stock=-1), "field 'stock' is -1: expected `int` >= 0"),
    (Product("x", stock=True), "field 'stock' is True: expected `int`, got `bool`"),
    (Product("x", tags={1}), "field 'tags[0]' is 1: expected `str`"),  # type: ignore[arg-type]
    (Product("x", offers=[Offer(Decimal(1)), Offer([])]), r"field 'offers[1].price' is []: "),  # type: ignore[arg-type]
    (Product("x", file="x"), "field 'file' is 'x': expected `Path`, got `str`"),  # type: ignore[arg-type]
    (Product("x", rating={"stars": 5}), "field 'rating' is {'stars': 5}: expected `Rating`"),  # type: ignore[arg-type]
    (Shop("2030"), "Shop: field 'openedOn' is '2030': "),  # type: ignore[arg-type]
    (Shop(date.min, Offer("9,50")), "field 'best.price' is '9,50': invalid decimal"),  # type: ignore[arg-type]
    (Author(7), "Author: field 'name' is 7: expected `str`, got `int`"),  # type: ignore[arg-type]
    (Author("x", {"a": "b"}), "field 'works[...]' is {'a': 'b'}: expected `int`"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(("item", "reason"), WRONG, ids=[reason[:40] for _, reason in WRONG])
def test_a_wrong_value_is_named_with_its_field(item: object, reason: str) -> None:
    with pytest.raises(ItemError) as caught:
        converted(item)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_means_the_declared_type_becomes_it() -> None:
    item = Product("x", "9.50", "2030-01-31T12:00:00Z", 2)  # type: ignore[arg-type]
    assert converted(item) == {
        "price": Decimal("9.50"),
        "seen": datetime(2030, 1, 31, 12, tzinfo=UTC),
        "weight": 2.0,
    }
    assert converted(Shop("2030-01-31")) == {"openedOn": date(2030, 1, 31)}  # type: ignore[arg-type]
    with pytest.raises(ItemError):
        converted(Product("x", stock="7"))  # type: ignore[arg-type]


@dataclass
class Odd:
    either: int | Path
    name: str


def test_what_nobody_can_check_is_said_once_and_the_rest_is_checked() -> None:
    lines: list[str] = []
    checks = TypeChecks(lines.append)
    for _ in range(2):
        assert checks.converted(Odd("neither", "x")) == {}  # type: ignore[arg-type]
    with pytest.raises(ItemError, match="field 'name'"):
        checks.converted(Odd(1, 2))  # type: ignore[arg-type]
    (line,) = lines
    assert line.startswith("the field 'either' of Odd is not checked: Type unions containing a custom type")


def test_a_class_whose_annotations_mean_nothing_is_said_to_be_unchecked() -> None:
    lost = dataclasses.make_dataclass("Lost", [("a", "Nowhere")])
    lines: list[str] = []
    assert TypeChecks(lines.append).converted(lost("x")) == {}
    assert lines == ["the types of Lost are not checked: name 'Nowhere' is not defined"]


def test_making_an_item_again_is_not_how_it_is_checked() -> None:
    made = []

    @dataclass
    class Counted:
        name: "str"  # noqa: UP037

        def __post_init__(self) -> None:
            made.append(self)

    Counted.__annotations__["name"] = str
    converted(Counted("x"))
    assert len(made) == 1


@given(
    st.builds(
        Product, st.text(), st.none() | st.decimals(allow_nan=False), st.none() | st.datetimes(), st.floats()
    )
)
def test_no_item_of_the_right_types_is_refused_or_changed(item: Product) -> None:
    assert converted(item) == {}
    record_of(item)
