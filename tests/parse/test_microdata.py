"""Microdata: the rules of the HTML Standard, section 5, and limits."""

from __future__ import annotations

from typing import Any

import pytest

from silkline.parse.microdata import MAX_NESTING, MAX_REFERENCES, MAX_TEXT, MAX_VALUES
from tests.parse.pages import page_of


def items(html: str, **page: Any) -> list[dict[str, Any]]:
    return page_of(html, **page).structured().microdata


def test_items_have_types_an_id_and_lists_of_values() -> None:
    html = """<div itemscope itemtype="https://schema.org/Product https://x.example/T" itemid="/p/7#it">
      <h1 itemprop="name title">A <b>blue</b>
       chair</h1><p itemprop=color>blue</p><p>and</p><p itemprop=color>red</p></div><div itemscope></div>"""
    first, second = items(html)
    assert first == {
        "type": ["https://schema.org/Product", "https://x.example/T"],
        "id": "https://shop.example/p/7#it",
        "properties": {"name": ["A blue chair"], "title": ["A blue chair"], "color": ["blue", "red"]},
    }
    assert second == {"properties": {}}


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("<meta itemprop=v content=' 5 '>", " 5 "),
        ("<meta itemprop=v>", ""),
        ("<a itemprop=v href='../x?q#f'>t</a>", "https://shop.example/x?q#f"),
        ("<link itemprop=v href='https://schema.org/InStock'>", "https://schema.org/InStock"),
        ("<a itemprop=v href='mailto:a@b.example'>t</a>", "mailto:a@b.example"),
        ("<a itemprop=v>t</a>", ""),
        ("<img itemprop=v src=i.png>", "https://shop.example/list/i.png"),
        ("<video itemprop=v src=v.mp4></video>", "https://shop.example/list/v.mp4"),
        ("<object itemprop=v data=o.pdf></object>", "https://shop.example/list/o.pdf"),
        ("<data itemprop=v value=9>nine</data>", "9"),
        ("<meter itemprop=v value=0.5>half</meter>", "0.5"),
        ("<time itemprop=v datetime=2026-01-14>today</time>", "2026-01-14"),
        ("<time itemprop=v>2026</time>", "2026"),
        ("<b itemprop=v content=9.50>9,50 €</b>", "9.50"),
        ("<p itemprop=v>a<script>x()</script> b</p>", "a b"),
    ],
)
def test_each_element_has_its_own_kind_of_value(element: str, value: str) -> None:
    assert items(f"<div itemscope>{element}</div>") == [{"properties": {"v": [value]}}]


def test_links_are_relative_to_the_base() -> None:
    html = "<base href=https://cdn.example/z/><div itemscope><img itemprop=v src=i.png></div>"
    assert items(html)[0]["properties"] == {"v": ["https://cdn.example/z/i.png"]}


def test_nested_items_are_values_and_keep_their_properties_to_themselves() -> None:
    html = """<div itemscope><p itemprop=a>1</p><div><div itemprop=offer itemscope itemtype=Offer>
      <b itemprop=price>9</b>
      <i itemprop=seller itemscope><u itemprop=name>S</u></i></div></div><p itemprop=a>2</p></div>"""
    seller = {"properties": {"name": ["S"]}}
    offer = {"type": ["Offer"], "properties": {"price": ["9"], "seller": [seller]}}
    assert items(html) == [{"properties": {"a": ["1", "2"], "offer": [offer]}}]


def test_an_item_without_a_name_inside_another_stands_at_the_top() -> None:
    html = "<div itemscope><p itemprop=a>1</p><div itemscope><p itemprop=b>2</p></div></div>"
    assert items(html) == [{"properties": {"a": ["1"]}}, {"properties": {"b": ["2"]}}]


def test_itemref_brings_in_what_stands_elsewhere() -> None:
    html = """<div itemscope itemref="x y none x"><p itemprop=a>1</p></div><div id=x>
      <p itemprop=b>2</p><div itemscope>
      <p itemprop=no>0</p></div></div><p id=y itemprop=c>3</p><p id=y itemprop=d>4</p>"""
    assert items(html)[0] == {"properties": {"a": ["1"], "b": ["2"], "c": ["3"]}}


def test_itemref_to_an_item_takes_it_as_a_value_and_not_its_properties() -> None:
    html = "<div itemscope itemref=x></div><div id=x itemprop=of itemscope><p itemprop=b>2</p></div>"
    assert items(html)[0] == {"properties": {"of": [{"properties": {"b": ["2"]}}]}}


def test_an_item_that_is_in_itself_is_an_error_and_ends() -> None:
    html = "<div itemscope itemref=x></div><div id=x itemprop=of itemscope itemref=y></div>"
    html += "<div id=y itemprop=back itemscope itemref=x></div>"
    inner = {"properties": {"back": [{"properties": {"of": ["ERROR"]}}]}}
    assert items(html)[0] == {"properties": {"of": [inner]}}
    assert items("<div itemscope id=a itemref=a><p itemprop=b>1</p></div>") == [{"properties": {"b": ["1"]}}]


def test_templates_are_not_part_of_the_page() -> None:
    html = "<template><div itemscope><p itemprop=a>1</p></div></template>"
    assert items(html) == []


def test_properties_of_no_item_are_none() -> None:
    assert items("<p itemprop=a>1</p>") == []


def test_items_in_items_end_at_a_depth() -> None:
    (item,) = items("<div itemscope itemprop=a>" * 1 + "<div itemscope>" + "<div itemprop=a itemscope>" * 200)
    depth = 0
    while item != "ERROR":
        (item,) = item["properties"]["a"]
        depth += 1
    assert depth == MAX_NESTING


@pytest.mark.parametrize(
    ("html", "limit"),
    [
        ("<div itemscope>" + "<b itemprop=a>x</b>" * (MAX_VALUES + 10), f"{MAX_VALUES:,} values"),
        ("<div itemscope></div>" * (MAX_VALUES + 10), f"{MAX_VALUES:,} values"),
        ("<div itemscope>" + "<div itemprop=a>" * 450 + "x" * 20_000, f"{MAX_TEXT:,} characters"),
        (
            "".join(f"<div itemscope itemref=i{n}></div><p id=i{n}>" for n in range(MAX_REFERENCES + 10)),
            f"{MAX_REFERENCES} references",
        ),
        (
            "<div itemscope itemref=t></div>" * 9_000 + "<p id=t>" + "<b itemprop=a>x</b>" * 9_000,
            "20,000 values",
        ),
    ],
)
def test_beyond_a_limit_the_rest_is_left_out_with_a_note(html: str, limit: str) -> None:
    assert page_of(html).structured().notes == [f"microdata: over {limit}, the rest left out"]
