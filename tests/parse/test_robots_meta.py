"""What pages ask of robots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from silkline.parse.page import Page
from silkline.parse.robots_meta import RobotsMeta
from silkline.request import Request
from silkline.response import Response

DATA = Path(__file__).parent.parent / "data" / "conformance" / "html-links"


def page_of(html: str, *headers: str, content_type: str = "text/html; charset=utf-8") -> Page:
    url = "https://example.com/dir/page"
    tags = ((b"X-Robots-Tag", header.encode()) for header in headers)
    all_headers = ((b"Content-Type", content_type.encode()), *tags)
    return Page(Response(url, 200, all_headers, html.encode(), Request(url)))


@pytest.mark.parametrize(
    "case", json.loads((DATA / "robots_meta.json").read_text()), ids=lambda case: case["words"]
)
def test_meta_robots_and_x_robots_tag(case: dict[str, Any]) -> None:
    asked = page_of(case["html"] or "", *(case["x_robots_tag"] or ())).robots_meta(case["user_agent"])
    assert msgspec.structs.asdict(asked) == case["expect"]


def test_a_name_in_a_header_is_for_the_rules_behind_it() -> None:
    page = page_of("", "noindex, otherbot: nofollow, max-snippet: 20, silkline: none")
    assert page.robots_meta("otherbot") == RobotsMeta(False, False)
    assert page.robots_meta("thirdbot") == RobotsMeta(False, True)
    assert page.robots_meta() == RobotsMeta(False, False)


def test_what_is_no_html_has_headers_only() -> None:
    page = page_of('<meta name="robots" content="noindex">', "nofollow", content_type="application/pdf")
    assert page.robots_meta() == RobotsMeta(True, False)
    assert page.nofollow_links() == frozenset()


NOFOLLOW = [
    case for case in json.loads((DATA / "cases.json").read_text()) if "nofollow" in case and "html" in case
]


@pytest.mark.parametrize("case", NOFOLLOW, ids=lambda case: case["id"])
def test_nofollow_links(case: dict[str, Any]) -> None:
    page = Page(
        Response(
            case["base_url"],
            200,
            ((b"Content-Type", b"text/html; charset=utf-8"),),
            case["html"].encode(),
            Request(case["base_url"]),
        )
    )
    assert page.nofollow_links() == set(case["nofollow"])


def test_a_link_that_stands_there_without_nofollow_too_may_be_followed() -> None:
    page = page_of('<a href="/a" rel="nofollow">1</a> <a href="/a">2</a> <a href="b" rel="nofollow">3</a>')
    assert page.links() == ("https://example.com/a", "https://example.com/dir/b")
    assert page.nofollow_links() == {"https://example.com/dir/b"}
