"""Links of whole pages, through `page.links()`: the conformance data, and its short ways held equal."""

from __future__ import annotations

import time
from typing import Any

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.parse.links import LinkKind, links_in
from silkline.parse.page import Page
from silkline.testing import page_from
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


DRAWN = {"resource-14": "what a drawing (SVG) is made of is none of the kinds of links"}


def test_pictures_scripts_frames_and_forms_are_found_where_browsers_load_them() -> None:
    def fault(case: Case) -> object:
        page = page_of_case(case)
        kinds: dict[str, list[LinkKind]] = {
            "resources": ["link", "img", "srcset", "script", "media"],
            "frames": ["iframe"],
            "forms": ["form"],
        }
        for name, wanted in kinds.items():
            got = set(page.links(kinds=wanted))
            if name in case and got != set(without_repeats(case[name])):
                return got
        return None

    check(cases("html-links/cases"), lambda case: case["id"], fault, argued=DRAWN)


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
    assert links_in(document) == [href for href in walked if href is not None]


EVERYTHING = """
<link rel=stylesheet href=/s.css><a href=/1>1</a>
<div id=box><img src=/i.png srcset="/i1.png 1x, /i,2.png 2x,/i3.png 100w">
<a href=/2>2</a><video src=/v poster=/p><source src=/v2></video><input type=image src=/in.png></div>
<form action=/go><button formaction=/other></button></form><script src=/js></script>
<iframe src=//o.example/f></iframe><object data=/o></object><map><area href=/3></map>
<picture><source srcset="/q.png 1x"></picture>
<template><img src=/t><a href=/t2></a></template><input type=text src=/no>
"""


@pytest.mark.parametrize(
    ("kinds", "css", "paths"),
    [
        (["a"], "", "/1 /2"),
        (["a", "area"], "", "/1 /2 /3"),
        (["a", "area"], "#box", "/2"),
        (["a"], "a", "/1 /2"),
        (["a"], "p", ""),
        (["link"], "", "/s.css"),
        (["img"], "", "/i.png /in.png"),
        (["srcset"], "", "/i1.png /i,2.png /i3.png /q.png"),
        (["img", "a"], "#box", "/i.png /2 /in.png"),
        (["media"], "", "/v /p /v2 /o"),
        (["form"], "", "/go /other"),
        (["script", "iframe"], "", "/js //o.example/f"),
        ([], "", ""),
    ],
)
def test_links_can_be_those_of_some_elements_and_places(kinds: list[Any], css: str, paths: str) -> None:
    page = page_from(EVERYTHING, url="https://a.example/")
    expected = tuple(
        f"https:{'' if path.startswith('//') else '//a.example'}{path}" for path in paths.split()
    )
    assert page.links(css, kinds) == expected


def test_a_kind_of_links_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"there is no kind of links 'video'; there are: a, area, link, "):
        page_from(EVERYTHING).links(kinds=["video"])  # type: ignore[list-item]


def test_a_hostile_srcset_is_read_in_bounded_time() -> None:
    started = time.monotonic()
    for value in ("," * 500_000, "x ( " * 250_000, "x (" * 300_000 + ")"):
        page_from(f'<img srcset="{value}">').links(kinds=["srcset"])
    assert time.monotonic() - started < 5
