"""Fields of the command line."""

from __future__ import annotations

import pytest

from silkline.errors import ConfigError
from silkline.parse.fields import Field, extract, parse_field, parse_fields
from tests.parse.pages import page_of


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("name=h2", Field("name", "h2")),
        (" name = h2 ", Field("name", "h2")),
        ("link=a::attr(href)", Field("link", "a::attr(href)")),
        ('ad=a[rel="x=y"]::html', Field("ad", 'a[rel="x=y"]::html')),
        ("unit price=.price", Field("unit price", ".price")),
        ("own=::attr(id)", Field("own", "::attr(id)")),
    ],
)
def test_a_field_is_a_name_and_a_selector(text: str, field: Field) -> None:
    assert parse_field(text) == field


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("h2", "'h2' has no '='; write NAME=CSS"),
        ("=h2", "no name"),
        (" =h2", "no name"),
        ("name=", "no selector"),
        ("name=a[", "field 'name': selector 'a[': expected an identifier at position 2"),
        ("name=a::attr", "field 'name': selector 'a::attr': no pseudo-element '::attr'"),
    ],
)
def test_a_wrong_field_is_a_configuration_error_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_field(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_stands_once() -> None:
    assert [field.name for field in parse_fields(["a=b", "b=b"])] == ["a", "b"]
    with pytest.raises(ConfigError, match="'a' is given more than once"):
        parse_fields(["a=b", "b=b", "a=i"])


def test_extract_takes_each_field_from_a_page_or_an_element() -> None:
    page = page_of("<h1>Shop</h1><div><h2>A</h2><a href=/a>a</a></div><div><h2>B</h2></div>")
    fields = parse_fields(["name=h2", "link=a::attr(href)", "none=.price"])
    assert extract(page, fields) == {"name": "A", "link": "https://shop.example/a", "none": None}
    assert [extract(node, fields)["name"] for node in page.css("div")] == ["A", "B"]
    assert [extract(node, fields)["link"] for node in page.css("div")] == ["https://shop.example/a", None]
