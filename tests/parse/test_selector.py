"""Selectors: what they name, and how wrong ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import SelectorError
from silkline.parse.selector import Selector, compile_css, compile_selector


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("h1", Selector("h1")),
        (" div.a > b , i ", Selector("div.a > b , i")),
        ("h1::text", Selector("h1", "text")),
        ("h1 ::text ", Selector("h1", "text")),
        ("div::html", Selector("div", "html")),
        ("a::attr(href)", Selector("a", "attr", "href")),
        ("a::attr( 'data-Id' )", Selector("a", "attr", "data-id")),
        ("a, b::attr(title)", Selector("a, b", "attr", "title")),
        ("::attr(href)", Selector("", "attr", "href")),
        ("::text", Selector("", "text")),
        ('a[title="x::text"]', Selector('a[title="x::text"]')),
        ('a[title="::y"]::text', Selector('a[title="::y"]', "text")),
        ("li:nth-child(2n + 1 of .a):not(:has(> b))", Selector("li:nth-child(2n + 1 of .a):not(:has(> b))")),
    ],
)
def test_a_selector_says_which_elements_and_what_of_them(text: str, selector: Selector) -> None:
    assert compile_selector(text) == selector


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a selector at position 0"),
        ("a[", "expected an identifier at position 2"),
        ("a,,b", "position 2"),
        ("div >> b", "position 5"),
        ("a:first", "unknown pseudo-class"),
        ("a[::text", "position 2"),
        ("a::txt", "no pseudo-element '::txt'; there are ::text, ::html and ::attr(NAME)"),
        ("a::attr", "no pseudo-element '::attr'"),
        ("a::attr()", "no pseudo-element '::attr()'"),
        ("a::text(x)", "no pseudo-element '::text(x)'"),
        ("a::", "no pseudo-element '::'"),
        ("h1::text, h2::text", "stands once, at the end"),
        (":not(" * 10_000 + "a" + ")" * 10_000, "nested too deeply"),
    ],
    ids=lambda value: value[:20],
)
def test_a_wrong_selector_is_refused_with_its_name_and_the_place(text: str, reason: str) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_selector(text)
    assert reason in str(caught.value)
    assert repr(text[:190])[:-1] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_elements_are_asked_for_a_pseudo_element_is_refused() -> None:
    assert compile_css("a.next").css == "a.next"
    with pytest.raises(SelectorError, match="leave out its pseudo-element"):
        compile_css("a::attr(href)")


PIECES = [*"abc.#[]()=:,>~+*|^$ \"'\\", ":not(", ":has(", ":nth-child(2n", "::text", "::attr(", "::html"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selector = compile_selector(text)
    except SelectorError:
        return
    assert selector.css == "" or selector.css in text
