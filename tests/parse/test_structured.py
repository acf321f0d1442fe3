"""Structured data: things by their type, whatever they are written in."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ContentError
from silkline.parse.structured import StructuredData
from tests.parse.pages import page_of

JSON_LD = '<script type="application/ld+json">%s</script>'
PRODUCT = """<div itemscope itemtype="https://schema.org/Product"><b itemprop=name>Chair</b>
<i itemprop=color>blue</i><i itemprop=color>red</i>
<p itemprop=offers itemscope itemtype="http://schema.org/Offer"><b itemprop=price>9</b></p>
</div>"""


def test_microdata_is_found_in_the_form_of_json_ld() -> None:
    found = page_of(PRODUCT).structured()
    offer = {"@type": "Offer", "price": "9"}
    assert found.first("Product") == {
        "@type": "Product",
        "name": "Chair",
        "color": ["blue", "red"],
        "offers": offer,
    }
    assert found.first("Offer") == offer
    assert found.first("Person") is None
    assert found.all("Person") == []


@pytest.mark.parametrize(
    "stated", ['"Product"', '"http://schema.org/Product"', '["Thing", "schema:Product"]']
)
@pytest.mark.parametrize("asked", ["Product", "https://schema.org/Product", "http://www.schema.org/Product"])
def test_a_type_is_the_same_however_it_is_written(stated: str, asked: str) -> None:
    found = page_of(JSON_LD % f'{{"@type": {stated}, "name": "Chair"}}').structured()
    thing = found.first(asked)
    assert thing is not None
    assert thing["name"] == "Chair"
    assert found.first("Thing" if "Thing" in stated else "Products", "Offer") == (
        thing if "T" in stated else None
    )


def test_what_stands_at_the_top_comes_before_what_is_nested_and_json_ld_before_microdata() -> None:
    nested = '{"@type": "WebPage", "about": [{"@type": "Product", "name": "nested"}]}'
    html = PRODUCT + JSON_LD % nested + JSON_LD % '{"@type": "Product", "name": "top"}'
    names = [thing["name"] for thing in page_of(html).structured().all("Product")]
    assert names == ["top", "nested", "Chair"]


def test_types_of_other_vocabularies_go_by_their_url() -> None:
    html = '<div itemscope itemtype="https://x.example/Product"></div>'
    found = page_of(html).structured()
    assert found.first("Product") is None
    assert found.first("https://x.example/Product") == {"@type": "https://x.example/Product"}


@pytest.mark.parametrize("kind", ["null", "7", '[null, ["Product"]]', '{"@type": "x"}'])
def test_a_type_that_is_none_is_passed_over(kind: str) -> None:
    assert page_of(JSON_LD % f'{{"@type": {kind}}}').structured().first("Product") is None


def test_what_is_no_document_has_none() -> None:
    with pytest.raises(ContentError):
        page_of(b"{}", "application/json").structured()
    assert page_of("<a/>", "text/xml").structured() == StructuredData()


tags = st.sampled_from(
    [
        *(
            "<div itemscope>",
            "<div itemscope itemprop=a itemref='x y'>",
            "<p id=x itemprop=b>",
            "</div>",
            "</p>",
        ),
        *(
            "<p id=y itemscope itemprop='a b' itemtype=T>",
            "<a itemprop=u href='http://['>",
            "<meta itemprop=m>",
        ),
        *(
            "<template>",
            "</template>",
            "<svg itemscope>",
            "<table itemscope><tr itemprop=r>",
            "text",
            "<base href=x>",
        ),
        *(
            "<meta property=og:image content=x>",
            "<meta property=og:image:width content=9>",
            "<title itemprop=a>",
        ),
        *(JSON_LD % '{"@type":["T"]}', JSON_LD % '[{"@graph":{"@graph":[]}}', '<script type="ld+json">{'),
    ]
)


@given(st.lists(tags, max_size=40).map("".join))
def test_no_page_raises_and_all_that_is_found_can_be_an_item(html: str) -> None:
    found = page_of(html).structured()
    msgspec.json.encode(found)
    msgspec.json.encode(found.all("T"))
