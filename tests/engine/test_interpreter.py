from __future__ import annotations

import gc
import sys

import pytest

from silkline import Crawler, Page
from silkline.engine.interpreter import tuned_interpreter
from silkline.testing import MockFetcher


def test_what_was_turned_is_put_back() -> None:
    before = (sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count())

    def fail() -> None:
        with tuned_interpreter():
            assert sys.getswitchinterval() < before[0]
            assert gc.get_threshold() != before[1]
            assert gc.get_freeze_count() > 0
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()) == before


def test_a_visit_leaves_no_cycles_with_bodies_behind() -> None:
    """What makes it safe to look for cycles seldom: pages go when the last reference goes."""
    crawler = Crawler(
        "job",
        frontier="memory:",
        quiet=True,
        fetcher=MockFetcher(
            {f"https://cycles.example/{n}": "<title>x</title><a href=/y>" for n in range(50)}
        ),
    )

    @crawler.handler
    def every(page: Page):  # type: ignore[no-untyped-def]
        for node in page.css("a"):
            yield {"href": node.attr("href"), "title": page.text("title")}
        yield page.follow("a")

    gc.collect()
    gc.disable()
    try:
        crawler.run([f"https://cycles.example/{n}" for n in range(50)])
        assert not [thing for thing in gc.get_objects() if isinstance(thing, Page) and "cycles" in thing.url]
    finally:
        gc.enable()
