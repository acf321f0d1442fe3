"""The steps that ship."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline import steps
from silkline.errors import ConfigError, Drop
from silkline.items import To
from silkline.parse.page import Page
from silkline.steps import choose
from silkline.steps.fields import changed
from silkline.testing import page_from


@dataclass(frozen=True)
class Product:
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    name: str


class Offer(msgspec.Struct, frozen=True):
    name: str


@attrs.frozen
class Shop:
    name: str


class Rating(pydantic.BaseModel):
    name: str
    stars: int = 0


class Fixed(pydantic.BaseModel, frozen=True):
    name: str


def page(path: str = "", html: str = "") -> Page:
    return page_from(html or "<p>x</p>", url=f"https://shop.example/list/{path}")


class TestItemsOfEveryKind:
    @pytest.mark.parametrize(
        "item",
        [
            {"name": " a "},
            Product(" a "),
            Slotted(" a "),
            Offer(" a "),
            Shop(" a "),
            Rating(name=" a "),
            Fixed(name=" a "),
        ],
        ids=lambda item: type(item).__name__,
    )
    def test_a_field_is_changed_in_a_copy(self, item: Any) -> None:
        new = steps.strip("name")(item)
        assert type(new) is type(item)
        assert (new["name"] if isinstance(new, dict) else new.name) == "a"
        assert (item["name"] if isinstance(item, dict) else item.name) == " a "

    def test_what_has_nothing_to_change_stays_the_same_object(self) -> None:
        item = Product("a")
        assert steps.strip()(item) is item
        assert steps.strip("other")(item) is item
        assert steps.number("price")({"price": None}) == {"price": None}

    def test_pydantic_checks_what_a_step_puts_in(self) -> None:
        with pytest.raises(pydantic.ValidationError):
            changed(Rating(name="a"), {"stars": "many"})
        assert changed(Rating(name="a"), {"stars": 3}).stars == 3
        with pytest.raises(pydantic.ValidationError):
            changed(Fixed(name="a"), {"name": 3})

    def test_what_is_no_item_is_said(self) -> None:
        with pytest.raises(TypeError, match="int is no item: 7"):
            steps.strip()(7)


class TestText:
    def test_white_space_goes(self) -> None:
        item = {"a": " x\u00a0\n y ", "b": [" p ", 1], "c": 7}
        assert steps.strip()(item) == {"a": "x\u00a0\n y", "b": ["p", 1], "c": 7}
        assert steps.squeeze()(item) == {"a": "x y", "b": ["p", 1], "c": 7}
        assert steps.squeeze("c", "a")(item)["b"] == [" p ", 1]

    @given(st.text())
    def test_squeezed_text_has_no_two_spaces_in_a_row_and_stays(self, text: str) -> None:
        (once,) = steps.squeeze("a")({"a": text}).values()
        assert once == once.strip()
        assert "  " not in once
        assert steps.squeeze("a")({"a": once}) == {"a": once}

    def test_html_becomes_what_a_reader_sees(self) -> None:
        html = "<p>One &amp; <b>two</b></p><script>x()</script><ul><li>three<li>four</ul>"
        assert steps.html_to_text("d")({"d": html}) == {"d": "One & two three four"}
        assert steps.html_to_text("d")({"d": "plain < text", "e": "<b>"}) == {"d": "plain < text", "e": "<b>"}
        assert steps.html_to_text("d")({"d": ""}) == {"d": ""}

    def test_links_become_absolute_by_the_base_of_their_page(self) -> None:
        step = steps.absolute_urls("link", "images")
        item = {"link": "../a?b#c", "images": ["/x.png", "data:,x", None]}
        assert step(item, page()) == {
            "link": "https://shop.example/a?b#c",
            "images": ["https://shop.example/x.png", None, None],
        }
        based = page(html="<base href='https://cdn.example/'><p>x")
        assert step({"link": "a"}, based) == {"link": "https://cdn.example/a"}
        assert step({"link": "mailto:a@b.example"}, page()) == {"link": None}
        assert step({"other": 1}, page()) == {"other": 1}


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "amount"),
        [
            ("1.234,50 kg", "1234.50"),
            ("1,234.50", "1234.50"),
            ("about 7", "7"),
            ("-5", "-5"),
            ("\u22127,5 \u00b0C", "-7.5"),
            ("-$5.00", "-5.00"),
            ("- 3", "-3"),
            ("10-20", "10"),
            ("no. 4-7", "4"),
            ("A-7", "7"),
            ("from: -2 to 3", "-2"),
        ],
    )
    def test_a_number_is_found_in_text_with_its_sign(self, text: str, amount: str) -> None:
        found = steps.number("n")({"n": text})["n"]
        assert (found, type(found)) == (Decimal(amount), Decimal)

    def test_the_separator_may_be_said(self) -> None:
        assert steps.number("n", decimal=".")({"n": "1.234"}) == {"n": Decimal("1.234")}
        assert steps.number("n", decimal=",")({"n": "1.234"}) == {"n": Decimal("1234")}

    def test_no_number_is_an_error_and_no_text_none(self) -> None:
        with pytest.raises(ValueError, match="field 'n': no number in 'ask us'"):
            steps.number("n")({"n": "ask us"})
        assert steps.number("n", "m")({"n": " ", "m": 7}) == {"n": None, "m": 7}

    def test_a_price_has_a_currency(self) -> None:
        step = steps.price("price", currency="currency")
        assert step({"price": "22,90 \u20ac"}) == {"price": Decimal("22.90"), "currency": "\u20ac"}
        assert step({"price": "22.90"}) == {"price": Decimal("22.90")}
        assert step({"price": None}) == {"price": None}
        with pytest.raises(ValueError, match="field 'price': no number in 'sold out'"):
            step({"price": "sold out"})


class TestDates:
    def test_a_date_is_found_in_text(self) -> None:
        read = steps.date("d", languages=["en", "de"])
        for text in ("31 January 2030", "31. Januar 2030", "2030-01-31", "Thursday, Jan 31st 2030, 10:30"):
            assert read({"d": text}) == {"d": date(2030, 1, 31)}
        assert read({"d": "", "e": "2030-01-31"}) == {"d": None, "e": "2030-01-31"}
        today = datetime.now().date()
        assert abs((today - read({"d": "2 days ago"})["d"]).days - 2) <= 1

    def test_the_order_may_be_said(self) -> None:
        assert steps.date("d")({"d": "01/02/2030"}) == {"d": date(2030, 1, 2)}
        assert steps.date("d", order="DMY")({"d": "01/02/2030"}) == {"d": date(2030, 2, 1)}

    def test_a_moment_keeps_its_time_zone(self) -> None:
        found = steps.date_time("d")({"d": "Fri, 12 Dec 2014 10:55:50 +0200"})["d"]
        assert found.astimezone(UTC) == datetime(2014, 12, 12, 8, 55, 50, tzinfo=UTC)

    @pytest.mark.parametrize("text", ["soon", "May 2030", "2030", "31/31/2030", "10:30"])
    def test_what_is_no_whole_date_is_an_error(self, text: str) -> None:
        with pytest.raises(ValueError, match=f"field 'd': no date in '{text}'"):
            steps.date("d")({"d": text})

    def test_a_language_or_order_that_is_none_is_refused_at_once(self) -> None:
        with pytest.raises(ConfigError, match=r"date.*languages=.'klingon'"):
            steps.date("d", languages=["klingon"])
        with pytest.raises(ConfigError, match="order='dd'"):
            steps.date("d", order="dd")


class TestChoice:
    def test_what_is_required_must_be_there(self) -> None:
        step = steps.required("name", "stock")
        assert step({"name": "x", "stock": 0}) == {"name": "x", "stock": 0}
        for item, why in (
            ({"name": "x"}, "'stock' is missing"),
            ({"name": "", "stock": 1}, "'name' is empty"),
        ):
            with pytest.raises(ValueError, match=why):
                step(item)

    def test_what_is_not_wanted_is_dropped_with_the_reason(self) -> None:
        step = steps.keep(lambda item: item["n"] > 1, "too small")
        assert step({"n": 2}) == {"n": 2}
        with pytest.raises(Drop, match="too small"):
            step({"n": 1})

    def test_an_item_that_was_there_before_is_dropped(self) -> None:
        step, first, other = steps.unique("sku"), page("1"), page("2")
        assert step({"sku": 1}, first) == {"sku": 1}
        for again in (first, other):
            with pytest.raises(Drop, match="seen before"):
                step({"sku": 1, "n": 2}, again)
        assert step({"sku": "1"}, other) == {"sku": "1"}
        assert step({"other": 1}, other) == {"other": 1}

    def test_a_page_that_is_visited_again_has_its_items_again(self) -> None:
        step = steps.unique("sku")
        step({"sku": 1}, page("1"))
        again = page("1")
        assert step({"sku": 1}, again) == {"sku": 1}
        with pytest.raises(Drop):
            step({"sku": 1}, again)

    def test_it_remembers_a_bounded_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(choose, "REMEMBERED", 2)
        step = steps.unique("sku")
        for n in range(3):
            step({"sku": n}, page("1"))
        step({"sku": 0}, page("2"))  # forgotten
        with pytest.raises(Drop):
            step({"sku": 2}, page("2"))

    def test_an_item_is_sent_to_where_it_belongs(self) -> None:
        step = steps.route(lambda item: "a.csv" if item["n"] else None)
        assert step({"n": 1}) == To("a.csv", {"n": 1})
        assert step({"n": 0}) == {"n": 0}


@pytest.mark.parametrize(
    "make",
    [
        getattr(steps, name)
        for name in ["html_to_text", "absolute_urls", "number", "date", "date_time", "required", "unique"]
    ],
)
def test_a_step_that_wants_fields_says_so(make: Any) -> None:
    with pytest.raises(TypeError, match=f"{make.__name__}.. wants the names of fields"):
        make()


@pytest.mark.parametrize(
    ("make", "package"),
    [(lambda: steps.price("p"), "price_parser"), (lambda: steps.date("d"), "dateparser")],
)
def test_a_package_that_is_missing_is_named(make: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"needs the package {package}: pip install 'silkline.clean.'"):
        make()


def test_nobody_pays_for_steps_that_are_not_used() -> None:
    code = "import sys, silkline.steps; print({'dateparser', 'price_parser'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_they_are_called_what_they_are() -> None:
    for name in ("html_to_text", "number", "price", "date", "required", "unique", "absolute_urls", "strip"):
        assert getattr(steps, name)("a").__name__ == name
