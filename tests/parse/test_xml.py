"""XML: what a feed says, and nothing that its DTD would make of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.errors import ContentError
from silkline.parse.xml import parse_xml
from tests.parse.pages import page_of

FEED = """
<?xml version="1.0"?><!-- <![CDATA[ no --><?pi <![CDATA[ ?>
<rss><channel><title><![CDATA[A & <b>]]> &amp; c</title><item><link>https://shop.example/1</link>
<description><![CDATA[<p>One]]></description></item></channel></rss>
"""


def test_a_feed_gives_its_texts_cdata_included() -> None:
    page = page_of(FEED, "application/rss+xml")
    assert page.kind == "xml"
    assert page.text("title") == "A & <b> & c"
    assert page.text("description") == "<p>One"
    assert page.text("link") == "https://shop.example/1"
    assert page.links() == ()


def test_html_in_a_feed_is_text_and_no_markup() -> None:
    assert page_of(FEED, "text/xml").css("p") == []


ENTITY_ATTACKS = {
    "external": '<!DOCTYPE a [<!ENTITY x SYSTEM "file://{path}">]><a>&x;</a>',
    "parameter": '<!DOCTYPE a [<!ENTITY % x SYSTEM "file://{path}"> %x;]><a>&secret;</a>',
    "internal": '<!DOCTYPE a [<!ENTITY x "secret">]><a>&x;</a>',
    "laughs": "<!DOCTYPE a [<!ENTITY x0 'ha'>"
    + "".join(f"<!ENTITY x{n} '{f'&x{n - 1};' * 10}'>" for n in range(1, 12))
    + "]><a>&x11;</a>",
    "quadratic": "<!DOCTYPE a [<!ENTITY x '" + "x" * 50_000 + "'>]><a>" + "&x;" * 50_000 + "</a>",
}


@pytest.mark.parametrize("attack", ENTITY_ATTACKS)
def test_entities_of_a_dtd_are_never_expanded(attack: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("<!ENTITY secret 'secret'>")
    body = ENTITY_ATTACKS[attack].replace("{path}", str(tmp_path / "secret"))
    with pytest.raises(ContentError, match=r"no well-formed XML: .*entity"):
        page_of(body, "text/xml").text()


def test_a_dtd_elsewhere_is_not_fetched_and_does_no_harm() -> None:
    assert page_of('<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a>t</a>', "text/xml").text() == "t"


@pytest.mark.parametrize("opener", ["<![CDATA[", "<!--", "<?"])
def test_sections_that_never_end_cost_no_more_than_their_length(opener: str) -> None:
    with pytest.raises(ContentError, match="no well-formed XML"):
        page_of("<a><![CDATA[x]]>" + opener * 1_000_000, "text/xml").text()


TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20)


@given(TEXT, TEXT)
@settings(max_examples=100, deadline=None)
def test_a_cdata_section_is_the_text_that_escapes_would_be(plain: str, raw: str) -> None:
    raw = raw.replace("]]>", "")
    escaped = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    document = parse_xml(f"<a>{escaped}<![CDATA[{raw}]]></a>")
    assert document.root is not None
    assert document.root.text == plain + raw
