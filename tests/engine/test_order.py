"""In which order pages are visited."""

from __future__ import annotations

from typing import Any

import pytest

from silkline import Crawler, Page, Request
from silkline.errors import ConfigError
from silkline.testing import MockFetcher

HOME = "https://shop.example/"
LEAVES, STEPS = 400, 20
PAGES = {
    HOME: '<a href="/way/1"></a>' + "".join(f'<a href="/leaf/{n}"></a>' for n in range(LEAVES)),
    **{f"{HOME}leaf/{n}": "" for n in range(LEAVES)},
    **{f"{HOME}way/{n}": f'<a href="/way/{n + 1}"></a>' for n in range(1, STEPS)},
    f"{HOME}way/{STEPS}": "",
}


def follow(page: Page) -> Any:
    return page.follow("a")


def rank_of_the_end(rate: Any = None, handler: Any = follow, **settings: Any) -> float:
    """When the last step of the way is visited, 1 for at the very end. A worker holds a few pages ahead of
    their visits, so that no order is exact."""
    fetcher = MockFetcher(PAGES)
    crawler = Crawler(
        "job", fetcher=fetcher, frontier="memory:", concurrency=1, robots=False, quiet=True, **settings
    )
    crawler.handler(handler)
    if rate is not None:
        crawler.rate(rate)
    assert crawler.run(HOME).pages == len(PAGES)
    visited = [request.url for request in fetcher.requests]
    return visited.index(f"{HOME}way/{STEPS}") / len(visited)


def test_what_was_found_first_is_visited_first() -> None:
    assert rank_of_the_end() > 0.95


def test_depth_first_visits_what_is_furthest_from_the_start() -> None:
    assert rank_of_the_end(order="depth") < 0.5


@pytest.mark.parametrize(
    "rules", [["way/*=10"], ["/way/*=10"], ["leaf/*=-1"], ["way/?=5", "way/*=6"], ["nothing=9", "*ay/*=1"]]
)
def test_rules_give_priorities_by_path(rules: list[str]) -> None:
    assert rank_of_the_end(priority=rules) < 0.5


def test_the_first_rule_that_matches_counts() -> None:
    assert rank_of_the_end(priority=["way/*=10", "*=20"]) > 0.9
    assert rank_of_the_end(priority=["way/*=20", "*=10"]) < 0.5


def test_a_function_gives_priorities_from_request_and_page() -> None:
    def rate(request: Request, page: Page) -> int:
        assert request.url in page.links()
        return 5 if "/way/" in request.url else 0

    assert rank_of_the_end(rate) < 0.5
    assert rank_of_the_end(rate, priority=["leaf/*=6"]) > 0.9


def test_what_a_handler_says_itself_wins_over_rules() -> None:
    def handler(page: Page) -> Any:
        yield page.follow("a[href^='/leaf']", priority=7)
        yield page.follow("a[href^='/way']")

    assert rank_of_the_end(handler=handler, priority=["way/*=6", "leaf/*=5"]) > 0.9


def test_priorities_stay_in_their_range_however_deep() -> None:
    assert rank_of_the_end(lambda request, page: 5_000, order="depth") > 0.95
    assert rank_of_the_end(lambda request, page: -5_000) > 0.95


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("product/*", "priority must be a pattern of paths, = and a number"),
        ("a=2000", "priority 'a=2000' is outside -1000..1000"),
    ],
)
def test_a_rule_that_is_none_is_refused(rule: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        rank_of_the_end(priority=[rule])


def test_a_function_that_fails_fails_its_page_alone() -> None:
    def rate(request: Request, page: Page) -> int:
        raise KeyError("no such thing")

    crawler = Crawler("job", fetcher=MockFetcher({HOME: '<a href="/a"></a>'}), frontier="memory:", quiet=True)
    crawler.handler(lambda page: page.follow("a"))
    crawler.rate(rate)
    assert crawler.run(HOME).dead == {"handler": 1}
