"""Hosts that say 429 to whoever asks too much: whatever they write into Retry-After, no page is lost."""

from __future__ import annotations

import email.utils
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.site import Site

from silkline import Crawler
from silkline.events import Visited

PAST = email.utils.formatdate(1_000_000_000, usegmt=True)


class Window:
    """Answers so many requests in each fifth of a second, and refuses the others."""

    def __init__(self, allowed: int, retry_after: str | None) -> None:
        self.refused = 0
        self._allowed = allowed
        self._headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._window, self._asked = 0, 0

    async def __call__(self, request: web.Request) -> web.Response:
        window = int(time.monotonic() * 5)
        if window != self._window:
            self._window, self._asked = window, 0
        self._asked += 1
        if self._asked > self._allowed:
            self.refused += 1
            return web.Response(status=429, headers=self._headers)
        return web.Response(text="<title>x</title>", content_type="text/html")


def crawler_for(**settings: Any) -> Crawler:
    settings = {"frontier": "memory:", "robots": False} | settings
    crawler = Crawler("job", quiet=True, **settings)
    crawler.handler(lambda page: None)
    return crawler


@pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "not adaptive"])
def test_a_rate_limiter_costs_no_page(tmp_path: Path, adaptive: bool) -> None:
    windows = {header: Window(4, header) for header in (None, "0", "-5", PAST, "soon", "1")}
    with ExitStack() as stack:
        sites = [
            stack.enter_context(Site({f"/{n}": answers for n in range(100)})) for answers in windows.values()
        ]
        crawler = crawler_for(frontier=f"sqlite:///{tmp_path}/job.db", adaptive=adaptive)
        report = crawler.run([f"{site.url}/{n}" for site in sites for n in range(100)])
    assert (report.pages, report.dead) == (600, {})
    assert {header for header, answers in windows.items() if answers.refused} == set(windows)


def test_a_limiter_that_answers_one_in_eight_costs_no_page() -> None:
    answers = Window(1, "0")
    with Site({f"/{n}": answers for n in range(20)}) as site:
        report = crawler_for(adaptive=False, retries=1).run([f"{site.url}/{n}" for n in range(20)])
    assert (report.pages, report.dead) == (20, {})
    assert answers.refused > 20  # more than the retries of all of them


def test_a_host_that_says_nothing_else_uses_the_retries_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silkline.politeness.busy.PATIENCE", 2.0)
    with Site({"/": Window(0, None)}) as site:
        visits: list[Any] = []
        crawler = crawler_for(adaptive=False, retries=1, hooks=[visits.append])
        assert crawler.run(f"{site.url}/").dead == {"http_429": 1}
    asked = [event.outcome.lease.request for event in visits if isinstance(event, Visited)]
    assert [request.spared for request in asked[:2]] == [0, 1]
    assert asked[-1].retry_count == 1
    assert len(asked) == asked[-1].spared + 2


def test_no_retries_means_one_visit_of_a_busy_host_too() -> None:
    answers = Window(0, "0")
    with Site({"/": answers}) as site:
        assert crawler_for(retries=0).run(f"{site.url}/").dead == {"http_429": 1}
    assert answers.refused == 1
