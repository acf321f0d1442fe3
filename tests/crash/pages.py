"""The site that is crawled, and the truth about it: which items each page has."""

from __future__ import annotations

import asyncio
import html
import json
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.site import Site

LATENCY = 0.01
"""Seconds."""
COMMENT = "#" + 12_000 * "-" + "\n"
"""Between the seeds, so that their file is read in several batches."""


class Pages:
    """`count` pages /p/0, /p/1, ...: a few are seeds and the others are found by links, in a tree. Some
    answer 500 once or twice before they work, and they have between none and three items.

    poison: number of a page that kills its worker. big: characters of the few big items.
    Set `allowed` to have only so many different pages answered; requests for more of them hang.
    """

    def __init__(self, count: int, *, poison: int | None = None, big: int = 100_000) -> None:
        self.count = count
        self.seeds = max(1, count // 10)
        self.allowed = count
        self.answered: set[int] = set()
        self.visits = 0
        self._poison = poison
        self._big = big
        self._failures: Counter[int] = Counter()
        self._tries: Counter[int] = Counter()
        self._site = Site({f"/p/{n}": self._answer for n in range(count)}, delay=LATENCY)

    def __enter__(self) -> Pages:
        self._site.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._site.__exit__(*exc)

    def url(self, number: int) -> str:
        return f"{self._site.url}/p/{number}"

    def write_seeds(self, path: Path) -> None:
        path.write_text("".join(f"{self.url(number)}\n{COMMENT}" for number in range(self.seeds)))

    def exhausted(self) -> bool:
        """Nothing new is answered until more is allowed."""
        return len(self.answered) >= self.allowed

    def truth(self) -> dict[int, list[dict[str, Any]]]:
        return {number: self._items(number) for number in range(self.count) if number != self._poison}

    async def _answer(self, request: web.Request) -> web.Response:
        number = int(request.path.rpartition("/")[2])
        self.visits += 1
        while number not in self.answered and self.exhausted():
            await asyncio.sleep(LATENCY)
            if request.transport is None or request.transport.is_closing():
                return web.Response(status=503)  # nobody is there any more
        if self._failures[number] < failures_of(number):
            self._failures[number] += 1
            at_once = {"Retry-After": "0"} if number % 4 else {}
            return web.Response(status=500, headers=at_once)
        self.answered.add(number)
        return web.Response(text=self._html(number), content_type="text/html")

    def _html(self, number: int) -> str:
        first = self.seeds + 3 * number
        links = "".join(f'<a href="/p/{child}">' for child in range(first, min(first + 3, self.count)))
        self._tries[number] += 1
        ad = {"ad": 1_000 // self._tries[number] * "-"}  # what is written again is shorter than before
        items = "".join(
            f"<pre class=item>{html.escape(json.dumps(item | ad))}</pre>" for item in self._items(number)
        )
        return f'{"<b class=poison>" if number == self._poison else ""}{links}<a href="/p/0">{items}'

    def _items(self, number: int) -> list[dict[str, Any]]:
        """None, one, two or three; more columns come up as the numbers grow."""
        items: list[dict[str, Any]] = []
        for index in range(number % 4):
            item: dict[str, Any] = {"page": number, "index": index, "text": f'"{number}",\n{index}'}
            if number % 10 == 7:
                item[f"column_{number // 100}"] = number
            if number % 50 == 17 and not index:
                item["big"] = self._big * "x"
            items.append(item)
        return items


def failures_of(number: int) -> int:
    """How often the page answers 500 before it works."""
    return 2 if number % 29 == 7 else 1 if number % 11 == 3 else 0
