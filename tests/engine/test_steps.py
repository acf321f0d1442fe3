"""What happens to items between their handler and the outputs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from silkline import Crawler, Drop, Page, Retry, To
from silkline.engine.steps import Dropped, Failed, Steps
from silkline.errors import ConfigError
from silkline.events import Visited
from silkline.testing import MockFetcher, page_from, visit

HOME = "https://shop.example/"
PAGE = page_from("<h1>x</h1>", url=HOME)


async def through(value: Any, *steps: Any) -> Any:
    (result,) = await Steps(steps).through([value], PAGE)
    return result


async def later(item: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {**item, "later": True}


def with_url(item: dict[str, Any], page: Page) -> dict[str, Any]:
    return {**item, "url": page.url}


async def test_they_are_applied_in_their_order_sync_or_async_with_the_page_where_it_is_wanted() -> None:
    assert await through({"n": 1}, later, with_url, lambda item: {**item, "n": 2}) == {
        "n": 2,
        "later": True,
        "url": HOME,
    }


@pytest.mark.parametrize("last", [lambda item: None, lambda item, page, more=1: None])
async def test_none_drops_under_the_name_of_the_step(last: Callable[..., None]) -> None:
    assert await through({"n": 1}, later, last, with_url) == Dropped("<lambda>")


async def test_a_drop_says_why() -> None:
    def too_old(item: Any) -> Any:
        raise Drop("too old")

    assert await through({"n": 1}, too_old) == Dropped("too old")


async def test_a_step_that_raises_leaves_the_item_as_it_was_before_and_the_last_line() -> None:
    def price(item: Any) -> Any:
        return {"price": int(item["price"])}

    failed = await through({"price": "ask\nus"}, later, price, with_url)
    assert isinstance(failed, Failed)
    assert failed.item == {"price": "ask\nus", "later": True}
    assert failed.error.startswith("step price: ValueError: invalid literal for int() with base 10: ")
    assert failed.error.endswith(f"({Path(__file__).name}:{price.__code__.co_firstlineno + 1})")
    assert "\n" not in failed.error


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), StopIteration()])
async def test_no_step_ends_the_crawl(error: BaseException) -> None:
    def ends(item: Any) -> Any:
        raise error

    assert isinstance(await through({"n": 1}, ends), Failed)


async def test_a_step_that_gives_several_is_told() -> None:
    failed = await through({"n": 1}, lambda item: [item, item])
    assert "a step gives back one item or None, not a list" in failed.error


async def test_an_item_for_some_outputs_stays_one_for_these() -> None:
    assert await through(To("a.csv", {"n": 1}), later) == To("a.csv", {"n": 1, "later": True})
    assert await through(To("a.csv", {"n": 1}), lambda item: To("b.csv", item)) == To("b.csv", {"n": 1})


async def test_a_step_may_ask_for_another_visit() -> None:
    def busy(item: Any) -> Any:
        raise Retry("the rate is not there yet")

    with pytest.raises(Retry):
        await through({"n": 1}, busy)


async def test_a_function_written_in_c_is_a_step() -> None:
    assert await through({"n": 1}, dict.copy, dict) == {"n": 1}


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("strip", "a step must be a function of an item, not 'strip'"),
        (lambda: None, "the step <lambda> takes 0 arguments"),
        (
            lambda a, b, c: None,
            "the step <lambda> takes 3 arguments; write it as a function of an item, or of an item",
        ),
    ],
)
def test_what_is_no_step_is_refused_before_the_crawl(step: Any, reason: str) -> None:
    crawler = Crawler("job", steps=[step], frontier="memory:", quiet=True)
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError) as caught:
        crawler.run(HOME)
    assert reason in str(caught.value)


def shop(tmp_path: Path, **more: Any) -> Crawler:
    return Crawler(
        "job",
        fetcher=MockFetcher({HOME: "<h1>x</h1>"}),
        frontier=f"sqlite:///{tmp_path}/job.db",
        outputs=[str(tmp_path / "out.jsonl")],
        quiet=True,
        **more,
    )


def test_a_crawl_counts_what_is_dropped_and_keeps_what_fails(tmp_path: Path) -> None:
    heard: list[Any] = []
    crawler = shop(tmp_path, steps=[lambda item: item if item["n"] != 1 else None], hooks=[heard.append])

    @crawler.step
    async def halved(item: dict[str, Any]) -> dict[str, Any]:
        if item["n"] == 2:
            raise Drop("two")
        return {"n": 12 / item["n"]}

    crawler.handler(lambda page: [{"n": n} for n in (0, 1, 2, 3, 2)])
    report = crawler.run(HOME)
    assert (report.items, report.items_dropped, report.dead_items) == (
        1,
        {"two": 2, "<lambda>": 1},
        {"step": 1},
    )
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [{"n": 4.0}]
    (visited,) = [event for event in heard if isinstance(event, Visited)]
    assert visited.items_dropped == {"two": 2, "<lambda>": 1}
    (dead,) = visited.outcome.dead_items
    assert (dead.cause, dead.index, dead.record) == ("step", 0, '{"n":0}')
    assert dead.error.startswith("step halved: ZeroDivisionError: ")
    (item,) = visited.outcome.items
    assert item.index == 3


def test_a_step_that_wants_another_visit_gets_it(tmp_path: Path) -> None:
    turns: list[int] = []
    crawler = shop(tmp_path)
    crawler.handler(lambda page: [{"n": 1}, {"n": 2}])

    @crawler.step
    def rate(item: Any) -> Any:
        turns.append(item["n"])
        if len(turns) < 2:
            raise Retry(after=0)
        return item

    report = crawler.run(HOME)
    assert (report.items, report.retried, turns) == (2, 1, [1, 1, 2])


async def test_a_visit_in_a_test_goes_through_them(tmp_path: Path) -> None:
    crawler = shop(tmp_path, steps=[lambda item: {"n": 10 // item["n"]} if item["n"] < 9 else None])
    crawler.handler(lambda page: [{"n": n} for n in (5, 0, 9)])
    result = await visit(crawler, PAGE)
    assert (result.items, result.dropped, [item.cause for item in result.dead_items]) == (
        ({"n": 2},),
        {"<lambda>": 1},
        ["step"],
    )
