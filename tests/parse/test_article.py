"""Articles: what is found in many layouts as sites have them, and what is stated of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from silkline.errors import ContentError
from silkline.parse.article import Article
from silkline.parse.page import Page
from tests.parse.pages import page_of

LAYOUTS = sorted((Path(__file__).parent.parent / "data" / "articles").glob("*.html"))
"""What belongs to the text stands in `<!--[-->…<!--]-->`; what the page states in the comment at the top."""

LONG = "<p>" + "The harbour froze over, for the first time in forty-one years, said the master. " * 4


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[\w']" if re.search("[一-鿿]", text) else r"[\w']+", text))


def wanted(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", " ".join(re.findall(r"<!--\[-->(.*?)<!--\]-->", html, re.S)))


def test_there_are_enough_layouts() -> None:
    assert len(LAYOUTS) >= 18


HARDER = {"question": (0.35, 0.95), "product": (1, 0.85)}
"""The least share of the text's words that is found there, and of the words found that are the text's."""


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.stem)
def test_all_of_the_text_is_found_and_hardly_anything_else(path: Path) -> None:
    html = path.read_text()
    recall, precision = HARDER.get(path.stem, (1, 0.95))
    found, right = words(page_of(html).article().text), words(wanted(html))
    common = (found & right).total()
    assert common / right.total() >= recall
    assert common / found.total() >= precision


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.stem)
def test_title_byline_and_date_are_those_that_the_page_states(path: Path) -> None:
    html = path.read_text()
    article = page_of(html).article()
    for name, value in re.findall(r"^(title|byline|published): ?(.*)$", html, re.M):
        assert (getattr(article, name) or "") == value, name


def article(html: str) -> Article:
    return page_of(html).article()


def test_html_and_markdown_are_of_the_same_text_with_absolute_links() -> None:
    found = article(
        f"<nav>menu</nav><main><h1>Frost</h1>{LONG} <a href=/ice>ice</a><script>1</script></main>"
    )
    assert found.text.startswith("The harbour froze over")
    assert found.markdown.endswith("[ice](https://shop.example/ice)")
    assert 'href="https://shop.example/ice"' in found.html
    assert "<script>" not in found.html
    assert "menu" not in found.html + found.text


def test_what_is_stated_in_json_ld_is_believed_first() -> None:
    found = article(
        """<html lang=de><title>x</title><meta name=author content=Nobody>
        <meta property=og:image content=i.png><script type="application/ld+json">{"@type": "BlogPosting",
        "headline": "Frost &amp; ice ", "author": ["Ada", {"name": "Bo"}, {"name": null}, 7],
        "datePublished": "2026-01-14"}</script>"""
        + LONG
    )
    assert (found.title, found.byline, found.published) == ("Frost & ice", "Ada, Bo", "2026-01-14")
    assert (found.language, found.image) == ("de", "https://shop.example/list/i.png")


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Frost | Courier</title><h1>Courier</h1><h2>Frost</h2>", "Frost"),
        ("<title>Frost on the pier - Courier</title>", "Frost on the pier"),
        ("<meta property=og:site_name content=Courier><title>Frost - Courier</title>", "Frost"),
        ("<title>Well-known co-op</title>", "Well-known co-op"),
        ("<h1>Frost ¶</h1>", "Frost"),
        ("", None),
    ],
)
def test_a_title_is_the_heading_that_the_page_is_called_by(head: str, title: str | None) -> None:
    assert article(head + f"<div>{LONG}</div>").title == title


def test_the_heading_of_the_site_is_no_title_where_the_text_has_its_own() -> None:
    head = "<title>Frost on the pier - Courier</title><h1>Courier</h1>"
    assert article(head + f"<main><h1>How it froze</h1>{LONG}</main>").title == "Frost on the pier"


def test_noise_inside_the_text_goes_unless_it_is_most_of_it() -> None:
    inside = "<div class='share-buttons'>Share this</div><aside>More</aside>"
    inside += "<ul><li><a>One<li><a>Two<li><a>Three</ul>"
    assert article(f"<article>{LONG}{inside}</article>").text.split()[-1] == "master."
    assert article(f"<article><div class=comments>{LONG}</div></article>").text != ""


@pytest.mark.parametrize("html", ["", "<p>short", "<nav><a href=/>x</a></nav>", "<div>" * 3_000])
def test_a_page_without_a_text_has_an_empty_article(html: str) -> None:
    found = article(html)
    assert (found.text, found.html, found.markdown) == ("", "", "") or len(found.text) < 20


def test_what_is_no_document_has_none() -> None:
    with pytest.raises(ContentError):
        page_of(b"{}", "application/json").article()


def test_the_page_is_not_changed() -> None:
    page: Page = page_of(LAYOUTS[0].read_text())
    before = page.document.html
    page.article()
    assert page.document.html == before


@pytest.mark.parametrize(
    "unit",
    [
        "<div class=comment>hello, world and more ",
        "<h1>x</h1>",
        "<i class='share a'>x</i>",
        "<ul><li><a>x<a>y<a>z</ul>",
    ],
)
def test_noise_without_end_takes_little(unit: str) -> None:
    article(f"<title>x</title><article>{LONG}" + unit * 10_000)
