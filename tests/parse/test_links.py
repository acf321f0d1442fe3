"""Links of whole pages, through `page.links()`: the conformance data, and its short ways held equal."""

from __future__ import annotations

import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.parse.page import Page, _links_in
from tests.conformance import Case, cases, check, raw
from tests.parse.pages import page_of


def page_of_case(case: Case) -> Page:
    if "html_b64" in case:
        return page_of(raw(case, "html_b64"), case["content_type"], case["base_url"])
    body = case["html"].encode("utf-8", "surrogatepass")
    return page_of(body, "text/html; charset=utf-8", case["base_url"])


def without_repeats(urls: list[str]) -> list[str]:
    """Fragments are never requested, so links that differ in nothing else are one."""
    return list(dict.fromkeys(url.partition("#")[0] for url in urls))


def test_the_links_of_a_page_are_those_that_a_browser_would_follow() -> None:
    def fault(case: Case) -> str | None:
        got = list(page_of_case(case).links())
        return None if got == without_repeats(case["links"]) else f"{case['words']}: {got}"

    check(cases("html-links/cases"), lambda case: case["id"], fault)


def test_follow_finds_the_same_links() -> None:
    for case in cases("html-links/cases"):
        page = page_of_case(case)
        if page.document.select_one("template") is None and page.document.select_one("svg") is None:
            assert page.follow("a[href], area[href]").urls == page.links(), case["id"]


def test_the_base_of_a_page_is_the_documents() -> None:
    for case in cases("html-links/cases"):
        if "document_base" in case:
            assert page_of_case(case).base_url == case["document_base"], case["id"]


PIECES = st.sampled_from(
    [
        *(
            "<a href=/1>",
            "<a href='/2 3'>",
            "</a>",
            "<area href=x>",
            "<a name=n>",
            "<a href>",
            "<p>",
            "<table>",
        ),
        *(
            "<tr>",
            "<td>",
            "</table>",
            "<map>",
            "<b>",
            "</b>",
            "<noscript>",
            "</noscript>",
            "<select>",
            "<!--",
        ),
        *("-->", "text", "<math>", "<a xlink:href=/no>", "<AREA HREF='?q'>", "<frameset>", "<button>"),
    ]
)


@given(st.lists(PIECES, max_size=20).map("".join))
@settings(max_examples=200, deadline=None)
def test_the_short_way_to_links_equals_the_walk_through_all_elements(html: str) -> None:
    document = turbohtml.parse(html)
    walked = [link.attr("href") for link in document.select("a, area")]
    assert _links_in(document) == [href for href in walked if href is not None]
