"""Pictures of several sizes."""

from __future__ import annotations

from silkline.parse.srcset import candidates
from tests.conformance import cases, check


def test_the_pictures_of_a_srcset_are_those_that_a_browser_would_choose_from() -> None:
    check(
        cases("html-links/srcset"),
        lambda case: case["srcset"],
        lambda case: None if (got := candidates(case["srcset"])) == case["urls"] else got,
    )
