"""The questions that pages and elements answer alike."""

from __future__ import annotations

import pytest

from silkline.errors import SelectorError
from silkline.parse.node import Node
from tests.parse.pages import page_of

QUOTES = """
<title>Quotes</title>
<div class="quote" id=one><span class="text">To  be\n or <b>not</b></span>
<a href="/author/w?x=1#bio" CLASS=by>Will</a></div>
<div class="quote" id=two><span class="text"></span><img src="w.png" alt="a  b"></div>
"""


@pytest.fixture
def quote() -> Node:
    node = page_of(QUOTES).one("div.quote")
    assert node is not None
    return node


def test_css_gives_all_matches_in_order() -> None:
    assert [node.attr("id") for node in page_of(QUOTES).css("div.quote")] == ["one", "two"]
    assert page_of(QUOTES).css("p") == []


def test_an_element_is_searched_below_itself_only(quote: Node) -> None:
    assert [node.tag for node in quote.css("*")] == ["span", "b", "a"]
    assert quote.one("img") is None
    assert quote.css("div.quote") == []
    assert [node.tag for node in quote.css(":scope > *")] == ["span", "a"]


def test_text_is_one_line_of_the_first_match(quote: Node) -> None:
    assert quote.text(".text") == "To be or not"
    assert quote.text() == "To be or not Will"
    assert page_of(QUOTES).text("div:last-of-type .text") == ""


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<br>b", "a b"),
        ("<p>a</p><p>b</p>", "a b"),
        ("<ul><li>a<li>b</ul>", "a b"),
        ("<ol><li>a<li>b</ol>", "1. a 2. b"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b c"),
        ("1<b>2</b><span>3</span>", "123"),
        ("a<script>var x</script><style>b{}</style><!-- c -->d<template>e</template>", "ad"),
        ("1\xa0299\u2009\u20ac", "1 299 \u20ac"),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
        ("<pre>a\n  b</pre>", "a b"),
        ("<noscript>a <b>b</b></noscript>", "a b"),
        ("", ""),
    ],
)
def test_text_reads_as_a_reader_sees_it(html: str, text: str) -> None:
    assert page_of(f"<div>{html}</div>").text("div") == text


def test_attributes_stand_as_written_but_links_are_absolute(quote: Node) -> None:
    page = page_of(QUOTES)
    assert quote.attr("a", "class") == "by"
    assert quote.attr("a", "HREF") == "https://shop.example/author/w?x=1#bio"
    assert page.attr("img", "src") == "https://shop.example/list/w.png"
    assert page.attr("img", "alt") == "a  b"
    assert page_of("<a href=mailto:a@b.example>").attr("a", "href") == "mailto:a@b.example"
    assert page_of("<a href=http://[>").attr("a", "href") == "http://["


def test_links_are_absolute_against_the_base_of_the_document() -> None:
    page = page_of("<base href=/other/><p><a href=x>")
    assert [node.attr("a", "href") for node in page.css("p")] == ["https://shop.example/other/x"]


def test_get_takes_what_the_selector_names(quote: Node) -> None:
    assert quote.get(".text") == "To be or not"
    assert quote.get(".text::text") == "To be or not"
    assert quote.get("b::html") == "<b>not</b>"
    assert quote.get("a::attr(class)") == "by"
    assert quote.get("a::attr(href)") == "https://shop.example/author/w?x=1#bio"
    assert quote.get("::attr(id)") == "one"
    assert quote.get("::text") == quote.text()


def test_get_all_takes_it_of_all_matches_that_have_it() -> None:
    page = page_of(QUOTES)
    assert page.get_all("div.quote::attr(id)") == ["one", "two"]
    assert page.get_all(".text") == ["To be or not", ""]
    assert page.get_all(".quote *::attr(class)") == ["text", "by", "text"]
    assert page.get_all("p::text") == []


def test_html_is_the_element_with_its_tag(quote: Node) -> None:
    assert quote.html("b") == "<b>not</b>"
    assert (quote.html() or "").startswith('<div class="quote" id="one">')


def test_no_match_is_none_or_the_default(quote: Node) -> None:
    assert quote.text("p") is None
    assert quote.html("p") is None
    assert quote.attr("p", "id") is None
    assert quote.attr("nope") is None
    assert quote.get("p") is None
    assert quote.get("a::attr(nope)") is None
    assert quote.text("p", default="") == ""
    assert quote.html("p", default="-") == "-"
    assert quote.attr("p", "id", default=0) == 0
    assert quote.get("p", default="?") == "?"
    assert quote.attr("a", "class", default="?") == "by"


@pytest.mark.parametrize("ask", ["css", "one", "text", "html", "get", "get_all"])
def test_a_wrong_selector_is_refused_by_every_question(quote: Node, ask: str) -> None:
    with pytest.raises(SelectorError, match="position 2"):
        getattr(quote, ask)("a[")
    with pytest.raises(SelectorError, match="position 2"):
        getattr(page_of(QUOTES), ask)("a[")


def test_an_element_shows_what_it_is(quote: Node) -> None:
    assert repr(quote) == "<Node div 'To be or not Will'>"
