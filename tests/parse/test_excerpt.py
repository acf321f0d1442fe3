"""Markdown of pages and elements: links, structure, what is left out; the page itself stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ContentError
from tests.parse.pages import page_of


def markdown(html: str) -> str:
    text = page_of(html).markdown()
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<title>t</title><h1>A <em>b</em></h1><h3>c</h3>", "# A *b*\n\n### c"),
        ("<p>one\n two<p>three<br>four", "one two\n\nthree  \nfour"),
        ("<b>bold</b> <i>it</i> <del>no</del> <code>a`b</code>", "**bold** *it* ~~no~~ ``a`b``"),
        ("<ul><li>a<ol><li>b<li>c</ol><li>d</ul>", "- a\n  1. b\n  2. c\n- d"),
        ("<ol start=5><li>five</ol>", "5. five"),
        ("<blockquote><p>q</blockquote><hr>", "> q\n\n---"),
        ("<pre><code class=language-py>def f():\n  pass</code></pre>", "```py\ndef f():\n  pass\n```"),
        ("<table><tr><th>a<th>b|<tr><td>1<td>2</table>", "| a | b\\| |\n| --- | --- |\n| 1 | 2 |"),
    ],
)
def test_structure_is_kept(html: str, text: str) -> None:
    assert markdown(html) == text


@pytest.mark.parametrize(
    "text", ["*a* _b_", "# no heading", "1. no list", "- no list", "[x](y)", "> no", "<b>"]
)
def test_what_only_looks_like_markdown_is_escaped(text: str) -> None:
    escaped = markdown(f"<p>{text.replace('<', '&lt;')}")
    assert escaped != text
    assert escaped.replace("\\", "") == text


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("../c?d=1", "https://shop.example/c?d=1"),
        ("?page=2", "https://shop.example/list/index.html?page=2"),
        ("#top", "https://shop.example/list/index.html?page=1#top"),
        ("//cdn.example/x", "https://cdn.example/x"),
        ("mailto:a@b.example", "mailto:a@b.example"),
    ],
)
def test_links_are_absolute(href: str, url: str) -> None:
    assert markdown(f"<a href='{href}'>t</a> <img src='{href}' alt=i>") == f"[t]({url}) ![i]({url})"


def test_links_are_relative_to_the_base() -> None:
    assert markdown("<base href=https://cdn.example/z/><a href=q>t</a>") == "[t](https://cdn.example/z/q)"


@pytest.mark.parametrize(
    "href", ["javascript:go()", " JavaScript:go()", "data:text/html,x", "&#1;vbscript:x"]
)
def test_links_that_run_code_are_text(href: str) -> None:
    assert markdown(f"<a href='{href}'>t</a>") == "t"


def test_pictures_in_the_page_itself_are_left_out_and_late_ones_shown() -> None:
    inline = "data:image/gif;base64,R0lGOD"
    assert markdown(f"a <img src='{inline}' alt=x> b") == "a b"
    assert markdown(f"<img src='{inline}' data-src=/late.png alt=x>") == "![x](https://shop.example/late.png)"


def test_what_no_reader_reads_is_left_out() -> None:
    html = """<p>a<script>x()</script><style>y</style><noscript>turn it on</noscript><template>t</template>
    <svg><text>s</text></svg><iframe>f</iframe><select><option>o</select><textarea>t</textarea>
    <button>b</button><input value=v><p hidden>h"""
    assert markdown(html) == "a"


def test_cells_that_span_leave_empty_ones() -> None:
    html = "<table><tr><th colspan=2>ab<th>c<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>"
    assert markdown(html) == "| ab |  | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n|  | 4 | 5 |"


def test_an_element_or_a_match_gives_its_own_part_and_the_page_is_not_changed() -> None:
    page = page_of("<nav>n</nav><main><p>m <a href=/x>x</a></p><table><tr><td colspan=2>1<tr><td>2<td>3")
    before = page.document.html
    assert page.markdown("p") == page.css("p")[0].markdown() == "m [x](https://shop.example/x)"
    assert page.markdown("li") is None
    assert page.markdown("li", default="?") == "?"
    assert str(page.markdown()).startswith("n\n\nm ")
    assert page.document.html == before


def test_what_is_no_document_cannot_be_asked() -> None:
    with pytest.raises(ContentError):
        page_of(b"{}", "application/json").markdown()


@pytest.mark.parametrize(
    "unit", ["<div>", "<ul><li>x", "<blockquote>x", "<table><tr><td>x", "<b>x", "<td colspan=9>"]
)
def test_nesting_without_end_takes_little(unit: str) -> None:
    markdown("<table>" + unit * 20_000)


tags = st.sampled_from(
    [
        *(
            "<p>",
            "<b>",
            "</b>",
            "<a href=x>",
            "<a href='http://[::'>",
            "</a>",
            "<ul><li>",
            "<ol start=x><li>",
            "</ul>",
            "<pre>",
        ),
        *(
            "<table>",
            "<td colspan=2 rowspan=0>",
            "<tr>",
            "</table>",
            "<caption>",
            "<img src=x data-src>",
            "<code>`",
            "text",
            " ",
        ),
        *(
            "<script>",
            "</script>",
            "<template>",
            "<svg>",
            "<h7>",
            "<h1>",
            "<br>",
            "*",
            "|",
            "<base href=x>",
            "<!--",
            "-->",
        ),
    ]
)


@given(st.lists(tags, max_size=40).map("".join))
def test_no_page_raises(html: str) -> None:
    page = page_of(html)
    before = page.document.html
    page.markdown()
    page.article()
    assert page.document.html == before


@pytest.mark.parametrize(
    "tag", ["td", "tr", "tbody", "table", "p", "li", "a", "b", "pre", "dd", "caption", "body"]
)
def test_any_element_can_be_shown_alone(tag: str) -> None:
    """turbohtml crashes where a copy has no parent and ends in a line break."""
    page = page_of(f"<table><tr><td>a<br></table><dl><dd>a<br></dl><{tag}><b>a<br></b><br></{tag}>")
    for node in page.css("*"):
        assert node.markdown() is not None


def test_an_article_in_a_cell_that_ends_in_a_line_break_is_shown() -> None:
    text = (
        "Until it thaws the coastguard brings what is needed, by helicopter, twice a day, weather permitting."
    )
    assert text in page_of(f"<table><tr><td colspan=2>{text * 2}<br></table>").article().markdown
