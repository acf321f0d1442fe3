"""Queries of links in the encoding of their page."""

from __future__ import annotations

import codecs
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.parse.charset import decode, encoding_named
from silkline.parse.query import in_encoding, percent_encoded
from tests.conformance import cases, check
from tests.parse.pages import page_of

LEGACY = [
    *("Big5", "EUC-JP", "EUC-KR", "GBK", "gb18030", "ISO-2022-JP", "Shift_JIS", "windows-1251", "KOI8-U"),
    *("windows-1252", "ISO-8859-2", "windows-874", "IBM866", "macintosh", "x-user-defined"),
]


def test_queries_are_encoded_as_the_standard_says() -> None:
    pairs = [
        {"input": case["input"], "encoding": encoding, "output": output}
        for case in cases("url/percent_encoding")
        for encoding, output in case["output"].items()
    ]

    def fault(case: dict[str, str]) -> str | None:
        (href,) = in_encoding([f"/?{case['input']}"], case["encoding"])
        page = page_of("", url="https://e.example/")
        got = (page.absolute(href) or "").partition("?")[2]
        return None if got == case["output"] else f"{got} not {case['output']}"

    check(pairs, lambda case: f"{case['input']!r} in {case['encoding']}", fault)


@pytest.mark.parametrize("encoding", LEGACY)
def test_every_character_of_an_encoding_comes_back_from_its_bytes(encoding: str) -> None:
    decoder = codecs.lookup(f"whatwg-{encoding}").decode
    pairs = [bytes((first, second)) for first in range(0x81, 0xFF) for second in range(0x30, 0xFF)]
    texts = {text for pair in pairs if len(text := decoder(pair)[0]) == 1 and text != "\ufffd"}
    lost = []
    for text in texts:
        sent = percent_encoded(text, encoding)
        if "%26%23" not in sent:
            back = decoder(_unquoted(sent))[0]
            if back not in (text, {"\u2212": "\uff0d"}.get(text)):
                lost.append((text, sent, back))
    assert lost == []


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_query_is_always_plain_ascii(text: str) -> None:
    for encoding in LEGACY:
        sent = percent_encoded(text, encoding)
        assert sent.isascii()
        assert not set(sent) & set(" \"#<>'")


def test_half_width_katakana_become_full_width_in_iso_2022_jp() -> None:
    sent = percent_encoded("\uff83\uff7d\uff9e\uff9f", "ISO-2022-JP")
    assert decode(_unquoted(sent), "ISO-2022-JP") == "\u30c6\u30b9\u309b\u309c"


@pytest.mark.parametrize(
    ("href", "sent"),
    [
        ("/п?q=п#п", "/п?q=%EF#п"),
        ("?a=п&b=\u65e5", "?a=%EF&b=%26%2326085%3B"),
        ("?q=%D0%BF&x='п'", "?q=%D0%BF&x=%27%EF%27"),
        ("?q=п\n\tп ", "?q=%EF%EF"),
        ("/п", "/п"),
        ("/plain?q=1 2", "/plain?q=1 2"),
    ],
)
def test_only_the_query_is_in_the_encoding_of_the_page(href: str, sent: str) -> None:
    assert in_encoding([href], "windows-1251") == [sent]
    assert in_encoding([href], "utf-8") == [href]


def test_a_page_sends_its_links_as_a_browser_does_wherever_they_are_asked_for() -> None:
    page = page_of("<a href='/п?q=п'>x</a>".encode("cp1251"), "text/html; charset=cp1251")
    url = "https://shop.example/%D0%BF?q=%EF"
    assert page.links() == (url,)
    assert page.follow("a").urls == page.follow("/п?q=п").urls == (url,)
    assert page.attr("a", "href") == page.css("a")[0].attr("href") == url


def _unquoted(sent: str) -> bytes:
    return unquote_to_bytes(sent)


def test_the_names_used_here_are_the_standards() -> None:
    assert [encoding_named(name) for name in LEGACY] == LEGACY
