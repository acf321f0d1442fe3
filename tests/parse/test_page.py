"""Pages: what a handler sees of a response."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.errors import ContentError, SaveError, SilklineError
from silkline.parse.page import MAX_LINKS, Page
from silkline.request import Follow, Request
from silkline.response import Response
from silkline.url import MAX_URL_LENGTH
from tests.parse.pages import URL, page_of

LISTING = """<!DOCTYPE html><title> All
 quotes </title>
<nav id=top><a href="/">Home</a> <a href="?page=2#list">More</a></nav>
<ul><li class=next><a href="../next.html">next</a> <a href="mailto:a@b.example">mail</a></li></ul>
<area href="/map"><a href="https://other.example/x">other</a> <a name=anchor>no link</a>
<a href="/">Home again</a> <a href="javascript:go()">js</a> <a href=" /spaced ">s</a> <a href="#top">up</a>
<span data-url="/data/1">data</span><iframe src="/frame"></iframe>
"""


# What it is made of.


def test_a_page_shows_its_response_and_request() -> None:
    request = Request("https://shop.example/old", label="list", extra={"n": 1}, depth=2)
    response = Response(URL, 203, ((b"X-A", b"1"), (b"x-a", b"2")), b"<p>x", request)
    page = Page(response)
    assert (page.url, page.status, page.body) == (URL, 203, b"<p>x")
    assert (page.request, page.label, page.extra) == (request, "list", {"n": 1})
    assert page.header("x-A") == "1"
    assert page.header("nope") is None
    assert page.response is response


def test_a_page_is_parsed_when_first_asked_and_never_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = turbohtml.parse
    monkeypatch.setattr(
        turbohtml, "parse", lambda *args, **options: parsed.append(1) or parse(*args, **options)
    )
    page = page_of(LISTING)
    assert (page.url, page.status, page.label) == (URL, 200, "default")
    assert parsed == []
    assert page.title == "All quotes"
    assert page.css("a")[0].text() == "Home"
    assert page.follow("a").urls[:1] == page.links()[:1] == ("https://shop.example/",)
    assert page.source.startswith("<!DOCTYPE")
    assert parsed == [1]


def test_the_title_is_that_of_the_document_not_of_a_picture() -> None:
    assert page_of("<svg><title>Icon</title></svg><p>x").title is None
    assert page_of("<svg><title>Icon</title></svg><title>Shop</title>").title == "Shop"
    assert page_of("x", "image/png").title is None


# Links.


def test_links_are_absolute_in_order_each_once_and_can_be_fetched() -> None:
    assert page_of(LISTING).links() == (
        "https://shop.example/",
        "https://shop.example/list/index.html?page=2",
        "https://shop.example/next.html",
        "https://shop.example/map",
        "https://other.example/x",
        "https://shop.example/spaced",
        "https://shop.example/list/index.html?page=1",
    )


def test_links_count_where_a_browser_has_links() -> None:
    page = page_of(
        "<template><a href=/template></a></template><svg><a href=/svg></a><a xlink:href=/xlink></a></svg>"
        "<noscript><a href=/noscript></a></noscript><!-- <a href=/comment> -->"
        "<script>'<a href=/script>'</script>"
    )
    assert [url.rpartition("/")[2] for url in page.links()] == ["svg", "xlink", "noscript"]


@pytest.mark.parametrize(
    ("html", "link"),
    [
        ("<base href=/b/>", "https://shop.example/b/x"),
        ("<base href='https://cdn.example/c'>", "https://cdn.example/x"),
        ("<base target=_top><base href=sub/><base href=/late/>", "https://shop.example/list/sub/x"),
        ("<base href='javascript:0'>", "https://shop.example/list/x"),
        ("<base href='http://['>", "https://shop.example/list/x"),
        ("<template><base href=/t/></template>", "https://shop.example/list/x"),
        ("<base href=''>", "https://shop.example/list/x"),
    ],
)
def test_links_are_relative_to_the_base_of_the_document(html: str, link: str) -> None:
    page = page_of(f"{html}<a href=x>")
    assert page.links() == page.follow("a").urls == (link,)
    assert page.follow("./x").urls == (link,)


def test_what_is_no_html_has_no_links() -> None:
    assert page_of('{"a": "<a href=/x>"}', "application/json").links() == ()
    assert page_of("<r><a href='/x'/></r>", "text/xml").links() == ()


# Following.


@pytest.mark.parametrize(
    ("target", "urls"),
    [
        ("li.next a", ["https://shop.example/next.html"]),
        ("li.next", ["https://shop.example/next.html"]),
        ("#top a", ["https://shop.example/", "https://shop.example/list/index.html?page=2"]),
        ("#top", ["https://shop.example/", "https://shop.example/list/index.html?page=2"]),
        ("span::attr(data-url)", ["https://shop.example/data/1"]),
        ("iframe", ["https://shop.example/frame"]),
        ("a[href^=mailto]", []),
        ("a[name]", []),
        (".nope", []),
        ("/x#y", ["https://shop.example/x"]),
        ("?page=3", ["https://shop.example/list/index.html?page=3"]),
        ("./x", ["https://shop.example/list/x"]),
        ("../x", ["https://shop.example/x"]),
        ("//cdn.example/x", ["https://cdn.example/x"]),
        ("http://other.example", ["http://other.example/"]),
        ("/" + "a" * MAX_URL_LENGTH, []),
    ],
    ids=lambda value: str(value)[:30],
)
def test_follow_takes_selectors_and_urls(target: str, urls: list[str]) -> None:
    assert list(page_of(LISTING).follow(target).urls) == urls


def test_follow_takes_links_inside_nested_matches_once_and_in_order() -> None:
    page = page_of(
        "<p class=n><a href=/1>1</a></p><a class=n href=/2>2</a><div class=n><div class=n><a href=/3>"
    )
    assert [url[-1] for url in page.follow(".n").urls] == ["1", "2", "3"]


def test_matches_nested_without_end_are_followed_in_reasonable_time() -> None:
    page = page_of("<div><a href=/x></a>" * 200_000)
    assert page.follow("div").urls == ("https://shop.example/x",)


def test_the_number_of_links_is_bounded() -> None:
    page = page_of("".join(f"<a href=/{number}>" for number in range(MAX_LINKS + 10)))
    assert len(page.links()) == len(page.follow("a")) == MAX_LINKS


def test_follow_takes_elements_and_several_things() -> None:
    page = page_of(LISTING)
    first, second, *_ = page.css("a")
    assert page.follow(second).urls == ("https://shop.example/list/index.html?page=2",)
    assert page.follow([first, second, first]).urls == page.follow("#top").urls
    assert page.follow(["/a", "li.next", first, "/a"]).urls == (
        "https://shop.example/a",
        "https://shop.example/next.html",
        "https://shop.example/",
    )
    assert page.follow([]).urls == ()


def test_follow_carries_label_priority_and_extra() -> None:
    follow = page_of(LISTING).follow("li.next a", label="author", priority=5, extra={"a": 1})
    assert follow == Follow(("https://shop.example/next.html",), "author", 5, {"a": 1})
    assert page_of(LISTING).follow("li.next a") == Follow(("https://shop.example/next.html",))


# Kinds of content.


def test_json_is_read_as_json_and_not_selected_from() -> None:
    page = page_of(b'\xef\xbb\xbf{"a": [1, "\xc3\xa9"]}', "application/json")
    assert page.json() == {"a": [1, "\xe9"]}
    with pytest.raises(
        ContentError, match=r"is application/json, no HTML to select from; use page\.json\(\)"
    ):
        page.css("a")
    assert page.follow("/next").urls == ("https://shop.example/next",)


@pytest.mark.parametrize("body", [b"", b"{", b"<p>", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_content_error(body: bytes) -> None:
    with pytest.raises(ContentError, match="is no JSON"):
        page_of(body).json()


@pytest.mark.parametrize("content_type", ["image/png", "application/pdf", "text/plain", "application/zip"])
def test_selecting_from_what_is_no_document_is_a_content_error(content_type: str) -> None:
    page = page_of("words", content_type)
    for ask in (page.css, page.one, page.text, page.html, page.get, page.get_all, page.follow):
        with pytest.raises(ContentError, match=f"is {content_type}, no HTML"):
            ask("a")


def test_xml_is_selected_from_with_its_own_names() -> None:
    page = page_of(
        b"<?xml version='1.0' encoding='windows-1251'?><rss><Item><link>/a</link><t>\xcf</t></Item></rss>",
        "application/rss+xml",
    )
    assert page.text("Item t") == "\u041f"
    assert page.css("item") == []
    assert page.get_all("link") == ["/a"]


@pytest.mark.parametrize("body", [b"", b"<a", b"<a>&nope;</a>", b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"])
def test_xml_that_is_not_well_formed_is_a_content_error(body: bytes) -> None:
    page = page_of(body, "text/xml")
    with pytest.raises(ContentError, match="no well-formed XML"):
        page.css("a")
    assert page.title is None


@pytest.mark.parametrize(
    ("body", "content_type", "title"),
    [
        (b"<title>\xcf</title>", "text/html; charset=windows-1251", "\u041f"),
        (b"<meta charset=windows-1251><title>\xcf</title>", "text/html", "\u041f"),
        (b"<meta charset=utf-8><title>\xcf</title>", "text/html; charset=windows-1251", "\u041f"),
        (b"\xef\xbb\xbf<title>\xc3\xa9</title>", "text/html; charset=windows-1251", "\xe9"),
        (b"\xff\xfe" + "<title>\xe9</title>".encode("utf-16-le"), "text/html", "\xe9"),
        (b"<title>\xc3\xa9</title>", "text/html; charset=no-such-thing", "\xe9"),
        (b"<title>\xc3\xa9</title>", None, "\xe9"),
        (b"<title>\xe9</title>", "text/html", "\xe9"),
    ],
)
def test_the_charset_is_found_as_browsers_find_it(body: bytes, content_type: str | None, title: str) -> None:
    page = page_of(body, content_type)
    assert page.title == title
    assert f"<title>{title}</title>" in page.source


# Robustness.


def ask_everything(page: Page) -> None:
    page.title, page.source, page.links(), page.base_url, page.kind
    for ask in (page.css, page.one, page.text, page.html, page.get, page.get_all, page.follow):
        try:
            ask("a, td")
        except ContentError:
            assert page.kind != "html"
    if page.kind == "html":
        page.text(), page.html(), page.attr("lang")
        for node in page.css("*")[:20]:
            node.text(), node.html(), node.attr("href"), repr(node)


PIECES = (
    b"< > ' \" \0 \xff \xed\xa0\x80 ]]> x &#xD800; &#0; <!-- <?xml http://[ utf-16 <meta\tcharset="
    b" <base\thref= <a\thref= </a> <title> <table> <td> <svg> <math> <template> <select> <frameset>"
    b" <plaintext>"
).split(b" ")


@given(
    st.binary(max_size=200) | st.lists(st.sampled_from(PIECES)).map(b"".join),
    st.sampled_from(
        ["text/html", None, "text/html; charset=utf-16", "text/xml", "text/html; charset=iso-2022-jp"]
    ),
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_page(body: bytes, content_type: str | None) -> None:
    ask_everything(page_of(body, content_type))


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 10_000 + b"<a href=/x>deep",
        b"<b><a href=/x>" * 5_000,
        b"<table><tr><td>" * 3_000 + b"<a href=/x>",
        b"<a " + b" ".join(b"a%d=1" % number for number in range(20_000)) + b" href=/x>many attributes",
        b"<a href=/x title='" + b"x" * 1_000_000 + b"'>long attribute",
        b"<a href=/x>" + b"\0" * 100_000,
    ],
    ids=["nested blocks", "nested links", "nested tables", "many attributes", "long attribute", "NULs"],
)
def test_absurd_markup_still_gives_its_link(body: bytes) -> None:
    page = page_of(body)
    assert page.links() == ("https://shop.example/x",)
    ask_everything(page)


def test_megabytes_of_noise_are_a_page_or_a_content_error() -> None:
    noise = bytes((value * value >> 3) & 255 for value in range(65_536)) * 80
    assert len(noise) > 5_000_000
    ask_everything(page_of(noise))
    with pytest.raises(SilklineError):
        page_of(noise, "text/xml").css("a")


def test_a_body_is_saved_whole(tmp_path: Path) -> None:
    page = page_of(b"\xff\x00raw", content_type="application/pdf")
    assert page.save("a/b.pdf", folder=tmp_path) == tmp_path / "a/b.pdf"
    assert (tmp_path / "a/b.pdf").read_bytes() == b"\xff\x00raw"
    with pytest.raises(SaveError, match="leads out of the folder"):
        page.save("../b.pdf", folder=tmp_path / "a")


def test_a_body_that_is_in_a_file_already_is_moved(tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(b"streamed")
    response = msgspec.structs.replace(page_of(b"").response, saved_to=str(tmp_path / "first"))
    Page(response).save(tmp_path / "second")
    assert [path.name for path in tmp_path.iterdir()] == ["second"]
    assert (tmp_path / "second").read_bytes() == b"streamed"
