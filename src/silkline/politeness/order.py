"""Which links go first: by how far they are from the start, by rules, by a function of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import Generic, Literal, TypeVar

import msgspec

from silkline.errors import SettingError
from silkline.request import PRIORITY_LIMIT, Request

P = TypeVar("P")

Rate = Callable[[Request, P], int]
"""`rate(request, page)` is the priority of a link that stands on a page, higher first."""


class LinkOrder(Generic[P]):
    """Gives links their priorities.

    A link that has one already, by `page.follow(priority=…)`, keeps it. Otherwise the first rule counts whose
    pattern matches the path and query of its URL, without the slash in front; then `rate`; then 0. With
    "depth" each link from the start adds 1, so that what is deepest goes first.

    rules: "PATTERN=NUMBER", where * stands for anything and ? for a character, such as "product/*=10".

    Raises SettingError for a rule that is none.
    """

    def __init__(
        self, order: Literal["breadth", "depth"], rules: Sequence[str], rate: Rate[P] | None = None
    ) -> None:
        self._deep = order == "depth"
        self._rules = [_rule(text) for text in rules]
        self._rate = rate

    def __call__(self, request: Request, page: P) -> Request:
        priority = request.priority or self._priority(request, page)
        if self._deep:
            priority += request.depth
        priority = max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT, priority))
        return (
            request if priority == request.priority else msgspec.structs.replace(request, priority=priority)
        )

    def _priority(self, request: Request, page: P) -> int:
        if self._rules:
            path = request.url.partition("://")[2].partition("/")[2]
            for matches, priority in self._rules:
                if matches(path):
                    return priority
        return self._rate(request, page) if self._rate is not None else 0


def _rule(text: str) -> tuple[Callable[[str], object], int]:
    pattern, _, number = text.rpartition("=")
    priority = int(number)
    if abs(priority) > PRIORITY_LIMIT:
        raise SettingError("priority", f"{text!r} is outside -{PRIORITY_LIMIT}..{PRIORITY_LIMIT}")
    return re.compile(translate(pattern.strip().removeprefix("/"))).match, priority
